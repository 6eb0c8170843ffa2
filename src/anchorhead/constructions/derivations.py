"""What derivations say of each construction: which layer computes what, by which lemma."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.decimals import counted
from anchorhead.heads.atom import Atom
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.of_targets import step_of
from anchorhead.language.program import Program
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.network import Attention, Network, Softmax
from anchorhead.network.derivation import Entry
from anchorhead.proof.heads.neurons import Layer


def head_entries(
    atom: Atom, target: ScalarTarget | CallableTarget, exact: float, rounding: float, step: int, measured: bool = False
) -> tuple[Entry, ...]:
    """A head on a scalar is the one attention layer."""
    most, on = max(len(part) for part in atom.parts), (target.low, target.high)
    what, heads = short_name(target.name), len(atom.parts)
    return (Entry(1, "scalar head", what, heads, most, on, exact, rounding, (step,), measured=measured),)


def grid_entries(
    atom: GridAtom, what: str, error: float, step: int, layer: int | None = None, measured: bool = False
) -> tuple[Entry, ...]:
    """A head over a grid, in the last attention layer."""
    points = int(np.prod(atom.sides))
    return (Entry(layer, "grid head", short_name(what), 1, points, None, error, step=(step,), measured=measured),)


def neuron_entries(
    network: Network, layers: Sequence[Layer], program: Program, worst: tuple[float, float]
) -> tuple[Entry, ...]:
    """Layers of neurons, a line for each of their heads and each step that these compute; before them the attention
    that gathers tokens, if any. Where there are no neurons, the map that the network is; worst: how far that is off."""
    places = [place for place, layer in enumerate(network.layers) if isinstance(layer, Attention | Softmax)]
    found = []
    for place in places[: len(places) - len(layers)]:
        gathers = network.layers[place]
        heads = gathers.heads if isinstance(gathers, Attention) else 1
        what, given = "every token gets all tokens", (program.inputs[0],)
        found.append(Entry(place, "copy", what, heads, 1, None, 0.0, step=given))
    for number, (place, layer) in enumerate(zip(places[len(places) - len(layers) :], layers, strict=True)):
        steps = np.full(layer.neurons, step_of(number)) if layer.names is None else layer.names[:, 0]
        each = np.stack([layer.which, steps], axis=1)
        for (which, step), count in zip(*np.unique(each, axis=0, return_counts=True), strict=True):
            shape = layer.shapes[which]
            what = f"{short_name(str(shape.activation))} for {counted(int(count), 'neuron')}"
            heads, most = int(count) * len(shape.parts), max(len(part) for part in shape.parts)
            ends, off = (float(shape.low), float(shape.high)), (shape.exact, shape.rounding)
            found.append(Entry(place, "scalar head", what, heads, most, ends, *off, (int(step),)))
    if not layers:
        what = "an affine map, no function to compute"
        found.append(Entry(None, "affine", what, 0, 0, None, *worst, (program.output,)))
    return tuple(found)


def short_name(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
