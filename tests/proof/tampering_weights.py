"""Changes of weights."""

from __future__ import annotations

import numpy as np

from anchorhead.network import Attention, Network

from .tampering_paths import Random, arrays, at, changed_array, entry, large, parts, pick, rebuilt, with_at


def one_weight(network: Network, rng: Random) -> Network:
    def change(array: np.ndarray) -> None:
        place = entry(array, rng, filled=rng.random() < 0.7)
        match int(rng.integers(6)):
            case 0:
                array[place] *= 1 + 10 ** rng.uniform(-7, 1) * rng.choice([-1, 1])
            case 1:
                array[place] = 0.0
            case 2:
                array[place] *= -1
            case 3:
                array[place] = large(rng)
            case 4:
                array[place] += large(rng)
            case 5:
                array[place] *= 2.0 ** rng.integers(-60, 61)

    return changed_array(network, rng, change)


def swapped(network: Network, rng: Random) -> Network:
    """Two entries, or two slices along an axis, change places."""

    def change(array: np.ndarray) -> None:
        if rng.random() < 0.5:
            one, two = entry(array, rng, True), entry(array, rng, True)
            array[one], array[two] = array[two], array[one]
        else:
            axis = int(rng.integers(array.ndim))
            order = np.arange(array.shape[axis])
            one, two = rng.integers(len(order), size=2)
            order[[one, two]] = order[[two, one]]
            array[:] = np.take(array, order, axis=axis)

    return changed_array(network, rng, change)


def pair(network: Network, rng: Random) -> Network:
    """The same large number added to two entries, or to one and taken from the other."""

    def change(array: np.ndarray) -> None:
        by, sign = large(rng), float(rng.choice([-1, 1]))
        one, two = entry(array, rng, rng.random() < 0.5), entry(array, rng, rng.random() < 0.5)
        array[one] += by
        array[two] += sign * by

    return changed_array(network, rng, change)


def shifted(network: Network, rng: Random) -> Network:
    """A number added to all entries of a slice, or all of them scaled."""

    def change(array: np.ndarray) -> None:
        axis = int(rng.integers(array.ndim))
        part = [slice(None)] * array.ndim
        part[axis] = int(rng.integers(array.shape[axis]))
        if rng.random() < 0.5:
            array[tuple(part)] += large(rng)
        else:
            array[tuple(part)] *= 2.0 ** rng.integers(-60, 61)

    return changed_array(network, rng, change)


def balanced(network: Network, rng: Random) -> Network:
    """One array times a power of two, another one over it; or both times it."""
    paths = [pick(rng, arrays(network)) for _ in range(2)]
    attention = pick(rng, parts(network, Attention))
    if attention is not None and rng.random() < 0.7:
        names = [("query", "key"), ("value", "output"), ("query", "query"), ("key", "key")][int(rng.integers(4))]
        paths = [(*attention, name) for name in names]
    by, sign = float(rng.integers(1, 140)), int(rng.choice([-1, 1]))
    layers = network.layers
    for path, power in zip(paths, (by, sign * by), strict=True):
        array = at(layers, path)
        layers = with_at(layers, path, (array * array.dtype.type(2.0**power)).astype(array.dtype))
    return rebuilt(network, layers)


def silenced(network: Network, rng: Random) -> Network:
    """A large number in a whole column of registers or biases, where logits are made."""
    place = (0, "registers") if network.embed.registers is not None and rng.random() < 0.6 else (0, "bias")
    array = np.array(at(network.layers, place))
    column = int(rng.integers(array.shape[-1]))
    rows = rng.random(array.shape[:-1]) < rng.choice([0.3, 1.0])
    array[..., column] += (rows * large(rng)).astype(array.dtype)
    return rebuilt(network, with_at(network.layers, place, array))
