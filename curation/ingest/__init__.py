"""From files as they come to shards: every record ends as a document or, with its reason, in the quarantine.

find     arguments -> files            forms    first bytes -> kind, compression, layout
plan     files -> parts of slices      stored, members, streams   bytes on disk -> decompressed blocks
lines, jsonl, diagnose                 JSON lines -> records
columnar, cells / warc, html, charset  other kinds -> records
part, outputs   records -> shards and quarantine, checked by the conservation law
close    all parts -> totals, and whether too much was damaged
"""
