"""Files of format 2 named what a network approximates as one of ten kinds of target: here they become programs.

A kind had data and arrays of its own. What says something of the function goes into the program; what is left are the
hints of its proof, which a derivation keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.of_learners import program_of
from anchorhead.language.of_targets import opaque_program
from anchorhead.language.program import Program
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.language.targets.ramp import TruncatedLinear

Arrays = Mapping[str, np.ndarray]
Data = Mapping[str, Any]


def former_program(kind: str, data: Data, arrays: Arrays, tokens: int | None, on: Any, outputs: int) -> Program:
    """tokens: of the network, None without an axis of tokens; on: its box; outputs: how many it has in all."""
    match kind:
        case "scalar" | "grid" | "expressions":
            return _of_entries(kind, data, tokens)
        case "opaque scalar" | "opaque several":
            lipschitz = data.get("lipschitz")
            known = None if lipschitz is None else _numbers(lipschitz)
            ends = _numbers(data["low"]), _numbers(data["high"])
            names = tuple(str(name) for name in data["variables"])
            return opaque_program(str(data["opaque"]), names, tokens, ends, int(data.get("outputs", outputs)), known)
        case "mlp":
            return program_of(_mlp(data, arrays), on)
        case "truncated linear":
            given = (np.array(arrays[name]) for name in ("w", "t", "switches", "features"))
            w, t, switches, features = given
            return program_of(TruncatedLinear(w, t, float(data["low"]), float(data["high"]), switches, features), on)
        case "kernel smoother":
            given = (arrays[name] for name in ("centres", "responses", "bandwidth"))
            return program_of(KernelSmoother(*given, amplitudes=arrays.get("amplitudes")), on)
        case "descent":
            return program_of(Descent.from_json(data))
        case "many learners":
            return program_of(ManyLearners.from_json(data))
    raise AnchorheadError(f"targets of the kind {kind!r} are not known")


def former_hints(kind: str, data: Data) -> dict[str, Any]:
    """What a derivation keeps: of learners all, of functions that are known by their values these."""
    if kind in ("descent", "many learners"):
        return dict(data)
    return {"samples": data["samples"]} if "samples" in data else {}


def _of_entries(kind: str, data: Data, tokens: int | None) -> Program:
    functions = tuple(Expression.from_json(one) for one in data["expressions"])
    names = tuple(str(name) for name in data["variables"])
    if tokens is not None and kind != "grid":
        tokens = data.get("tokens") or 1
    return Entries(functions, names, _numbers(data["low"]), _numbers(data["high"]), tokens).program()


def _mlp(data: Data, arrays: Arrays) -> Mlp:
    hidden = [
        Hidden(
            _affine(str(number), arrays),
            tuple(Expression.from_json(one) for one in activations),
            arrays[f"{number}.which"],
            bool(data["kept"][number]),
        )
        for number, activations in enumerate(data["activations"])
    ]
    tokens = None if data["tokens"] is None else int(data["tokens"])
    variables = tuple(str(name) for name in data.get("variables", ()))
    return Mlp(tuple(hidden), _affine("readout", arrays), tokens, str(data["name"]), variables)


def _affine(name: str, arrays: Arrays) -> Affine:
    errors = (arrays.get(f"{name}.{part}_error") for part in ("weight", "bias"))
    return Affine(arrays[f"{name}.weight"], arrays[f"{name}.bias"], *errors)


def _numbers(given: Any) -> tuple[float, ...]:
    return tuple(float(one) for one in np.atleast_1d(given))
