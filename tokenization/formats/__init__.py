"""What a tokenizer may come as: `source` finds and reads it, the others turn one kind each into a tokenizer.json's data."""
