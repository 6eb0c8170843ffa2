"""The program: what a network is said to compute, exactly, in straight-line steps; read with every size checked.

A quantity is an array tokens x features. Steps and their meaning:

    Input      what is given, entry by entry in a box             Affine   sum_i W_i q_i + b
    Apply      functions of features, token by token              Dot      <a_i, b_j>
    Attend     sum_j softmax_j(<q_i, k_j>) v_j, or the mean        Normalise, Repeat
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require, several, whole
from anchorhead.verify.files import Stored
from anchorhead.verify.programs.expressions import Expression, is_plain, read_expression

MAX_STEPS = 100_000
MAX_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Input:
    """tokens None: any number, at most `most`. low, high (tokens or 1, features), or None inside a Repeat."""

    features: tuple[str, ...]
    tokens: int | None
    most: int | None
    low: np.ndarray | None
    high: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Affine:
    """weights by dimension: 2 on every token, 3 (tokens, outputs, features), 4 across tokens; radii: how far the number
    that is meant may be from an entry. bias (tokens or 1, outputs)."""

    of: tuple[int, ...]
    weights: tuple[np.ndarray, ...]
    radii: tuple[np.ndarray | None, ...]
    bias: np.ndarray
    bias_radius: np.ndarray | None


@dataclass(frozen=True)
class Opaque:
    """A function that the file does not hold: its digest, arguments, and the Lipschitz constants vouched for; and which
    of its outputs is meant."""

    digest: str
    arguments: tuple[str, ...]
    lipschitz: tuple[float, ...] | None
    output: int = 0


@dataclass(frozen=True, eq=False)
class Apply:
    """Feature r is functions[which[r]] of feature r of every argument (of feature 0 where there is only one)."""

    functions: tuple[Expression | Opaque, ...]
    which: np.ndarray
    of: tuple[int, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Dot:
    a: int
    b: int


@dataclass(frozen=True)
class Attend:
    values: int
    queries: int | None
    keys: int | None
    mask: str | None


@dataclass(frozen=True)
class Normalise:
    of: int
    norm: str
    eps: float


@dataclass(frozen=True, eq=False)
class Repeat:
    body: Program
    carried: tuple[int, ...]
    given: tuple[int, ...]
    times: int
    collect: bool


@dataclass(frozen=True, eq=False)
class Program:
    """steps, the places of outputs, conditions as stored, and whether inputs and outputs have an axis of tokens."""

    steps: tuple[Any, ...]
    names: tuple[str, ...]
    outputs: tuple[int, ...]
    conditions: tuple[Mapping[str, Any], ...]
    token_axis: bool

    def name(self, place: int) -> str:
        return self.names[place] if is_plain(self.names[place]) else f"q{place}"


def reads(step: Any) -> tuple[int, ...]:
    """The places of what a step is made of."""
    match step:
        case Dot():
            return step.a, step.b
        case Attend():
            return tuple(one for one in (step.values, step.queries, step.keys) if one is not None)
        case Repeat():
            return *step.carried, *step.given
        case Normalise():
            return (step.of,)
        case Affine() | Apply():
            return step.of
    return ()


def read_program(stored: Stored) -> Program:
    """The program of a file."""
    if stored.program is None:
        raise NotVerified("the file has no program: there is nothing to compare the network with")
    return _Reader(stored).program(stored.program, "program.", 0)


def read_lowered(stored: Stored) -> Program | None:
    """The program in the form of which the network was built, if the derivation has one: a hint, of which it is proven
    that it is the same function. Its numbers are taken as they are written, whatever they may have been rounded from.
    """
    known = stored.derivation or {}
    data = known.get("lowered")
    if data is None:
        old = "the file was saved before files held the parts of which such a network was built: build it again"
        require(known.get("kind") != "expressions", old)
        return None
    found = _Reader(stored).program(data, "lowered.", 0)
    steps = [
        replace(step, radii=(None,) * len(step.of), bias_radius=None) if isinstance(step, Affine) else step
        for step in found.steps
    ]
    return replace(found, steps=tuple(steps))


class _Reader:
    def __init__(self, stored: Stored) -> None:
        self.stored, self.count = stored, 0

    def program(self, data: Mapping[str, Any], prefix: str, depth: int) -> Program:
        rows = several(data.get("steps") if isinstance(data, dict) else None, "the steps of a program")
        require(depth <= MAX_DEPTH, "a Repeat in too many others")
        self.count += len(rows)
        require(self.count <= MAX_STEPS, f"a program of more than {MAX_STEPS:,} steps")
        steps = tuple(self._step(row, place, prefix, depth) for place, row in enumerate(rows))
        found: list[Any] = [data.get(name) for name in ("names", "outputs", "conditions", "token_axis")]
        names, outputs, conditions, axis = found
        good = all(isinstance(one, list) for one in (names, outputs, conditions)) and isinstance(axis, bool)
        good = good and len(names) == len(rows) and all(isinstance(name, str) for name in names) and bool(outputs)
        good = good and all(isinstance(one, dict) for one in conditions)
        require(good, "the names, outputs, conditions or axis of a program are damaged")
        return Program(steps, tuple(names), tuple(_place(one, len(rows)) for one in outputs), tuple(conditions), axis)

    def _step(self, row: Any, place: int, prefix: str, depth: int) -> Any:
        kind = row.get("step") if isinstance(row, dict) else None
        at = f"{prefix}{place}"
        try:
            match kind:
                case "Input":
                    return self._input(row, at)
                case "Affine":
                    return self._affine(row, at, place)
                case "Apply":
                    return self._apply(row, at, place)
                case "Dot":
                    a, b = (_place(one, place) for one in row["of"])
                    return Dot(a, b)
                case "Attend":
                    asked = [None if row[name] is None else _place(row[name], place) for name in ("queries", "keys")]
                    require(row["mask"] in (None, "causal"), f"a mask {str(row['mask'])[:40]!r} of step {place}")
                    return Attend(_place(row["values"], place), asked[0], asked[1], row["mask"])
                case "Normalise":
                    return Normalise(_place(row["of"], place), str(row["norm"]), float(row["eps"]))
                case "Repeat":
                    body = self.program(row["body"], f"{at}/", depth + 1)
                    carried, given = (tuple(_place(one, place) for one in row[name]) for name in ("carried", "given"))
                    return Repeat(body, carried, given, _place(row["times"], 2**40), bool(row["collect"]))
        except (KeyError, TypeError, ValueError) as error:
            raise NotVerified(f"step {place} of the program ({kind}) is damaged: {error!r}"[:200]) from error
        raise NotVerified(f"step {place} of the program is a {str(kind)[:40]!r}, which is not known")

    def _array(self, name: str, dims: tuple[int, ...], needed: bool = True) -> Any:
        if not needed and name not in self.stored.tensors:
            return None
        array = self.stored.array(name)
        good = array.ndim in dims and array.size > 0 and bool(np.isfinite(array).all())
        require(good, f"the array {name} has shape {array.shape}, or is not finite")
        return array

    def _input(self, row: Mapping[str, Any], at: str) -> Input:
        features = tuple(str(name) for name in row["features"])
        tokens, most = (None if row[name] is None else _place(row[name], 2**40) for name in ("tokens", "most"))
        low, high = (self._array(f"{at}.{end}", (2,), needed=False) for end in ("low", "high"))
        shape = (tokens or 1, len(features))
        good = (low is None) == (high is None) and tokens != 0 and bool(features)
        require(good, "an input without tokens or features, or with one end of its box")
        good = low is None or (low.shape == high.shape == shape and bool((low <= high).all()))
        require(good, f"the box of an input of {shape} has another shape, or is empty")
        return Input(features, tokens, most, low, high)

    def _affine(self, row: Mapping[str, Any], at: str, place: int) -> Affine:
        of = tuple(_place(one, place) for one in row["of"])
        weights = tuple(self._array(f"{at}.weight.{n}", (2, 3, 4)).astype(np.float64) for n in range(len(of)))
        radii = [self._array(f"{at}.radius.{n}", (2, 3, 4), needed=False) for n in range(len(of))]
        bias = self._array(f"{at}.bias", (2,)).astype(np.float64)
        radius = self._array(f"{at}.bias_radius", (2,), needed=False)
        for beside, one in zip((*weights, bias), (*radii, radius), strict=True):
            fits = one is None or (one.shape == beside.shape and bool((one >= 0).all()))
            require(fits, f"the radii of step {place} do not fit")
        return Affine(of, weights, tuple(radii), bias, radius)

    def _apply(self, row: Mapping[str, Any], at: str, place: int) -> Apply:
        functions = tuple(_function(one) for one in row["functions"])
        which = self._array(f"{at}.which", (1,))
        of = tuple(_place(one, place) for one in row["of"])
        arguments = tuple(str(name) for name in row["arguments"])
        known = which.dtype.kind == "i" and which.min() >= 0 and which.max() < len(functions)
        require(known, f"step {place} of the program applies functions that it has not")
        fits = len(of) == len(arguments) == len(set(arguments)) > 0
        require(fits, f"step {place} of the program calls {len(of)} quantities {arguments}")
        for function in functions:
            names = function.variables if isinstance(function, Expression) else function.arguments
            given = set(names) <= set(arguments)
            require(given, f"step {place} of the program applies a function of {names}, given {arguments}")
        return Apply(functions, which, of, arguments)


def _function(data: Any) -> Expression | Opaque:
    if not isinstance(data, dict) or "opaque" not in data:
        return read_expression(data)
    known = data["lipschitz"]
    lipschitz = None if known is None else tuple(float(one) for one in known)
    return Opaque(str(data["opaque"]), tuple(str(one) for one in data["arguments"]), lipschitz)


def _place(value: Any, limit: int) -> int:
    return whole(value, 0, limit, "a number of a program")
