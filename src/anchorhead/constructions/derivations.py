"""What derivations say of each construction: which layer computes what, by which lemma."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.decimals import counted
from anchorhead.heads.atom import Atom
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Network, Softmax
from anchorhead.network.derivation import Entry
from anchorhead.proof.heads.neurons import Layer


def head_entries(atom: Atom, name: str, on: tuple[float, float], exact: float, rounding: float) -> tuple[Entry, ...]:
    """A head on a scalar is the one attention layer."""
    most = max(len(part) for part in atom.parts)
    return (Entry(1, "scalar head", short_name(name), len(atom.parts), most, on, exact, rounding),)


def grid_entries(atom: GridAtom, what: str, error: float, layer: int | None = None) -> tuple[Entry, ...]:
    """A head over a grid, in the last attention layer."""
    return (Entry(layer, "grid head", short_name(what), 1, int(np.prod(atom.sides)), None, error),)


def neuron_entries(network: Network, layers: Sequence[Layer]) -> tuple[Entry, ...]:
    """Layers of neurons, a line for each of their heads; before them the attention that gathers tokens, if any."""
    places = [place for place, layer in enumerate(network.layers) if isinstance(layer, Attention | Softmax)]
    found = []
    for place in places[: len(places) - len(layers)]:
        gathers = network.layers[place]
        heads = gathers.heads if isinstance(gathers, Attention) else 1
        found.append(Entry(place, "copy", "every token gets all tokens", heads, 1, None, 0.0))
    for place, layer in zip(places[len(places) - len(layers) :], layers, strict=True):
        for number, shape in enumerate(layer.shapes):
            count = int((layer.which == number).sum())
            if count:
                what = f"{short_name(str(shape.activation))} for {counted(count, 'neuron')}"
                heads, most = count * len(shape.parts), max(len(part) for part in shape.parts)
                ends = (float(shape.low), float(shape.high))
                found.append(Entry(place, "scalar head", what, heads, most, ends, shape.exact, shape.rounding))
    return tuple(found)


def short_name(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
