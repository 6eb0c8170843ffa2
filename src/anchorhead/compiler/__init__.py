"""From a program of exact quantities to one that heads can compute, in passes.

forms      equal ways to write an expression as functions of one variable each: products as squares, or logarithms
ranges     between which ends every quantity stays
layers     the quantities as a feed-forward network: what is read later is carried on
budget     how far every head may be off, from how much the output feels it
estimate   about how large the network becomes: the forms are tried in this order
"""
