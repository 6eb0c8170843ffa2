"""That two programs are the same function on a box, up to an error: both as values in one algebra, and compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, precision
from anchorhead.verify.equality.algebra import Algebra
from anchorhead.verify.equality.asinh import with_asinh
from anchorhead.verify.equality.values import Value
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.program import Affine, Apply, Attend, Dot, Input, Normalise, Opaque, Program

BITS = 320
"""Of the balls: products of a few float64 are exact, and what cancels leaves next to nothing."""
CELLS = (1, 64, 1024)
"""Into so many cells the arguments of a function are cut until every condition of a rule is decided."""
Array = list[list[Value]]
"""Values of tokens and their features."""


def difference(written: Program, lowered: Program, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bounds (tokens, features) on |written - lowered| for inputs (tokens, features) between low and high."""
    with precision(BITS):
        algebra = Algebra(low, high)
        one, other = (_outputs(program, algebra, low.shape) for program in (written, lowered))
        shapes = [(len(values), len(values[0])) for values in (one, other)]
        require(shapes[0] == shapes[1], f"the program puts out {shapes[0]}, and what it was rewritten as {shapes[1]}")
        both = zip(one, other, strict=True)
        return np.array([[_bound(algebra, *pair) for pair in zip(*rows, strict=True)] for rows in both])


def _bound(algebra: Algebra, a: Value, b: Value) -> float:
    off = algebra.add(a, algebra.scaled(b, arb(-1)))
    return above(algebra.bound(off, arb(2) ** -60 * a.range.most))


def _outputs(program: Program, algebra: Algebra, shape: tuple[int, int]) -> Array:
    require(len(program.outputs) == 1, "a program of several outputs")
    found: list[Array] = []
    for place, step in enumerate(program.steps):
        try:
            found.append(_step(step, found, algebra, shape))
        except Undecided as error:
            raise NotVerified(
                f"step {place} of a program, {program.name(place)}, cannot be compared: {error} is not decided"
            ) from error
    return found[program.outputs[0]]


def _step(step: object, found: Sequence[Array], algebra: Algebra, shape: tuple[int, int]) -> Array:
    match step:
        case Input():
            require(not found, "a program of several inputs")
            return _rows(algebra.inputs, shape[1])
        case Affine():
            return _affine(step, found, algebra)
        case Apply():
            given = [found[of] for of in step.of]
            tokens = max(map(len, given))
            fits = all(len(q) in (1, tokens) and len(q[0]) in (1, len(step.which)) for q in given)
            require(fits, "functions and quantities of a program do not fit")
            return [[_applied(step, given, t, f, algebra) for f in range(len(step.which))] for t in range(tokens)]
        case Dot():
            return [[_inner(a, b, algebra) for b in found[step.b]] for a in found[step.a]]
        case Attend():
            return _attended(step, found, algebra)
        case Normalise():
            return [_normalised(step, row, algebra) for row in found[step.of]]
    raise NotVerified(f"a {type(step).__name__} is not compared")


def _affine(step: Affine, found: Sequence[Array], algebra: Algebra) -> Array:
    tokens, width = step.bias.shape
    for of, weight in zip(step.of, step.weights, strict=True):
        tokens = max(tokens, len(found[of]) if weight.ndim == 2 else len(weight))
    fits = len(step.bias) in (1, tokens)
    for of, weight in zip(step.of, step.weights, strict=True):
        fits = fits and (weight.shape[-1] == len(found[of][0])) and width == weight.shape[0 if weight.ndim == 2 else 1]
        across = weight.ndim == 4 and weight.shape[2] == len(found[of])
        fits = fits and (len(found[of]) in (1, tokens) if weight.ndim < 4 else across)
        fits = fits and (weight.ndim == 2 or len(weight) in (1, tokens))
    require(fits, "weights and quantities of a program do not fit")
    rows: Array = []
    for t in range(tokens):
        rows.append([])
        for f in range(width):
            terms = []
            for of, weight, radius in zip(step.of, step.weights, step.radii, strict=True):
                q = found[of]
                entries = [entry for token in q for entry in token] if weight.ndim == 4 else q[t % len(q)]
                row = _balls(_row(weight, t, f), None if radius is None else _row(radius, t, f))
                algebra.work.count(len(row))
                used = [(w, e) for w, e in zip(row, entries, strict=True) if not w.is_zero()]
                terms += [e if w == 1 else algebra.scaled(e, w) for w, e in used]
            radius = None if step.bias_radius is None else step.bias_radius[t % len(step.bias), f : f + 1]
            (bias,) = _balls(step.bias[t % len(step.bias), f : f + 1], radius)
            terms += [] if bias.is_zero() and terms else [algebra.constant(bias)]
            rows[-1].append(terms[0] if len(terms) == 1 else algebra.add(*terms))
    return rows


