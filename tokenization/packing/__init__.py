"""From encoded documents to token files: which copies, in which sequence and order, and the copying of their ids."""
