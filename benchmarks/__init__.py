"""Speed and memory beside named alternatives, as ratios in one run: `make bench`."""
