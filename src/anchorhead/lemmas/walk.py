"""One walk through a network of neurons: what is known of every feature, layer by layer, until the output is reached.

Features are affine forms in exact quantities of the target (proof.arithmetic.affine_forms): first in the inputs, and
after every layer of neurons in the neurons' exact values. Linear maps carry forms. Attention and softmax groups are
lowered to readings (proof.arithmetic.readings), and each is explained by the first lemma that fits: a scalar head, if
it is one of the layer of neurons that the target has next; a copy; else the interval in which a mean of values always
lies. Everything is read from the stored weights; of shapes only what was proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from anchorhead.errors import AnchorheadError
from anchorhead.lemmas.attention import after_attention, after_neurons_as_tokens
from anchorhead.lemmas.grid_head import after_grid
from anchorhead.lemmas.groups import after_groups, shares
from anchorhead.lemmas.known import Known
from anchorhead.network import Attention, Linear, Network, Softmax
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, after_linear, embedded
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.grids.proven_grid import GridClaim
from anchorhead.proof.heads.neurons import Layer


def walk(network: Network, claims: Sequence[Layer | GridClaim], sources: Sources) -> tuple[Forms, Sources]:
    """What is known of the input tokens at the end, as forms of the last layer's exact neurons, and these.

    sources  between what the inputs lie, token by token
    """
    arithmetic = arithmetic_of(network.dtype)
    known = Known(*embedded(network.embed, sources, arithmetic), sources, tuple(claims), arithmetic)
    steps = list(network.layers[1:])
    while steps:
        known, taken = _after(known, steps)
        steps = steps[taken:]
    while known.claims:  # what no layer was found to compute: of what depends on the others, intervals are left
        if isinstance(known.claims[0], GridClaim):
            known = known.with_grid()
            continue
        exact = known.claim.exact(known.sources)[2]
        known = known.after([(known.inputs.over(known.sources, len(exact.low)), exact)], known.registers)
    return known.inputs, known.sources


def _after(known: Known, steps: list) -> tuple[Known, int]:
    """What is known after the first steps, and how many that are."""
    match steps:
        case [Linear() as before, Softmax() as softmax, Linear() as after, *_]:
            with suppress(Refusal):
                return after_groups(known, before, softmax, after), 3
        case [Attention() as layer, Linear() as after, *_] if after.across:
            with suppress(Refusal):
                return after_neurons_as_tokens(known, layer, after), 2
    match steps[0]:
        case Linear() as layer:
            inputs, registers = after_linear(layer, known.inputs, known.registers, known.sources, known.arithmetic)
            return replace(known, inputs=inputs, registers=registers), 1
        case Attention() as layer:
            if layer.grid is not None:
                with suppress(Refusal):
                    return after_grid(known, layer), 1
            return after_attention(known, layer), 1
        case Softmax():
            inputs, registers = (shares(x, known.arithmetic) for x in (known.inputs, known.registers))
            return replace(known, inputs=inputs, registers=registers), 1
    raise AnchorheadError(f"a network of neurons has no {type(steps[0]).__name__}")
