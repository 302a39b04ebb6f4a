"""Rules of quality: measures of words, lines, signs and repetition, and the limits that presets set for them."""
