"""A stratified sample of a finished run: `corpusmill sample`."""
