"""The lanes of a circuit: which tokens stand in each, and how much each attends to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anchorhead.network.stream import Kind
from anchorhead.plotting.circuit_view import Stage, counts_of


@dataclass(frozen=True)
class Lane:
    """Tokens of one kind from `first` to `last` in one lane; several are drawn as dots."""

    kind: Kind
    first: int
    last: int
    label: str
    x: float


def grouped(kind: Kind, count: int | None, most: int) -> list[Lane]:
    """Lanes of one kind: each token, or the first, dots and the last. -1 where the last is not known."""
    if count is None:
        return [Lane(kind, 0, 0, "0", 0), Lane(kind, 1, 1, "1", 0), Lane(kind, 2, -1, "", 0)]
    if count <= most:
        return [Lane(kind, i, i, str(i), 0) for i in range(count)]
    front = most - 2
    return [
        *(Lane(kind, i, i, str(i), 0) for i in range(front)),
        Lane(kind, front, count - 2, "", 0),
        Lane(kind, count - 1, count - 1, str(count - 1), 0),
    ]


def shares(stage: Stage, lanes: list[Lane], tokens: int | None) -> dict[tuple[int, int], float]:
    """For lanes that ask and lanes that are seen, the strongest head's attention; without an input, who may see whom.

    A lane of several tokens is seen as much as they are together, and asks as they do on average.
    """
    found: dict[tuple[int, int], float] = {}
    counts = counts_of(stage.enters, tokens)
    begin = [
        {kind: first for kind, first, _ in starts(counts, kinds, side)}
        for kinds, side in zip(
            (stage.asks, stage.sees), (0, 0) if stage.patterns is None else stage.patterns.shape[1:], strict=True
        )
    ]
    for a, asking in enumerate(lanes):
        for b, other in enumerate(lanes):
            if asking.kind not in stage.asks or other.kind not in stage.sees:
                continue
            if stage.patterns is None:
                last = max(asking.first, asking.last)
                found[a, b] = 0.3 if stage.layer.sees_token(asking.kind, last, other.kind, other.first) else 0.0
            elif stage.patterns.size:
                rows, columns = (
                    slice(start[lane.kind] + lane.first, start[lane.kind] + lane.last + 1)
                    for start, lane in zip(begin, (asking, other), strict=True)
                )
                found[a, b] = float(stage.patterns[:, rows, columns].sum(axis=2).mean(axis=1).max())
    return found


def starts(counts: dict[Kind, int | None], kinds: Sequence[Kind], total: int) -> list[tuple[Kind, int, int]]:
    """Where the tokens of each kind begin and end along one side of a pattern, which has `total` of them."""
    found, first = [], 0
    for kind in counts:
        if kind in kinds:
            last = min(first + (counts[kind] or 0), total)
            found.append((kind, first, last))
            first = last
    return found
