"""Sweeps over the size of the paper's constructions: the theorem's bound, the proven one, the error found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.language.forms import ramp_of
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network
from anchorhead.plotting import Row, Sweep, Theorem
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.proof.heads.whole_head import read_network
from anchorhead.proof.search.search import worst_error

ON = 10.0
"""Inputs of a sweep lie between -ON and ON."""


def single_head_sweep(
    anchors: Sequence[int] | None = None,
    tokens: int | Sequence[int] = 8,
    features: int = 4,
    low: float = -1.0,
    high: float = 1.0,
    seed: int = 0,
    dtype: str = "float64",
    c: float | None = None,
    progress: Progress | bool | None = True,
) -> Sweep:
    """The single-head theorem with so many anchors p each; without anchors, p = n for each number of tokens.

    c: the sharpness for anchors one apart (beta = c / spacing^2); by default the best for each size.
    """
    if anchors is None:
        sizes = [(p, p) for p in _listed(tokens)]
    elif isinstance(tokens, int):
        sizes = [(p, tokens) for p in _listed(anchors)]
    else:
        raise AnchorheadError(f"anchors={anchors} and tokens={tokens}: with anchors, give one number of tokens")
    rows = []
    with progress_line(progress, "building networks") as tell:
        for p, n in sizes:
            w, t = sample_functions(n, features, low, high, seed)
            beta = None if c is None or p < 2 else c / ((high - low) / (p - 1)) ** 2
            network = truncated_linear(
                w, t, low, high, anchors=p, on=(-ON, ON), sharpness=beta, dtype=dtype, progress=False
            )
            rows.append(_row(network, size=p, heads=1, intervals=p - 1, seed=seed))
            tell(Status("building networks", share=len(rows) / len(sizes)))
    varied = "anchors p" if anchors is not None else "tokens n, with as many anchors"
    return _sweep("single-head", varied, rows, low, high, dtype)


def multi_head_sweep(
    heads: int | Sequence[int],
    tokens: int | Sequence[int] = 8,
    features: int = 4,
    low: float = -1.0,
    high: float = 1.0,
    seed: int = 0,
    dtype: str = "float64",
    c: float | None = None,
    progress: Progress | bool | None = True,
) -> Sweep:
    """The multi-head theorem for each number of heads H with each number of tokens n.

    c: the sharpness for cells one wide (beta = c / spacing^2), the same at every size, for a c that changed
    with the size would show in the slope; by default the best for the largest.
    """
    sizes = sorted(product(_listed(heads), _listed(tokens)), key=lambda size: ((size[1] - 2) * size[0], size[1]))
    varied, size_of = _varied(_listed(heads), _listed(tokens))
    rows: list[Row] = []
    with progress_line(progress, "building networks") as tell:
        for h, n in reversed(sizes):
            cells = (n - 2) * h
            w, t = sample_functions(n, features, low, high, seed)
            beta = None if c is None or cells < 1 else c / ((high - low) / cells) ** 2
            network = truncated_linear(
                w, t, low, high, heads=h, on=(-ON, ON), sharpness=beta, dtype=dtype, progress=False
            )
            c = sharpness_of(network) if c is None else c
            rows.append(_row(network, size=size_of(h, n), heads=h, intervals=cells, seed=seed))
            tell(Status("building networks", share=len(rows) / len(sizes)))
    return _sweep("multi-head", varied, rows[::-1], low, high, dtype)


def fitted_rate(rows: Sequence[Row]) -> float:
    """The slope of log(measured error) against log(number of intervals), by least squares."""
    if len({row.intervals for row in rows}) < 2:
        raise AnchorheadError(f"a rate of {len(rows)} rows: give at least two sizes")
    intervals, measured = (np.log([getattr(row, name) for row in rows]) for name in ("intervals", "measured"))
    return float(np.polyfit(intervals, measured, 1)[0])


def sharpness_of(network: Network) -> float:
    """c, for anchors one apart in the scale of the query: slopes of neighbours differ by 2c."""
    first = read_network(network, known_of(network)[1].on).heads[0]
    return float(np.diff(np.unique(first.slopes))[0] / 2)


def known_of(network: Network) -> tuple[TruncatedLinear, Certificate]:
    """The target and the certificate of a network of truncated linear functions."""
    if network.program is None or network.certificate is None:
        raise AnchorheadError("a network without a program and a certificate: truncated_linear gives both")
    return ramp_of(network.program), network.certificate


def sample_functions(tokens: int, features: int, low: float, high: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """w (tokens, features) and t (tokens,), such that every token reaches beyond both ends of the range."""
    if features < 1 or tokens < 1:
        raise AnchorheadError(f"{tokens} tokens of {features} features: at least 1 of each")
    directions, shifts = np.random.default_rng(seed).spawn(2)
    w = directions.normal(size=(tokens, features))
    t = shifts.uniform(min(low, high), max(low, high), tokens)
    needed = 1.5 * abs(high - low) / ON
    size = np.abs(w).sum(axis=1, keepdims=True)
    return w * np.maximum(1.0, needed / size), t


def _row(network: Network, size: int, heads: int, intervals: int, seed: int) -> Row:
    target, certificate = known_of(network)
    (theorem,) = certificate.reference
    worst = worst_error(network, target, certificate.on, seed)
    return Row(
        size=size,
        tokens=network.embed.tokens or 0,
        heads=heads,
        intervals=intervals,
        theorem=theorem.amount,
        proven=certificate.bound,
        measured=worst.error,
        c=sharpness_of(network),
    )


def _sweep(theorem: Theorem, varied: str, rows: list[Row], low: float, high: float, dtype: str) -> Sweep:
    rate = fitted_rate(rows) if len({row.intervals for row in rows}) > 1 else None
    return Sweep(theorem, varied, tuple(rows), low, high, dtype, rate)


def _varied(heads: list[int], tokens: list[int]) -> tuple[str, Callable[[int, int], int]]:
    """What a multi-head sweep varies, in words, and as a number for each H and n."""
    if len(tokens) == 1:
        return f"heads H, n = {counted(tokens[0], 'token')}", lambda h, n: h
    if len(heads) == 1:
        return f"tokens n, H = {heads[0]}", lambda h, n: n
    return "heads H and tokens n", lambda h, n: (n - 2) * h


def _listed(sizes: int | Sequence[int]) -> list[int]:
    listed = [sizes] if isinstance(sizes, int) else list(sizes)
    if not listed:
        raise AnchorheadError("a sweep over no sizes: give at least one")
    return listed
