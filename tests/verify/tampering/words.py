"""Changes of what a header says: the program, the derivation, its claims, the certificate, the dtype, the axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .file import File, Random, entry, large, pick

CONDITIONS: tuple[dict[str, Any], ...] = (
    {"kind": "excluded", "intervals": [[-0.5, 0.5]]},
    {"kind": "excluded", "intervals": [[-1e9, 0.0]]},
    {"kind": "at most so many examples", "most": 1},
    {"kind": "safe rate", "rate": 1e-3, "limit": 2.0},
    {"kind": "keeps within", "quantity": "s", "low": -1e-3, "high": 1e-3},
    {"kind": "assumed Lipschitz constant", "constants": [1e-6]},
    {"kind": "image of a norm", "norm": "layer", "scale": [1e-9], "shift": [0.0], "slack": 0.0, "rounding": 0.0},
)
"""Known ones, each of which would make a claim smaller if it were believed where it says nothing."""


def program(file: File, rng: Random) -> bool:
    """Another number or function in what the network is said to approximate."""
    return _changed(file, "program", rng)


def derivation(file: File, rng: Random) -> bool:
    """Another number in the hints of the proof."""
    return _changed(file, "derivation", rng)


def claims(file: File, rng: Random) -> bool:
    """Another number in what softmaxes are said to compute, or one of them left out, or named twice."""
    names = [name for name, array in file.arrays.items() if name.startswith("claims.") and array.size]
    name = pick(rng, names)
    if name is None:
        return False
    array, row = np.array(file.arrays[name]), int(rng.integers(len(file.arrays[name])))
    match int(rng.integers(4)):
        case 0 if name == "claims.softmaxes":
            array = np.delete(array, row, axis=0)
        case 1 if name == "claims.softmaxes":
            array = np.concatenate([array, array[row : row + 1]])
        case _:
            place = row, int(rng.integers(array.shape[1]))
            if array.dtype.kind == "i":
                array[place] += int(rng.choice([-1, 1, 2, 1000]))
            else:
                near = array[place] * (1 + 10 ** rng.uniform(-9, 1) * rng.choice([-1, 1]))
                array[place] = pick(rng, [near, near, 0.0, -array[place], large(rng)])
    file.arrays[name] = np.ascontiguousarray(array)
    return True


def entries(file: File, rng: Random) -> bool:
    """Entries of the derivation dropped, repeated, or with errors of 0."""
    found = (file.header["derivation"] or {}).get("entries")
    if not found:
        return False
    one = pick(rng, found)
    match int(rng.integers(3)):
        case 0:
            found.remove(one)
        case 1:
            found.append(dict(one))
        case _:
            one.update(error=float(rng.choice([0.0, 1e-300, 1e300])), rounding=0.0)
    return True


def _changed(file: File, what: str, rng: Random) -> bool:
    data = file.header[what]
    names = [name for name, array in file.arrays.items() if name.startswith(f"{what}.") and array.size]
    if names and rng.random() < 0.6:
        name = pick(rng, names)
        array = np.array(file.arrays[name])
        place = entry(array, rng, rng.random() < 0.7)
        if array.dtype.kind in "iu":
            array[place] = int(rng.integers(0, 3))
        else:
            array[place] = pick(rng, [array[place] * (1 + 10 ** rng.uniform(-7, 1)), 0.0, large(rng), -array[place]])
        file.arrays[name] = array
        return True
    name = pick(rng, sorted(data or ()))
    if name is None:
        return False
    data[name] = _edited(data[name], rng)
    return True


def _edited(value: Any, rng: Random) -> Any:
    """The same with one number, somewhere inside, changed."""
    match value:
        case bool():
            return not value
        case int():
            return value + int(rng.choice([-1, 1]))
        case float():
            return float(pick(rng, [value * 1.01, value + 0.1, -value, 0.0, 2 * value, 1e6]))
        case str() if value in FUNCTIONS:
            return pick(rng, list(FUNCTIONS))
        case list() if value:
            place = int(rng.integers(len(value)))
            return [_edited(one, rng) if n == place else one for n, one in enumerate(value)]
        case dict() if value:
            name = pick(rng, sorted(value))
            return {**value, name: _edited(value[name], rng)}
    return value


FUNCTIONS = ("tanh", "sin", "cos", "exp", "relu", "abs", "gelu", "gelu_tanh", "sigmoid", "erf", "square", "neg")


def bound(file: File, rng: Random) -> bool:
    """A smaller bound, its terms in proportion or left out."""
    now = file.header["certificate"]
    by = float(rng.choice([0.0, 0.01, 0.5, 0.9, 0.98, 0.995]))
    now["bound"] *= by
    kept = [] if rng.random() < 0.3 else now["terms"]
    now["terms"] = [{**term, "amount": by * term["amount"]} for term in kept]
    now["worst"] = None
    return True


def box(file: File, rng: Random) -> bool:
    """A larger box, a moved one, or one that is larger along one input; perhaps in the program too."""
    on, rather = file.header["certificate"]["on"], rng.random() < 0.6
    by, shift = float(rng.choice([1.001, 1.05, 2.0, 100.0, 1e6])), float(rng.choice([0.0, 0.0, 0.01, 1.0]))
    ends = [np.array(on[name], float) for name in ("low", "high")]
    some = rng.random(ends[0].shape) < rng.choice([0.5, 1.0])
    # shifts go one way, so that what is added is never taken away again
    moved = [np.where(some, by * end + way * shift, end) for end, way in zip(ends, (-1.0, 1.0), strict=True)]
    on.update(low=moved[0].tolist(), high=moved[1].tolist())
    for name, end, way in (("low", moved[0], np.minimum), ("high", moved[1], np.maximum)):
        array = file.arrays.get(f"program.0.{name}")
        if array is not None and rather:
            # a row of a learner's prompt holds a 1 before y, which its program knows nothing of
            own = np.delete(end, -2) if end.ndim and end.shape[-1] > array.shape[-1] else end
            file.arrays[f"program.0.{name}"] = way(array, np.broadcast_to(own, array.shape))
    return True


def certificate(file: File, rng: Random) -> bool:
    """Other words, kinds, terms, evaluations; or a field less or more."""
    now = file.header["certificate"]
    match int(rng.integers(6)):
        case 0:
            now["evaluations"] = pick(rng, [["plain"], ["plain", "direct"], ["direct"], [], ["plain", "powers"]])
        case 1:
            amounts = pick(rng, [[], [0.0], [now["bound"]], [2 * now["bound"]]])
            typed = [{"kind": "rounding", "of": "", "amount": amount} for amount in amounts]
            now["terms"] = pick(rng, [typed, {f"term {n}": amount for n, amount in enumerate(amounts)}])
        case 2:
            now["worst"] = pick(rng, [None, {"error": 0.0}, {"error": 10 * now["bound"]}, 3])
        case 3:
            now["kind"] = pick(rng, ["proven", "measured", "given"])
        case 4:
            name = pick(rng, sorted(now))
            now[name] = _edited(now[name], rng)
        case _:
            now.pop(pick(rng, sorted(now)))
    return True


def conditions(file: File, rng: Random) -> bool:
    """A condition dropped, changed or added."""
    now = file.header["certificate"]["conditions"]
    match int(rng.integers(3)):
        case 0 if now:
            now.pop(int(rng.integers(len(now))))
        case 1 if now:
            place = int(rng.integers(len(now)))
            now[place] = _edited(now[place], rng)
        case _:
            now.append(dict(pick(rng, list(CONDITIONS))))
    return True


def dtype(file: File, rng: Random) -> bool:
    """All weights in the other type, and perhaps a certificate that says so; or such a certificate alone."""
    other = "float64" if file.dtype == np.float32 else "float32"
    which = int(rng.integers(3))
    for name in file.weights() if which else ():
        with np.errstate(all="ignore"):
            file.arrays[name] = file.arrays[name].astype(other)
    if which != 1:
        file.header["certificate"]["dtype"] = other
    return True


def axes(file: File, rng: Random) -> bool:
    place = file.header[str(rng.choice(["network", "program"]))]
    place["token_axis"] = not place["token_axis"]
    return True
