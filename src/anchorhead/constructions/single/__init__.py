"""One head for one function of one variable, and the network that it is."""
