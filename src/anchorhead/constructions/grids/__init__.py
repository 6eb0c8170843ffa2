"""One head over a tensor grid of anchors, for a function of a few variables, and the network that it is."""
