"""What forms are written in: programs of functions of one variable, each of an affine combination of earlier ones.

lowering     expressions as such programs, by squares, or by logarithms
neurons      each function on the scale of its own range
quantities   the program: straight-line steps, and between which ends every quantity stays
layers       the quantities as a feed-forward network: what is read later is carried on
roots        roots of quadratics that do not cancel
"""
