"""Changes of weights: single ones, and several that cancel one another, at least where nothing is rounded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .file import File, Random, entry, large, pick


def one_weight(file: File, rng: Random) -> bool:
    def change(array: np.ndarray) -> None:
        place = entry(array, rng, filled=rng.random() < 0.7)
        match int(rng.integers(8)):
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
            case 6:
                array[place] = array[entry(array, rng, True)]
            case 7:
                array[place] = np.nextafter(array[place], array.dtype.type(large(rng)))

    return _changed(file, rng, change)


def swapped(file: File, rng: Random) -> bool:
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

    return _changed(file, rng, change)


def pair(file: File, rng: Random) -> bool:
    """The same large number added to two entries, or to one and taken from the other."""

    def change(array: np.ndarray) -> None:
        by, sign = large(rng), float(rng.choice([-1, 1]))
        one, two = entry(array, rng, rng.random() < 0.5), entry(array, rng, rng.random() < 0.5)
        array[one] += by
        array[two] += sign * by

    return _changed(file, rng, change)


def shifted(file: File, rng: Random) -> bool:
    """A number added to all entries of a slice, or all of them scaled."""

    def change(array: np.ndarray) -> None:
        axis = int(rng.integers(array.ndim))
        part = [slice(None)] * array.ndim
        part[axis] = int(rng.integers(array.shape[axis]))
        if rng.random() < 0.5:
            array[tuple(part)] += large(rng)
        else:
            array[tuple(part)] *= 2.0 ** rng.integers(-60, 61)

    return _changed(file, rng, change)


def balanced(file: File, rng: Random) -> bool:
    """One array times a power of two, another one over it; or both times it."""
    names = [pick(rng, file.weights()) for _ in range(2)]
    layer = pick(rng, file.rows("Attention"))
    if layer is not None and rng.random() < 0.7:
        both = [("query", "key"), ("value", "output"), ("query", "query"), ("key", "key")][int(rng.integers(4))]
        names = [layer[name]["tensor"] for name in both]
    by, sign = float(rng.integers(1, 140)), int(rng.choice([-1, 1]))
    for name, power in zip(names, (by, sign * by), strict=True):
        array = file.arrays[name]
        file.arrays[name] = array * array.dtype.type(2.0**power)
    return True


def silenced(file: File, rng: Random) -> bool:
    """A large number in a whole column of registers or biases, where logits are made."""
    field = "registers" if file.embed.get("registers") is not None and rng.random() < 0.6 else "bias"
    array = np.array(file.get(file.embed, field))
    column = int(rng.integers(array.shape[-1]))
    rows = rng.random(array.shape[:-1]) < rng.choice([0.3, 1.0])
    array[..., column] += (rows * large(rng)).astype(array.dtype)
    file.put(file.embed, field, array)
    return True


def drowned(file: File, rng: Random) -> bool:
    """Logits with a term more, large times large: where the feature is the same at every key, nothing but rounding."""
    layer = pick(rng, file.rows("Attention"))
    if layer is None or layer.get("grid") is not None:
        return False
    query, key = file.get(layer, "query"), file.get(layer, "key")
    one, two = rng.integers(query.shape[-1], size=2)
    power = 2.0 ** int(rng.integers(4, 31))
    for field, array, feature in (("query", query, one), ("key", key, two)):
        row = np.zeros((len(array), 1, array.shape[-1]), array.dtype)
        row[..., feature] = power
        file.put(layer, field, np.concatenate([array, row], axis=1))
    return True


def there_and_back(file: File, rng: Random) -> bool:
    """Two maps more, x + a and then x - a: the same in exact arithmetic."""
    place = int(rng.integers(1, len(file.layers) + 1))
    width = file.counts()[place - 1].width
    by = np.where(rng.random(width) < rng.choice([0.2, 1.0]), 2.0 ** int(rng.integers(1, 61)), 0.0)
    file.insert(place, *(file.linear(np.eye(width), sign * by) for sign in (1, -1)))
    return True


def opposed(file: File, rng: Random) -> bool:
    """A head twice more, its output times a and times -a: the same in exact arithmetic."""
    layer = pick(rng, file.rows("Attention"))
    if layer is None:
        return False
    heads = len(file.get(layer, "query"))
    h, power = int(rng.integers(heads)), 2.0 ** int(rng.integers(0, 61))
    for field in ("query", "key", "value", "output"):
        array = file.get(layer, field)
        if field != "output" and len(array) == 1 < heads:
            continue
        if field in ("key", "value") and len(array) == 1:
            continue
        signs = (power, -power) if field == "output" else (1.0, 1.0)
        file.put(layer, field, np.concatenate([array, *(sign * array[h : h + 1] for sign in signs)]))
    layer.pop("labels", None)
    return True


def _changed(file: File, rng: Random, change: Callable[[np.ndarray], None]) -> bool:
    name = pick(rng, file.weights())
    array = np.array(file.arrays[name])
    change(array)
    file.arrays[name] = array
    return True