def _row(weight: np.ndarray, t: int, f: int) -> np.ndarray:
    """The weights of a token's feature."""
    return weight[f] if weight.ndim == 2 else weight[t % len(weight), f].ravel()


def _balls(numbers: np.ndarray, radii: np.ndarray | None) -> list[arb]:
    """The numbers that are meant: as they are written, or, where radii are, somewhere in balls around these."""
    if radii is None:
        return [arb(one) for one in numbers.tolist()]
    return [arb(*pair) for pair in zip(numbers.tolist(), radii.tolist(), strict=True)]


def _applied(step: Apply, given: Sequence[Array], t: int, f: int, algebra: Algebra) -> Value:
    function = step.functions[step.which[f]]
    if isinstance(function, Opaque):
        raise NotVerified("a function that is known by its values alone is not compared")
    at = {name: q[t % len(q)][f % len(q[0])] for name, q in zip(step.arguments, given, strict=True)}
    own = {name: at[name] for name in function.variables}
    function = with_asinh(function, own, algebra.work)
    for cells in CELLS:
        try:
            return algebra.of(function, own, cells)
        except Undecided:
            if cells == CELLS[-1]:
                raise
    raise NotVerified("no cells")


def _inner(a: Sequence[Value], b: Sequence[Value], algebra: Algebra) -> Value:
    return algebra.add(*(algebra.mul(x, y) for x, y in zip(a, b, strict=True)))


def _attended(step: Attend, found: Sequence[Array], algebra: Algebra) -> Array:
    values = found[step.values]
    if step.queries is None or step.keys is None:
        require(step.queries is step.keys and step.mask is None, "a mean with queries, keys or a mask is not compared")
        share = algebra.power(algebra.constant(len(values)), -1)
        return [[algebra.mul(share, algebra.add(*column)) for column in zip(*values, strict=True)]]
    rows = []
    for i, query in enumerate(found[step.queries]):
        seen = len(values) if step.mask is None else i + 1
        weights = [algebra.exp(_inner(query, key, algebra)) for key in found[step.keys][:seen]]
        share = algebra.power(algebra.add(*weights), -1)
        rows.append(
            [algebra.mul(share, _inner(weights, column[:seen], algebra)) for column in zip(*values, strict=True)]
        )
    return rows


def _normalised(step: Normalise, row: Sequence[Value], algebra: Algebra) -> list[Value]:
    require(step.norm in ("layer", "rms"), f"a norm {step.norm[:40]!r} is not compared")
    share = algebra.power(algebra.constant(len(row)), -1)
    if step.norm == "layer":
        mean = algebra.scaled(algebra.mul(share, algebra.add(*row)), arb(-1))
        row = [algebra.add(one, mean) for one in row]
    square = algebra.mul(share, algebra.add(*(algebra.power(one, 2) for one in row)))
    root = algebra.power(algebra.sqrt(algebra.add(square, algebra.constant(step.eps))), -1)
    return [algebra.mul(one, root) for one in row]


def _rows(entries: Sequence[Value], width: int) -> Array:
    return [list(entries[start : start + width]) for start in range(0, len(entries), width)]
