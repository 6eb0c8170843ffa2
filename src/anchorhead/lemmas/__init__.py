"""In which ways softmaxes compute steps of a program, a way a file, and the walk that tries them in turn.

A lemma is about readings (proof.arithmetic.readings), to which attention and softmax groups are both lowered:

    build   what the anchors are           heads.atom.Part; layouts place them in registers, tokens or groups
    read    which claim readings meet      or a Refusal, with the reason; a claim is a step of the program (known.Claim)
    bound   what is then known             affine forms in exact quantities, with an approximation and a rounding error
    run     the evaluation without keys    network.direct
"""
