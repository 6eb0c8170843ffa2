"""What a network of many learners approximates: the descent that the rows of its prompt spell out.

A row says how it takes part in a step: x what w multiplies, v what its link is multiplied by, a and b what is taken
from the score and from the link, and which link it has. With N rows

    w_0 = start,    w <- w - (1/N) sum_i v_i (phi_i(w . x_i - a_i) - b_i).

Rates, penalties and labels are all in the rows: v_i = rate (N/n) x_i for n examples; a penalty is a row x = e_j,
v = rate N penalty e_j with phi(s) = s for each entry of w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number
from anchorhead.language.targets.losses import Loss


@dataclass(frozen=True, eq=False)
class Rows:
    """What a prompt says: N rows, and where the descent starts.

    x, v    (N, weights)      a, b    (N,)      loss    (N,) the number of each row's loss      start   (weights,)
    """

    x: Float[np.ndarray, "rows weights"]
    v: Float[np.ndarray, "rows weights"]
    a: Float[np.ndarray, " rows"]
    b: Float[np.ndarray, " rows"]
    loss: Int[np.ndarray, " rows"]
    start: Float[np.ndarray, " weights"]


@dataclass(frozen=True, eq=False)
class ManyLearners:
    """So many steps with links of the given losses, one of which each row of a prompt chooses.

    reach   |w . x - a| for which links that do not level off are meant to serve
    """

    losses: tuple[Loss, ...]
    steps: int
    features: int
    intercept: bool
    reach: float

    def __post_init__(self) -> None:
        names = [loss.name for loss in self.losses]
        if not names or len(set(names)) < len(names):
            raise AnchorheadError(f"losses={', '.join(names) or 'none'}: at least one, each with a name of its own")
        for loss in self.losses:
            if loss.form == "g(s, y)":
                raise AnchorheadError(f"the {loss} has a link of two variables: it cannot share a network with others")
        for name in ("steps", "features"):
            object.__setattr__(self, name, checked_count(name, getattr(self, name)))
        needed = "the largest |score - label| that is meant, a number above 0"
        object.__setattr__(self, "reach", checked_number("reach", self.reach, needed, above=0.0))
        object.__setattr__(self, "intercept", bool(self.intercept))

    @property
    def weights(self) -> int:
        return self.features + self.intercept

    def number(self, name: str) -> int:
        """Which of the losses has the name."""
        names = [loss.name for loss in self.losses]
        if name not in names:
            raise AnchorheadError(f"loss={name!r}: this network runs {', '.join(names)}")
        return names.index(name)

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.weights, len(self.losses))

    def link(self, rows: Rows, scores: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        """phi_i(s_i - a_i) - b_i in float64."""
        found = np.empty(len(scores))
        for k, loss in enumerate(self.losses):
            mine = rows.loss == k
            found[mine] = loss.link.values({"x": scores[mine] - rows.a[mine]})
        return found - rows.b

    def path(self, rows: Rows) -> Float[np.ndarray, "steps weights"]:
        """w_0, ..., w_steps as float64 computes them."""
        w = rows.start
        found = [w]
        for _ in range(self.steps):
            w = w - rows.v.T @ self.link(rows, rows.x @ w) / len(rows.a)
            found.append(w)
        return np.array(found)

    def to_json(self) -> dict[str, Any]:
        """All that it is, as it is saved with a network."""
        numbers = {name: getattr(self, name) for name in ("steps", "features", "intercept", "reach")}
        return {"losses": [loss.to_json() for loss in self.losses], **numbers}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ManyLearners:
        try:
            rest = {name: value for name, value in data.items() if name != "losses"}
            return cls(tuple(Loss.from_json(one) for one in data["losses"]), **rest)
        except (KeyError, TypeError) as error:
            raise AnchorheadError(f"what is stored is no network of many learners: {error!r}") from error

    def __str__(self) -> str:
        losses = ", ".join(map(str, self.losses))
        return f"{counted(self.steps, 'step')} of gradient descent on the {losses}, as a prompt says"


@dataclass(frozen=True)
class Columns:
    """Where the features of a prompt's rows are: x, v, a, b, a flag for each loss and sign, start, no example."""

    weights: int
    losses: int

    @property
    def x(self) -> slice:
        return slice(0, self.weights)

    @property
    def v(self) -> slice:
        return slice(self.weights, 2 * self.weights)

    @property
    def a(self) -> int:
        return 2 * self.weights

    @property
    def b(self) -> int:
        return 2 * self.weights + 1

    @property
    def flags(self) -> slice:
        """Two for each loss: rows as they are, and their negatives."""
        return slice(self.b + 1, self.b + 1 + 2 * self.losses)

    @property
    def start(self) -> int:
        return self.flags.stop

    @property
    def no_example(self) -> int:
        return self.start + 1

    @property
    def count(self) -> int:
        return self.no_example + 1

    def names(self) -> list[str]:
        signed = [f"{sign} row with link {k}" for k in range(self.losses) for sign in ("positive", "negative")]
        blocks = [f"{letter}{j}" for letter in "xv" for j in range(self.weights)]
        return [*blocks, "off the score", "off the link", *signed, "start", "is no example"]


def flags(which: Int[np.ndarray, " rows"], losses: int, negative: bool) -> Float[np.ndarray, "rows flags"]:
    """The flags of rows with the given losses; -1 for none."""
    return (2 * which[:, None] + negative == np.arange(2 * losses)).astype(np.float64) * (which >= 0)[:, None]


def rows_of(array: Any, target: ManyLearners) -> Rows:
    """What a prompt (2 (rows + 1), columns) says, in float64; refuses what is no prompt of this network."""
    c = target.columns
    half = len(array) // 2
    up, down = np.asarray(array[:half], np.float64), np.asarray(array[half:], np.float64)
    signed = [*range(c.b + 1), c.start]
    which = np.where(up[:, c.flags].any(axis=1), up[:, c.flags].argmax(axis=1) // 2, -1)
    good = (
        np.array_equal(up[:, signed], -down[:, signed])
        and np.array_equal(up[:, c.flags], flags(which, c.losses, False))
        and np.array_equal(down[:, c.flags], flags(which, c.losses, True))
        and np.array_equal(up[:, c.no_example], (which < 0).astype(np.float64))
        and np.array_equal(down[:, c.no_example], up[:, c.no_example])
        and np.array_equal(up[:, c.start], up[:, c.no_example])
        and up[:, c.start].sum() == 1
        and not up[which < 0][:, [*range(c.weights), c.a, c.b]].any()
        and half > 1
    )
    if not good:
        raise AnchorheadError(
            "this is no prompt of many learners: rows, their negatives with flags of their own, and one row for the "
            "start. net.prompt(X, y, loss=..., rate=...) makes it so"
        )
    rows = up[which >= 0]
    start = up[which < 0][0, c.v]
    return Rows(rows[:, c.x], rows[:, c.v], rows[:, c.a], rows[:, c.b], which[which >= 0], start)
