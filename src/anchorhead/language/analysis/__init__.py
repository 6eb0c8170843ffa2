"""What is found out about expressions: kinks, zeros, jumps, ridges, summands."""
