"""What the rows of a prompt show, which a program does not say.

Rows are (x, 1, y), or for a loss of the margin (y x, y, 1), y being 1 or -1, and their negatives. Of many learners
they are (x, v, a, b, a flag for each link and sign, start, none): such a row takes part in w <- w - mean_i v_i (phi_i(w
. x_i - a_i) - b_i), and its negative has the other flag of its link. Where w begins is the v of one row that is no
example, none = 1, whose start is 1; that of its negative is -1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.learners.target import Descent

Row = tuple[tuple[float, str], ...]
"""In each column a number times an entry of an example; without a name, a constant."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The sorts of rows that a prompt has.

    rows      of examples: the link that they have, and what they hold; first all sorts, then their negatives
    begin     those that say where w begins, and its opposite; none if it begins with 0
    sizes     bounds on the columns
    factors   columns that are multiplied by w          values   those that move it
    off       the one that is taken off arguments of links, or None; less: off links; label: the link's second argument
    """

    rows: tuple[tuple[int, Row], ...]
    sizes: np.ndarray
    factors: range
    values: range
    off: int | None = None
    less: int | None = None
    label: int | None = None
    begin: tuple[Row, ...] = ()

    @property
    def second(self) -> int | None:
        """The column that a link depends on beside w, in whatever way."""
        return next((one for one in (self.label, self.less, self.off) if one is not None), None)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a prompt says: w <- w - rate mean_i v_i (phi_i(w . x_i - a_i, y_i) - b_i), from `start` on.

    x, v    (n, size)      a, b, y    (n,)      link    (n,) which of the links      start   (size,)
    """

    x: np.ndarray
    v: np.ndarray
    a: np.ndarray
    b: np.ndarray
    y: np.ndarray
    link: np.ndarray
    start: np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """c_i: v_i over x_i at the largest entry of x_i, up to rounding."""
        if self.v is self.x:
            return np.ones(len(self.x))
        place = np.abs(self.x).argmax(axis=1)[:, None]
        x, v = (np.take_along_axis(one, place, axis=1)[:, 0] for one in (self.x, self.v))
        found = np.divide(v, x, out=np.zeros_like(x), where=x != 0)
        require(bool((found >= 0).all() and np.isfinite(found).all()), "a row moves w away from where its link points")
        return found


def shown_of(target: Descent, form: str, sizes: np.ndarray) -> Shown:
    """By the form of the link."""
    size, d, signs = target.size, target.features, (1.0, -1.0)
    if not target.flags:
        names = [*(f"x{j}" for j in range(d)), *((f"x{d}", "") if form == "margin" else ("", "y"))]
        rows = tuple((0, tuple((sign, name) for name in names)) for sign in signs)
        off, less, label = (d + 1 if form == one else None for one in ("residual", "labelled", "both"))
        return Shown(rows, sizes, range(size), range(size), off, less, label)
    names = [*(f"{letter}{j}" for letter in "xv" for j in range(size)), "a", "b"]
    flags, none, start = range(2 * len(target.flags)), (0.0, ""), range(size, 2 * size)
    entries = [tuple((sign, name) for name in names) for sign in signs]
    which = [[tuple((float(one == 2 * k + s), "") for one in flags) for k in range(len(target.flags))] for s in (0, 1)]
    rows = tuple((k, (*entries[s], *which[s][k], none, none)) for s in (0, 1) for k in range(len(target.flags)))
    begin = tuple(
        (*((sign, f"w{j}") if j in start else none for j in range(len(names))), *(none for _ in flags), (sign, ""),
         (1.0, "")) for sign in signs
    )  # fmt: skip
    return Shown(rows, sizes, range(size), start, 2 * size, 2 * size + 1, None, begin)


def rows_of(prompt: np.ndarray, shown: Shown) -> tuple[Rows, Shown]:
    """What a prompt says, whose second half is the negatives of the first; and the sorts that it has."""
    up, down = np.array_split(prompt, 2)
    half, link = len(shown.rows) // 2, np.full(len(up), -1)
    pairs = [(k, row, shown.rows[half + n][1]) for n, (k, row) in enumerate(shown.rows[:half])]
    for k, row, negative in [*pairs, (len(pairs), *shown.begin)] if shown.begin else pairs:
        constant = np.array([not name for _, name in row])
        here, there = (np.array([number for number, _ in one]) for one in (row, negative))
        link[(up == here)[:, constant].all(axis=1) & (down == np.where(constant, there, -up)).all(axis=1)] = k
    example = link < half if shown.begin else np.ones(len(up), bool)
    good = (link >= 0).all() and example.any() and (~example).sum() == bool(shown.begin)
    require(bool(good), "a row of the prompt is no example, or the second half of a prompt is not its negative")
    start = up[~example][0, shown.values] if shown.begin else np.zeros(len(shown.values))
    up, link = up[example], link[example]
    a, b, y = (np.zeros(len(up)) if one is None else up[:, one] for one in (shown.off, shown.less, shown.second))
    x = up[:, shown.factors]
    rows = Rows(x, x if shown.values == shown.factors else up[:, shown.values], a, b, y, link, start)
    return rows, replace(shown, rows=tuple(one for one in shown.rows if one[0] in link))
