"""Which language each line and each document is written in."""
