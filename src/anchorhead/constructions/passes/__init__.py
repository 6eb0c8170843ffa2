"""From functions and networks of neurons to attention, in passes: see run, where they stand in order.

simplify   functions taken apart, in every form that is known; forms: what these are written in
ranges     between which ends the argument of every function stays
budget     how far every head may be off, from how much the outputs feel it
heads      the smallest proven head for each function, range and error
layout     the layers of a network, drafted and made
prove      the certificate of what a walk over the stored weights finds; estimated_bound: about that, for plans

functions  which functions are one head, and in which equal ways others go through the passes
parts      grids, and neurons beside them
estimate   about how many anchors a head takes: forms are compared by it
"""
