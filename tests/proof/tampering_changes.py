"""Ways to tamper with a saved network, drawn at random: its weights, its structure, and what its header says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.network import Network

from . import tampering_structure as structure
from . import tampering_weights as weights
from . import tampering_words as words
from .tampering_paths import Random


def tampered(network: Network, rng: Random) -> tuple[Network, str] | None:
    """The network after one to three changes, and what they were; None where the grammar refuses it."""
    said = []
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        name = str(rng.choice(list(CHANGES), p=WEIGHTS))
        try:
            with np.errstate(all="ignore"):
                changed = CHANGES[name](network, rng)
        except (AnchorheadError, OverflowError):
            return None
        if changed is None:
            return None
        network = changed
        said.append(name)
    return network, ", ".join(said)


CHANGES: dict[str, Callable[[Network, Random], Network | None]] = {
    "one weight": weights.one_weight,
    "swapped": weights.swapped,
    "pair": weights.pair,
    "shifted": weights.shifted,
    "balanced": weights.balanced,
    "silenced": weights.silenced,
    "mask": structure.mask,
    "moved token": structure.moved_token,
    "output": structure.output,
    "more tokens": structure.more_tokens,
    "fewer tokens": structure.fewer_tokens,
    "skip": structure.skip,
    "bias": structure.bias,
    "grid": structure.grid,
    "heads": structure.heads,
    "layers": structure.layers,
    "source": structure.source,
    "program": words.program,
    "derivation": words.derivation,
    "certificate": words.certificate,
    "dtype": words.dtype,
    "token axis": words.token_axis,
}
OFTEN = {"one weight": 6, "pair": 4, "shifted": 3, "balanced": 3, "silenced": 3, "mask": 2, "more tokens": 2}
WEIGHTS = np.array([OFTEN.get(name, 1) for name in CHANGES], float)
WEIGHTS /= WEIGHTS.sum()
