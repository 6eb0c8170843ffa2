"""The evaluation "direct": what it computes from a file, and how far that is from the program."""
