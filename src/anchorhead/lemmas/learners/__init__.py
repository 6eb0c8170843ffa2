"""Learners: gradient descent as a Repeat whose body is attention, and how far its path is from the exact one.

A layout is built and read in one file (direct, transformer with its tokens, sequence, many; threshold ends a step in
any of the first two). The proof is one walk:

    steps     what a step of any layout is: arguments written (score), links held (links), pushes collected (average)
    loop      errors of steps become errors of paths: the growth of a step
    prompt    the walk along the path of one prompt
    box       the walk along all paths of a box of prompts: their invariant
    prove     which of these, and what it is called
"""
