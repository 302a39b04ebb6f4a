"""What turns texts into ids, each held to the stock library's, and the proof that ids give their texts back."""
