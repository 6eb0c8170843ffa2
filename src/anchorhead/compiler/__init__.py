"""From expressions to programs of functions of one variable that heads can compute, in passes.

lower        all of it: an expression in every form, as layers
forms        equal ways to write products, quotients, sums and roots: by squares, or by logarithms
neurons      each function on the scale of its own range
quantities   the program: straight-line steps, each a function of one affine combination of earlier ones
ranges       between which ends every quantity stays
layers       the quantities as a feed-forward network: what is read later is carried on
budget       how far every head may be off, from how much the outputs feel it
estimate     about how many anchors a head takes: forms are compared by it
"""
