"""Learners: gradient descent as a Repeat whose body is attention, and how far its path is from the exact one.

A step is read from the weights of its layers, by what they compute, whoever laid them out:

    tokens       what every feature of a token holds, exactly, or of which size
    anchors      which keys a score hears, and what stands for links
    body         which heads score, link, collect and shrink; own_anchors where examples bring anchors of their own
    steps        what a step then is: arguments written (score), links held (links), pushes collected (average)

The proof is one walk along a path:

    follow       the error of every step, from what holds where it begins
    loop         errors of steps become errors of paths: the growth of a step
    prompt, box  what holds along the path of one prompt, or along all of a box of prompts: their invariants
    prove        which of these, and what it is called
"""
