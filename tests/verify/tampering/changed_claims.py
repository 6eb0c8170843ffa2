"""Changes of what a derivation names: none makes a file say more than is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..files import Change

HEAD, RAMPS, TWO, GROUPS, GRID, CONSTANT = (
    "head, summed (float32)",
    "truncated linear, many heads (float32)",
    "two-layer, transformer (float32)",
    "attention-softmax, one token (float32)",
    "grid (float32)",
    "function of one variable, constant (float32)",
)


def _entry(name: str, place: tuple[int, int], value: float) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[f"claims.{name}"][place] = value

    return change


def _rows(of: Any) -> Change:
    """Other softmaxes."""

    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays["claims.softmaxes"] = np.ascontiguousarray(of(arrays["claims.softmaxes"]))

    return change


def _more(*by: int) -> Change:
    """Another softmax, so far from the first."""
    return _rows(lambda rows: np.concatenate([rows, rows[:1] + np.array(by)]))


def _times(name: str, column: int, by: float) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[f"claims.{name}"][:, column] *= by

    return change


def _none(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for name in [name for name in arrays if name.startswith("claims.")]:
        del arrays[name]


CLAIMS: dict[str, tuple[str, Change]] = {
    "no claims": (CONSTANT, _none),
    "a claim for another layer": (TWO, _entry("units", (0, 0), 0)),
    "a claim for a layer that is not there": (CONSTANT, _entry("units", (0, 0), 7)),
    "a claim for a token that is not there": (TWO, _entry("units", (0, 1), 2)),
    "a claim for a step that is not there": (HEAD, _entry("units", (0, 2), 3)),
    "a claim for a step that applies nothing": (HEAD, _entry("units", (0, 2), 1)),
    "a claim for another entry": (TWO, _entry("units", (0, 4), 1)),
    "a claim below all layers": (HEAD, _entry("units", (0, 0), -1)),
    "another scale": (HEAD, _times("numbers", 0, 1.01)),
    "another shift": (HEAD, _entry("numbers", (0, 1), 0.01)),
    "another factor": (TWO, _times("numbers", 2, 1.01)),
    "another constant": (TWO, _entry("numbers", (1, 3), -0.49)),
    "a number that is not finite": (HEAD, _entry("numbers", (0, 2), np.inf)),
    "another factor of a grid": (GRID, _entry("numbers", (0, 2), 2.0)),
    "a grid that may not be off": (GRID, _entry("numbers", (0, 4), 0.0)),
    "a claim for nothing": (TWO, _rows(lambda rows: rows[1:])),
    "a part left out": (HEAD, _rows(lambda rows: rows[1:])),
    "a head of a ramp left out": (RAMPS, _rows(lambda rows: rows[:1])),
    "a part twice": (HEAD, _rows(lambda rows: np.concatenate([rows, rows[:1]]))),
    "a softmax in two claims": (TWO, _more(1, 0, 0, 0)),
    "a part of a claim that is not there": (HEAD, _rows(lambda rows: rows + np.array([1, 0, 0, 0]))),
    "a group that is not there": (
        GROUPS,
        _more(0, 99, 0, 0),
    ),
    "a column that is not there": (TWO, _more(0, 0, 99, 0)),
    "values that are not there": (HEAD, _rows(lambda rows: rows + np.array([0, 0, 0, 1]))),
    "other values of a group": (GROUPS, _times("values", 0, 1.1)),
    "no values of a group": (
        GROUPS,
        lambda header, arrays: arrays.update({"claims.values": 0 * arrays["claims.values"]}),
    ),
}
