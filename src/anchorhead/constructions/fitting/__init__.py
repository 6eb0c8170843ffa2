"""Functions of which only values are known: a network is fitted, or a grid holds the values."""
