"""The re-score: a checkpoint of the model in training judges documents, and the worst of them go on a blacklist.

checkpoints  a checkpoint, whole, known by its checksum, and held in a form that the perplexity engine reads
sample       which documents of a large crawl are read
score        what it says of each of them, shard by shard
choose       which of those score too high or too low among their like
entries      what the blacklist is given
settings     which training is followed, what is judged, how
threshold    a multiple of `every_tokens` on disk; crawl, due, propose, publish: what is done at one
"""

EVERY_TOKENS = 10_000_000_000
"""From one re-score to the next. Ours: a thousandth of a training of ten trillion tokens."""
SETTINGS_VARIABLE = "CORPUSMILL_RESCORE"
"""Of the environment: the settings file that the DAG takes where its form names none."""
CHUNK_MB = 16
"""Text of one mapped task at least, of that which is read by the plan. A model of some 100 million weights reads that in
minutes on a GPU."""
