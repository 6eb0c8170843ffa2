"""From records of targets to programs and back.

A record is how the provers of each construction know a target: its kind, and data and arrays of that kind. What a
network carries, and a file keeps, is the program, and beside it the hints of a record that say nothing of the function
itself. `parted` takes a record apart into the two, `joined` puts it together again, from the program: where the program
has not the form of the kind, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.chain import mlp_of_chain
from anchorhead.language.entries import Entries, require_same
from anchorhead.language.of_learners import program_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Affine, Apply, Attend, Opaque
from anchorhead.targets.descent import Descent
from anchorhead.targets.expressions.expression import Expression, postorder
from anchorhead.targets.kernel_smoother import KernelSmoother
from anchorhead.targets.many_learners import ManyLearners
from anchorhead.targets.mlp import Mlp
from anchorhead.targets.ramp import TruncatedLinear
from anchorhead.targets.record import TargetRecord
from anchorhead.targets.several import SeveralVariables
from anchorhead.targets.several_expressions import Expressions

Hints = tuple[dict[str, Any], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Kind:
    """One kind of record: its program, what is no part of the program, and the record of a program of this form."""

    program: Callable[[TargetRecord, int | None, Any], Program]
    hints: Callable[[TargetRecord], Hints]
    record: Callable[[Program, Mapping[str, Any], Mapping[str, np.ndarray]], TargetRecord]


def parted(record: TargetRecord, tokens: int | None, on: Any) -> tuple[Program, Hints]:
    """The program and the hints of a record; tokens: of the network, None without an axis of tokens; on: its box."""
    kind = _kind(record.kind)
    return kind.program(record, tokens, on), kind.hints(record)


def joined(name: str, program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    """The record of a kind that a program and hints are."""
    try:
        return _kind(name).record(program, data, arrays)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, AnchorheadError):
            raise
        raise AnchorheadError(f"the stored program is not one of the kind {name!r}: {error!r}") from error


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise AnchorheadError(f"targets of the kind {name!r} are not known: {', '.join(KINDS)}")
    return KINDS[name]


# functions of entries: heads, grids, parts, callables


def _scalar_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    data = record.data
    functions = tuple(Expression.from_json(one) for one in data["expressions"])
    names = tuple(str(name) for name in data["variables"])
    return Entries(functions, names, None, (float(data["low"]),), (float(data["high"]),)).program(
        axis=tokens is not None
    )


def _scalar_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    found = Entries.of(program)
    if len(found.variables) != 1:
        raise AnchorheadError("the stored program is not one of a single variable")
    own = {"expressions": found.expressions, "variables": list(found.variables)}
    return TargetRecord("scalar", {**own, "low": found.low[0], "high": found.high[0]})


def _several_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    plain = SeveralVariables.from_record(record)
    several = tokens if record.kind == "grid" else Expressions.from_record(record).tokens
    several = None if (several or 1) == 1 and record.kind == "grid" else several
    found = Entries(plain.expressions, plain.variables, several, plain.low, plain.high)
    return found.program(axis=tokens is not None)


def _grid_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    found = Entries.of(program)
    return TargetRecord("grid", {"expressions": found.expressions, **found.data})


def _expressions_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    found = Entries.of(program)
    tokens = program.input.tokens if program.token_axis else None
    own = {"expressions": found.expressions, **found.data, "tokens": tokens}
    return TargetRecord("expressions", {**own, **data}, arrays)


def _opaque_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    data = record.data
    names = tuple(str(name) for name in data["variables"])
    several = tokens if tokens is not None and tokens > 1 else None
    if several is not None:
        names = tuple(f"x[{i},{j}]" for i in range(several) for j in range(len(names) // several))
    lipschitz = data.get("lipschitz")
    known = None if lipschitz is None else tuple(float(one) for one in np.atleast_1d(lipschitz))
    function = Opaque(str(data["opaque"]), names, known)
    ends = (tuple(float(one) for one in np.atleast_1d(data[end])) for end in ("low", "high"))
    outputs = int(data["outputs"])
    return Entries((function,) * outputs, names, several, *ends).program(axis=tokens is not None)


def _opaque_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    found = Entries.of(program)
    function = found.functions[0]
    if not isinstance(function, Opaque):
        raise AnchorheadError("the stored program is not one of a callable")
    own: dict[str, Any] = {"opaque": function.digest, **found.data, "outputs": len(found.functions)}
    if "samples" in data:
        lipschitz = None if function.lipschitz is None else function.lipschitz[0]
        own |= {"low": found.low[0], "high": found.high[0], "lipschitz": lipschitz}
        return TargetRecord("opaque scalar", {**own, **data})
    if function.lipschitz is not None:
        own["lipschitz"] = list(function.lipschitz)
    return TargetRecord("opaque several", {**own, **data})


# networks


def _mlp_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    target = Mlp.from_record(record)
    return program_of(target, on)


def _mlp_hints(record: TargetRecord) -> Hints:
    data = {
        name: value for name, value in record.data.items() if name not in ("activations", "tokens", "name", "variables")
    }
    own = {"readout.weight", "readout.bias", "readout.weight_error", "readout.bias_error"}
    own |= {f"{k}.{part}" for k in range(len(record.data["activations"])) for part in (
        "weight", "bias", "weight_error", "bias_error", "which"
    )}  # fmt: skip
    return data, {name: array for name, array in record.arrays.items() if name not in own}


def mlp_of(program: Program, kept: Any = ()) -> Mlp:
    """The feed-forward network that a program is; kept: of which hidden layers neurons do nothing, and are computed."""
    target = mlp_of_chain(program)
    if target is None:
        raise AnchorheadError("the stored program is not a feed-forward network")
    flags = [bool(flag) for flag in kept] + [False] * (len(target.hidden) - len(kept))
    hidden = [replace(layer, kept=flag) for layer, flag in zip(target.hidden, flags, strict=True)]
    target = replace(target, hidden=tuple(hidden))
    require_same(program, program_of(target), "a feed-forward network")
    return target


def _mlp_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    own = mlp_of(program, data.get("kept", ())).record()
    return TargetRecord("mlp", {**data, **own.data}, {**arrays, **own.arrays})


# truncated linear functions, kernel smoothers


def _ramp_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    return program_of(TruncatedLinear.from_record(record), on)


def _ramp_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    _, affine, apply = program.steps
    if not isinstance(affine, Affine) or not isinstance(apply, Apply) or not isinstance(apply.functions[0], Expression):
        raise AnchorheadError("the stored program is not one of truncated linear functions")
    functions = [function for function in apply.functions if isinstance(function, Expression)]
    cut = next(node for one in functions for node in postorder(one) if node.op == "clip")
    low, high = (float(arg.data or 0.0) for arg in cut.args[1:3])
    chains = [_chain(functions[k], cut) for k in apply.which]
    switches = chains[0][0]
    features = np.array([own for _, own in chains]).argmax(axis=0)
    weight, bias = affine.terms[0].weight, affine.bias
    target = TruncatedLinear(weight[:, 0].copy(), bias[:, 0].copy(), low, high, np.array(switches), features)
    require_same(program, program_of(target), "one of truncated linear functions")
    return target.record()


def _chain(function: Expression, cut: Expression) -> tuple[list[float], list[bool]]:
    """The switches of where(s <= switch, this, else the rest), and on which pieces the function is the cut."""
    switches, own = [], []
    while function.op == "where":
        _, at, then, function = function.args
        switches.append(float(at.data or 0.0))
        own.append(then is cut)
    return switches, [*own, function is cut]


def _smoother_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    return program_of(KernelSmoother.from_record(record), on)


def _smoother_hints(record: TargetRecord) -> Hints:
    return {"amplitudes": "amplitudes" in record.arrays}, {}


def _smoother_record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
    return smoother_of(program, bool(data.get("amplitudes"))).record()


def smoother_of(program: Program, amplitudes_given: bool = False) -> KernelSmoother:
    """The kernel smoother that a program is."""
    named = {name: step for name, step in zip(program.names, program.steps, strict=True) if isinstance(step, Affine)}
    attend = program.steps[program.output]
    if not isinstance(attend, Attend):
        raise AnchorheadError("the stored program is not a kernel smoother")
    if not {"c", "b", "a", "responses"} <= named.keys():
        raise AnchorheadError("the program is not a kernel smoother, the one softmax mean that can be compiled")
    centres, width, amplitudes, responses = (named[name].bias for name in ("c", "b", "a", "responses"))
    plain = None if (amplitudes == 1).all() and not amplitudes_given else amplitudes[:, 0]
    target = KernelSmoother(centres, responses, width[0], plain)
    require_same(program, program_of(target), "a kernel smoother")
    return target


# learners


def _learner_program(record: TargetRecord, tokens: int | None, on: Any) -> Program:
    return program_of((Descent if record.kind == "descent" else ManyLearners).from_record(record))


def _learner_record(name: str) -> Callable[..., TargetRecord]:
    def record(program: Program, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TargetRecord:
        """The hints hold all that a learner is; the program must be that of this learner."""
        found = TargetRecord(name, data, arrays)
        require_same(program, _learner_program(found, None, None), "the descent that its hints describe")
        return found

    return record


def _all(record: TargetRecord) -> Hints:
    return dict(record.data), dict(record.arrays)


def _none(record: TargetRecord) -> Hints:
    return {}, {}


def _only(*names: str) -> Callable[[TargetRecord], Hints]:
    return lambda record: ({name: record.data[name] for name in names if name in record.data}, dict(record.arrays))


KINDS: dict[str, Kind] = {
    "scalar": Kind(_scalar_program, _none, _scalar_record),
    "opaque scalar": Kind(_opaque_program, _only("samples"), _opaque_record),
    "grid": Kind(_several_program, _none, _grid_record),
    "expressions": Kind(_several_program, _only("join", "neurons", "widths"), _expressions_record),
    "opaque several": Kind(_opaque_program, _only("cells"), _opaque_record),
    "mlp": Kind(_mlp_program, _mlp_hints, _mlp_record),
    "truncated linear": Kind(_ramp_program, _none, _ramp_record),
    "kernel smoother": Kind(_smoother_program, _smoother_hints, _smoother_record),
    "descent": Kind(_learner_program, _all, _learner_record("descent")),
    "many learners": Kind(_learner_program, _all, _learner_record("many learners")),
}
