"""Networks of one layer: the walk with one claim, functions of one number or a smoother, and its outputs at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.lemmas.kernel import Smoothed
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.output import OutputBound, compared
from anchorhead.lemmas.record import Record
from anchorhead.lemmas.walk import walk
from anchorhead.network import Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.overflow import require_room


def prove_functions(network: Network, claim: OneNumber | Smoothed, on: Box, cast: bool = True) -> OutputBound:
    """A bound for every input in the box; one of intervals alone where the weights are not those of such heads.

    cast   inputs may be of another type than the network's
    """
    last, (tokens, inputs) = network.streams[-1], claim.given
    given = (network.embed.tokens, network.embed.inputs), (last.inputs, last.width)
    if network.output != "input" or given != ((tokens, inputs), (tokens, claim.outputs)):
        raise AnchorheadError(f"the network does not take {tokens} tokens of {inputs} and put out {claim.outputs} each")
    box = on.broadcast_to((tokens, inputs))
    require_room(network, box)
    sources = Sources(*(end.astype(np.float64)[:, None] for end in (box.low, box.high)))
    record = Record()
    y, exact = walk(network, [claim], sources, cast, record)
    return replace(compared(y, None, exact), claims=record.table())
