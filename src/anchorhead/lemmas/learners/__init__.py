"""Learners: gradient descent as a Repeat whose body is attention, and how far its path is from the exact one.

A step is the numbers that are free in its layout, as a network stores them:

    steps        what a step is: arguments written (score), links held (links), pushes collected (average; own_anchors
                 where examples bring anchors of their own), w updated (update) and shrunk (threshold)

The proof is one walk along a path:

    follow       the error of every step, from what holds where it begins
    loop         errors of steps become errors of paths: the growth of a step
    prompt, box  what holds along the path of one prompt, or along all of a box of prompts: their invariants
    prove        which of these, and what it is called

That a network is the one that such a step is written as, weight by weight, is for whoever wrote or loaded it to see to
(constructions.learners).
"""
