"""The series of heads as a network's derivation stores them: those alone are run, and a verifier reads them too."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.network.direct.heads import SoftmaxHead
from anchorhead.network.direct.series import Piece, Series
from anchorhead.network.direct.steps import DirectModule, Neurons
from anchorhead.network.direct.two_keys import TwoKeys

Finder = Callable[[np.ndarray, np.ndarray, np.ndarray, str], Series | TwoKeys | None]
"""The series of a head with these slopes, offsets and values in a dtype, or its sigmoid, if it has one."""

_Powers = tuple[tuple[int, float], ...]


def series_data(module: DirectModule) -> list[dict[str, Any]]:
    """The series and sigmoids that heads are computed by, as data."""
    neurons = [step for step in module.steps if isinstance(step, Neurons)]
    heads = [group.head for step in neurons for group in step.groups]
    found = [head.found for head in heads if not isinstance(head, SoftmaxHead)]
    unread = [series for step in neurons for series in step.unread]
    return [_as_json(asdict(series)) for series in dict.fromkeys([*found, *unread])]


def stored_series(data: Mapping[str, Any]) -> Finder:
    """Looks for the series of a head among those that are stored."""
    try:
        found = [_read(row) for row in data.get("series", ())]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnchorheadError(f"a stored series is damaged: {error!r}") from error
    known = {(one.slopes, one.offsets, one.values): one for one in found}

    def find(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Series | TwoKeys | None:
        a, g, v = (tuple(np.asarray(one, np.float64).tolist()) for one in (slopes, offsets, values))
        return known.get((a, g, v))

    return find


def _as_json(value: Any) -> Any:
    """What a file gives back as it is: JSON has no tuples and no infinities."""
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_as_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(row: Mapping[str, Any]) -> Series | TwoKeys:
    a, g, v = (tuple(float(x) for x in row[name]) for name in ("slopes", "offsets", "values"))
    if "rate" in row:
        return TwoKeys(a, g, v, *(float(row[name]) for name in ("rate", "lead", "scale", "shift")))
    origin, low, high, above, below = _quotient(row)
    scale, shift, error = (float(row[name]) for name in ("scale", "shift", "error"))
    reach = math.inf if row["reach"] is None else float(row["reach"])
    beside = tuple(Piece(*_quotient(one), float(one["scale"])) for one in row.get("beside", ()))
    return Series(a, g, v, origin, low, high, above, scale, shift, reach, error, below, beside)


def _quotient(row: Mapping[str, Any]) -> tuple[float, float, float, _Powers, _Powers]:
    low, high = (
        end if row[name] is None else float(row[name]) for name, end in (("low", -math.inf), ("high", math.inf))
    )
    above, below = (
        tuple((int(power), float(coefficient)) for power, coefficient in rows)
        for rows in (row["coefficients"], row.get("below", ()))
    )
    return float(row["origin"]), low, high, above, below
