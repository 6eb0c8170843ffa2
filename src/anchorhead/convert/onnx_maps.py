"""Affine maps of what is known, with the rounding that multiplying them out has cost.

The graph of an ONNX file is followed with its values written as sums over *sources* (the input, and each activation's
results): value = bias + sum_s W_s s. The matrices are sparse, since pictures and tokens make them so. Every entry
carries a bound on its distance from the exact product of the file's numbers, so that nothing is lost unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy import sparse

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.underflow import LEAST, lost

MAX_ENTRIES = 20_000_000
"""How many numbers that are not 0 a map may hold."""
MAX_WORK = 400_000_000
"""How many multiplications and copies may be done for one file."""
MAX_HELD = 100_000_000
"""How many numbers the constants and maps that are made on the way may hold together."""
UNIT = 2.0**-53
Matrix = sparse.csr_array


@dataclass(eq=False)
class Work:
    """What may still be done."""

    left: int = MAX_WORK
    room: int = MAX_HELD

    def spend(self, work: int, entries: int = 0) -> None:
        self.left -= int(work)
        if entries > MAX_ENTRIES:
            raise AnchorheadError(
                f"as a linear map it has up to {entries:,} weights that are not 0: at most {MAX_ENTRIES:,} are allowed"
            )
        if self.left < 0:
            raise AnchorheadError(f"the graph needs more than {MAX_WORK:,} multiplications to be written out")

    def hold(self, numbers: int) -> None:
        self.room -= int(numbers)
        if self.room < 0:
            raise AnchorheadError(f"what the graph makes on the way holds more than {MAX_HELD:,} numbers")


@dataclass(frozen=True, eq=False)
class Map:
    """bias + sum over sources of terms[s] @ s; `errors` and `bias_error` bound what rounding did to each entry."""

    terms: dict[int, Matrix]
    bias: Float[np.ndarray, " outputs"]
    errors: dict[int, Matrix] = field(default_factory=dict)
    bias_error: Float[np.ndarray, " outputs"] | None = None

    @classmethod
    def identity(cls, source: int, size: int) -> Map:
        return cls({source: Matrix(sparse.eye_array(size, format="csr"))}, np.zeros(size))

    @property
    def size(self) -> int:
        return len(self.bias)

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return self.size + sum(one.nnz for one in (*self.terms.values(), *self.errors.values()))

    def of_bias(self) -> Float[np.ndarray, " outputs"]:
        return np.zeros(self.size) if self.bias_error is None else self.bias_error


def product(work: Work, matrix: Matrix, inner: Map) -> Map:
    """matrix @ (inner). A sum of n products errs by at most gamma_(n+1) of the sum of their sizes; where either factor
    only picks entries there is nothing to sum and nothing to round."""
    if _picks(matrix):
        return _picked(work, matrix, inner)
    size = abs(matrix)
    terms, errors = {}, {}
    for source, weight in inner.terms.items():
        terms[source] = _matmul(work, matrix, weight)
        rounding = None if _picks(Matrix(weight.T)) else _matmul(work, size, abs(weight)) * _gamma(matrix)
        known = inner.errors.get(source)
        parts = [] if known is None else [_matmul(work, size, known)]
        parts += [] if rounding is None else [rounding]
        parts += _underflow(work, matrix, weight, known)
        if parts:
            errors[source] = sum(parts[1:], parts[0]) * (1 + 1e-10)
    bias = matrix @ inner.bias
    bias_error = size @ inner.of_bias() + _gamma(matrix) * (size @ np.abs(inner.bias))
    bias_error = bias_error + np.diff(matrix.indptr) * lost((matrix.data,), (inner.bias, inner.of_bias()))
    return Map(terms, bias, errors, bias_error * (1 + 1e-10) if bias_error.any() else None)


def _picked(work: Work, matrix: Matrix, inner: Map) -> Map:
    terms = {source: _matmul(work, matrix, weight) for source, weight in inner.terms.items()}
    errors = {source: _matmul(work, matrix, error) for source, error in inner.errors.items()}
    bias_error = None if inner.bias_error is None else matrix @ inner.bias_error
    return Map(terms, matrix @ inner.bias, errors, bias_error)


def scaled(inner: Map, factor: Float[np.ndarray, " outputs"], factor_error: Float[np.ndarray, " outputs"]) -> Map:
    """factor_r times row r, the factors themselves known within factor_error."""
    if (factor == 1).all() and not factor_error.any():
        return inner
    rows, sizes = sparse.diags_array(factor, format="csr"), sparse.diags_array(np.abs(factor), format="csr")
    rounding = np.where(factor != 0, np.maximum(np.abs(factor) * 2 * UNIT, LEAST), 0.0)
    spread = sparse.diags_array(rounding + factor_error * (1 + 1e-10), format="csr")
    exact = bool((np.frexp(np.abs(factor[factor != 0]))[0] == 0.5).all()) and not factor_error.any()
    terms, errors = {}, {}
    for source, weight in inner.terms.items():
        terms[source] = Matrix(rows @ weight)
        known = inner.errors.get(source)
        parts = [] if known is None else [(sizes + spread) @ known]
        parts += [] if exact else [spread @ abs(weight)]
        sides_of = [one for one in (weight, known) if one is not None]
        if away := lost((factor, factor_error), tuple(one.data for one in sides_of)):
            parts += [_ones(one) * away for one in sides_of]
        if parts:
            errors[source] = Matrix(sum(parts[1:], parts[0])) * (1 + 1e-10)
    bias_error = (np.abs(factor) + factor_error) * inner.of_bias()
    if not exact:
        bias_error = bias_error + (rounding + factor_error) * np.abs(inner.bias)
    bias_error = bias_error + lost((factor, factor_error), (inner.bias, inner.of_bias()))
    return Map(terms, factor * inner.bias, errors, bias_error * (1 + 1e-10) if bias_error.any() else None)


def shifted(inner: Map, shift: Float[np.ndarray, " outputs"], shift_error: Float[np.ndarray, " outputs"]) -> Map:
    bias = inner.bias + shift
    error = inner.of_bias() + shift_error + np.where((inner.bias != 0) & (shift != 0), np.abs(bias) * 2 * UNIT, 0.0)
    return Map(inner.terms, bias, inner.errors, error * (1 + 1e-10) if error.any() else None)


def added(one: Map, two: Map) -> Map:
    terms, errors = dict(one.terms), dict(one.errors)
    for source, weight in two.terms.items():
        if source in terms:
            total = Matrix(terms[source] + weight)
            parts = [
                abs(total) * (2 * UNIT),
                *(e for e in (errors.get(source), two.errors.get(source)) if e is not None),
            ]
            errors[source] = Matrix(sum(parts[1:], parts[0])) * (1 + 1e-10)
            terms[source] = total
        else:
            terms[source] = weight
            if source in two.errors:
                errors[source] = two.errors[source]
    return shifted(Map(terms, one.bias, errors, one.bias_error), two.bias, two.of_bias())


def stacked(maps: Iterable[Map]) -> Map:
    """The results of several maps, one after the other."""
    parts = list(maps)
    terms, errors = {}, {}
    for source in dict.fromkeys(source for part in parts for source in part.terms):
        width = next(sides(part.terms[source])[1] for part in parts if source in part.terms)
        blank = [sparse.csr_array((part.size, width)) for part in parts]
        terms[source] = Matrix(sparse.vstack([p.terms.get(source, b) for p, b in zip(parts, blank, strict=True)]))
        if any(source in part.errors for part in parts):
            errors[source] = Matrix(sparse.vstack([p.errors.get(source, b) for p, b in zip(parts, blank, strict=True)]))
    bias_error = np.concatenate([part.of_bias() for part in parts])
    return Map(terms, np.concatenate([p.bias for p in parts]), errors, bias_error if bias_error.any() else None)


def picking(places: np.ndarray, size: int) -> Matrix:
    """The matrix that picks entries by their places in a vector of so many; -1 makes 0."""
    flat = places.ravel()
    rows = np.flatnonzero(flat >= 0)
    return Matrix((np.ones(len(rows)), (rows, flat[rows])), shape=(len(flat), size))


def sides(matrix: Matrix) -> tuple[int, int]:
    """How many rows and columns it has."""
    rows, columns = matrix.shape or (0, 0)
    return int(rows), int(columns)


def _picks(matrix: Matrix) -> bool:
    """Whether every row has at most one entry, and that is 1."""
    return bool((np.diff(matrix.indptr) <= 1).all() and (matrix.data == 1).all())


def _ones(matrix: Matrix) -> Matrix:
    """1 wherever the matrix has an entry."""
    return Matrix((np.ones(len(matrix.data)), matrix.indices, matrix.indptr), shape=sides(matrix))


def _underflow(work: Work, matrix: Matrix, weight: Matrix, known: Matrix | None) -> list[Matrix]:
    """What underflow may take from matrix @ weight and from bounds on it, entry by entry."""
    right = [weight] if known is None else [weight, known]
    away = lost((matrix.data,), tuple(one.data for one in right))
    return [_matmul(work, _ones(matrix), _ones(one)) * away for one in right] if away else []


def _gamma(matrix: Matrix) -> float:
    """2 (n + 2) u for sums of n products: above n u / (1 - n u), and roundings of the bound itself."""
    return 2 * (int(np.diff(matrix.indptr).max(initial=0)) + 2) * UNIT


def _matmul(work: Work, left: Matrix, right: Matrix) -> Matrix:
    (rows, inside), (_, across) = sides(left), sides(right)
    columns = np.bincount(left.indices, minlength=inside)
    steps = int(columns @ np.diff(right.indptr).astype(np.int64))
    work.spend(steps + rows, min(steps, rows * across))
    return Matrix(left @ right)
