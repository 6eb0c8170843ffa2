"""What a walk carries along: the program's quantities, the arithmetic, claims and their proofs, and steps so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anchorhead.verify.claims import Claims, Explained, Unit
from anchorhead.verify.direct import Directly
from anchorhead.verify.forms import Forms, Quantities, joined, mapped
from anchorhead.verify.grids.tensor import Grids
from anchorhead.verify.named import Table
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.rounding import Arithmetic
from anchorhead.verify.series import Found

Tokens = dict[str, Forms]
"""What is known of the tokens of each kind."""


@dataclass(frozen=True)
class Step:
    """One thing that was checked: where, by which lemma, what, and the largest error that it leaves."""

    where: str
    lemma: str
    what: str
    error: float


@dataclass(frozen=True, eq=False)
class Reads:
    """What softmaxes give to the features of a token: weights (outputs, reads) of what is read (1, reads).

    size, terms   of each read: a bound on the sum of the absolute values of the numbers that it stands for, and how
                  many these are in the sum that makes the outputs
    off           (outputs,) how far the outputs are off beside that
    """

    weight: np.ndarray
    form: Forms
    size: np.ndarray
    terms: np.ndarray
    off: np.ndarray | float = 0.0


@dataclass(eq=False)
class Context:
    """tell: told how many layers are done, of how many, and what comes next. grids: what grids are allowed. series:
    those by which heads may be computed. named: what softmaxes are said to compute."""

    exact: Exact
    model: Arithmetic
    named: Table
    tell: Callable[[int, int, str], object] = lambda done, total, what: None
    steps: list[Step] = field(default_factory=list)
    grids: Grids | None = None
    series: Sequence[Found] = ()

    def __post_init__(self) -> None:
        self.claims = Claims(self.exact, self.model)
        self.directly = Directly(self.model, self.series)

    @property
    def quantities(self) -> Quantities:
        return self.exact.quantities

    def map(self, weight: np.ndarray, bias: np.ndarray | None, x: Forms) -> Forms:
        """W x + b as the dtype computes it."""
        return mapped(weight, bias, x, self.quantities, self._summing)

    def apart(self, weight: np.ndarray, x: Forms) -> np.ndarray:
        """What W x rounds by beside what x is off by: two of these sums with equal rows are no further apart than what
        both round by."""
        whole = Forms(x.ids, *x.arrays[:2], x.error, np.zeros(x.shape))
        return self.map(weight, None, whole).rounding

    @property
    def _summing(self) -> Arithmetic:
        """That of sums: nothing is folded into them before the first series."""
        return self.model if self.directly.known else replace(self.model, direct=False)

    def size(self, x: Forms) -> np.ndarray:
        return x.size(self.quantities)

    def added(
        self, reads: Sequence[Reads], bias: np.ndarray | None, own: Forms | None, carry: np.ndarray | None
    ) -> Forms:
        """sum of all reads, of what a skip carries along of tokens' own features, and of the bias: one sum a token. All
        tokens have the same reads.

        What outputs are off beside reads counts twice: of its terms B no count knows, and to add B to a number A of the
        dtype rounds by |B| at most, A being that far from A + B."""
        tokens = 1 if own is None else own.shape[0]
        weights, forms = [one.weight for one in reads], [one.form.tokens([0] * tokens) for one in reads]
        size, terms = [np.tile(one.size, (tokens, 1)) for one in reads], [one.terms for one in reads]
        if own is not None and carry is not None:
            weights, forms = [*weights, carry], [*forms, own]
            size, terms = [*size, self.size(own)], [*terms, np.ones(own.shape[1])]
        matrix, several = np.concatenate(weights, axis=1), np.concatenate(terms)
        both, sizes = joined(forms, axis=1), np.concatenate(size, axis=1)
        y = mapped(matrix, bias, both, self.quantities, self._summing, sizes, several)
        off = 2 * sum(one.off for one in reads) * (1 + 1e-3 + 2 * self.model.gamma(several.sum() + 2))
        return Forms(y.ids, *y.arrays[:3], y.rounding + off)

    def explained(self, units: Sequence[Unit], where: str) -> list[Explained | None]:
        """By the lemma of scalar heads."""
        found = self.claims.explain(units)
        known = [one for one in found if one is not None]
        if known:
            worst = max(known, key=lambda one: one.error)
            heads = f"{len(known)} head{'s' * (len(known) != 1)}; the worst: {worst.words}"
            self.steps.append(Step(where, "scalar head", heads, worst.error))
        if len(known) < len(found):
            self.steps.append(Step(where, "interval", f"{len(found) - len(known)} heads of no function", np.inf))
        return found

    # what no lemma explains

    def anything(self, weight: np.ndarray, values: Forms, where: str) -> Reads:
        """A mean of values (keys, columns) lies between the smallest and the largest of them, whatever the logits."""
        low, high = values.ends(self.quantities)
        self.steps.append(Step(where, "interval", "a softmax that no lemma explains", float(np.max(high - low))))
        return self.mean(weight, values)

    def mean(self, weight: np.ndarray, values: Forms) -> Reads:
        """The same of what nobody is told."""
        low, high = values.ends(self.quantities)
        return self.hull(weight, low.min(axis=0)[None], high.max(axis=0)[None], len(low))

    def between(self, weight: np.ndarray, unit: Unit) -> Reads:
        """Every part of a unit lies between its values, up to what it is off where it is no softmax, or is a series."""
        low, high = (np.array([[sign * sum(part.most(sign) for part in unit.parts)]]) for sign in (-1, 1))
        found = self.hull(weight, low, high, sum(len(part.values) for part in unit.parts))
        return replace(found, size=np.maximum(found.size, sum(part.direct[1] for part in unit.parts)))

    def hull(self, weight: np.ndarray, low: np.ndarray, high: np.ndarray, keys: int) -> Reads:
        """Something between two ends, read from so many keys: computed weights add up to 1 up to gamma_(keys + 2)."""
        largest = np.maximum(np.abs(low), np.abs(high))
        room = (4 * self.model.gamma(keys + 2) + 1e-12) * largest + 8 * keys * self.model.tiny
        form = Forms.between(low - room, high + room)
        size = self.size(form)[0]
        return Reads(weight.reshape(len(weight), -1), form, size, np.ones(len(size)))


def every(tokens: Tokens) -> Forms:
    """All tokens, one after the other."""
    return joined([tokens[kind] for kind in ("input", "register", "state") if kind in tokens])
