"""What a change of filters, settings or code does to real documents: two sides judged on one sample, and a sheet about it."""
