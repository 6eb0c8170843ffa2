"""Whether the output of a token depends on earlier tokens alone, read off the weights that are not 0."""

from __future__ import annotations

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.targets.mlp import Mlp


def require_causal(target: Mlp) -> None:
    """Raises unless output token i depends on input tokens up to i only, naming the weights that break it."""
    if target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens the network's vectors hold, tokens=")
    features = target.inputs // target.tokens
    latest = np.arange(target.inputs) // features
    origin: list[np.ndarray] = []
    maps = [*(layer.affine for layer in target.hidden), target.readout]
    for affine in maps:
        reach = np.where(affine.weight != 0, latest, -1)
        origin.append(reach.argmax(axis=1))
        latest = reach.max(axis=1)
    own = np.arange(target.outputs) // (target.outputs // target.tokens)
    broken = np.flatnonzero(latest > own)
    if not len(broken):
        return
    output = int(broken[0])
    path, place = [], output
    for number in range(len(maps) - 1, -1, -1):
        before = int(origin[number][place])
        path.append(f"layer {number + 1}'s weight[{place}, {before}] = {maps[number].weight[place, before]:.4g}")
        place = before
    raise AnchorheadError(
        f"causal=True, but output token {own[output]} depends on input token {latest[output]}: "
        f"{', which reads '.join(path)}. Set such weights to 0, or leave out causal="
    )
