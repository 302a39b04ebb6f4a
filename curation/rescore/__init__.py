"""The re-score: a checkpoint of the model in training judges documents, and the worst of them go on a blacklist.

checkpoints  a checkpoint, whole, known by its checksum, and held in a form that the perplexity engine reads
sample       which documents of a large crawl are read
score        what it says of each of them, shard by shard
choose       which of those score too high or too low among their like
entries      what the blacklist is given
"""
