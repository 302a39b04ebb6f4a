"""What moves, in numbers: sums, intervals, reasons, dead and wild rules, and the bounds that the numbers are held to."""
