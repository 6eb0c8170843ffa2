"""The theorems of the paper, a file each: its program, its placement of anchors, its bound."""
