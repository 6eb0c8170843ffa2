"""Where things are in a network, and copies of it with one of them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from anchorhead.network import Attention, Embed, Linear, Network, Repeat

Random = np.random.Generator
Path = tuple[Any, ...]
"""How to get to a field: numbers of layers and names of fields, as in (1, "layers", 0, "skip", "weight")."""
LARGE = (1.0, 2.0, 100.0, 799.0, 800.0, 1000.0, 2000.0, 2.0**20, 2.0**40, 2.0**60, 2.0**100)


def at(layers: Any, path: Path) -> Any:
    for step in path:
        layers = layers[step] if isinstance(step, int) else getattr(layers, step)
    return layers


def with_at(thing: Any, path: Path, value: Any) -> Any:
    """A copy of layers, or of one, with another value at a path."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return (*thing[:step], with_at(thing[step], tuple(rest), value), *thing[step + 1 :])
    return replace(thing, **{step: with_at(getattr(thing, step), tuple(rest), value)})


def rebuilt(network: Network, layers: Any, **words: Any) -> Network:
    given = {one.name: getattr(network, one.name) for one in fields(Network) if one.init and one.name != "layers"}
    return Network(layers, **{**given, "outside": "ignore", **words})


def arrays(network: Network) -> list[Path]:
    """The paths of all weights."""
    return [path for path, value in walk(network) if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def parts(network: Network, kind: type) -> list[Path]:
    """The paths of all layers of a kind, those in a Repeat and skips included."""
    return [path for path, value in walk(network) if type(value) is kind]


def walk(network: Network) -> Iterator[tuple[Path, Any]]:
    def inside(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        yield path, value
        if isinstance(value, Embed | Linear | Attention | Repeat):
            for one in fields(value):
                yield from inside(getattr(value, one.name), (*path, one.name))
        elif isinstance(value, tuple) and path and path[-1] == "layers":
            for number, one in enumerate(value):
                yield from inside(one, (*path, number))

    for number, layer in enumerate(network.layers):
        yield from inside(layer, (number,))


def pick(rng: Random, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))] if choices else None


def changed_array(network: Network, rng: Random, change: Callable[[np.ndarray], None]) -> Network:
    path = pick(rng, arrays(network))
    array = np.array(at(network.layers, path))
    change(array)
    return rebuilt(network, with_at(network.layers, path, array))


def entry(array: np.ndarray, rng: Random, filled: bool) -> tuple[int, ...]:
    places = np.argwhere(array != 0) if filled else np.empty((0, array.ndim), int)
    if len(places):
        return tuple(places[rng.integers(len(places))])
    return tuple(int(rng.integers(side)) for side in array.shape)


def large(rng: Random) -> float:
    return float(rng.choice([-1, 1]) * rng.choice(LARGE))
