"""Programs of all that can be approximated: each kind of target, written in the one language."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import Entries, applied_to_entries
from anchorhead.language.expressions.build import ZERO, number, variable, where
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Program, Writer
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Affine as AffineStep
from anchorhead.language.steps import Apply, Attend, Opaque, Term
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.mlp import Affine, Mlp
from anchorhead.language.targets.opaque import CallableTarget
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.language.targets.scalar import ScalarTarget


@singledispatch
def program_of(target: Any, on: Any = None) -> Program:
    """The program that a target is. on: the box of its inputs, where a target has none."""
    raise AnchorheadError(f"a {type(target).__name__} is no target: there is no program for it")


@program_of.register
def _scalar(target: ScalarTarget, on: Any = None) -> Program:
    return Entries(target.expressions, (target.variable,), (target.low,), (target.high,), 1).program()


@program_of.register
def _several(target: SeveralVariables, on: Any = None) -> Program:
    return target.program()


def program_of_parts(target: SeveralVariables) -> Program:
    """The target as its network is built: neurons in layers, and functions of a few variables each, added up. Of
    several tokens even linear maps take neurons."""
    writer, tokens, network = Writer(), target.tokens or 1, target.parts.network
    network = network.with_neurons() if network is not None and tokens > 1 else network
    shape, last = (tokens, len(target.variables) // tokens), (tokens, target.columns)
    names = target.variables if tokens == 1 else tuple(f"x[i,{j}]" for j in range(shape[1]))
    x = writer.input(names, *(np.reshape(end, shape) for end in (target.low, target.high)), tokens=tokens)
    sums = AffineStep((), np.zeros(last))
    if network is not None:
        sums = _read_out(writer, network, x, shape, last)
    terms = list(sums.terms)
    for part in target.parts.grids:
        functions = [part.expressions[output] for output in part.outputs]
        weight = np.eye(target.outputs)[:, list(part.outputs)]
        place = applied_to_entries(writer, x, functions, target.variables, tokens)
        terms.append(Term(place, weight if tokens == 1 else weight.reshape(*last, 1, len(functions))))
    place = writer.add(AffineStep(tuple(terms), sums.bias, sums.bias_radius))
    return writer.program(place, token_axis=target.tokens is not None)


@program_of.register
def _mlp(target: Mlp, on: Any = None) -> Program:
    writer = Writer()
    tokens = target.tokens or 1
    shape = tokens, target.inputs // tokens
    names: tuple[str, ...] = ("",) * shape[1]
    if target.variables:
        names = target.variables if tokens == 1 else tuple(f"x[i,{j}]" for j in range(shape[1]))
    low, high = _ends(on, shape)
    x = writer.input(names, low, high, tokens=tokens)
    place = writer.add(_read_out(writer, target, x, shape, (tokens, target.outputs // tokens)))
    return writer.program(place, token_axis=target.tokens is not None, title=target.name)


def step_of(layer: int) -> int:
    """Which step of the program of a network applies the functions of a hidden layer: before it are the input, and an
    affine map for each."""
    return 2 + 2 * layer


def _read_out(writer: Writer, target: Mlp, place: int, width: tuple[int, int], last: tuple[int, int]) -> AffineStep:
    """The hidden layers of a quantity so wide are written; what is read out of the last, as wide as is said, is not."""
    for hidden in target.hidden:
        place = writer.add(_affine_step(hidden.affine, place, width, (1, hidden.neurons)))
        width = (1, hidden.neurons)
        argument = next((one.variables[0] for one in hidden.activations if one.variables), "x")
        place = writer.add(Apply(hidden.activations, hidden.which, (place,), (argument,)))
    return _affine_step(target.readout, place, width, last)


@program_of.register
def _truncated(target: TruncatedLinear, on: Any = None) -> Program:
    writer = Writer()
    tokens, inputs = target.w.shape
    low, high = _ends(on, (tokens, inputs))
    x = writer.input(("",) * inputs, low, high, tokens=tokens)
    rows = np.asarray(target.w, float)[:, None, :]
    outputs = target.outputs
    weight = np.broadcast_to(rows, (tokens, outputs, inputs))
    bias = np.broadcast_to(np.asarray(target.t, float)[:, None], (tokens, outputs))
    s = writer.add(AffineStep((Term(x, weight),), bias), "s")
    cut = parse(f"clip(s, {target.low!r}, {target.high!r})", ("s",))
    return writer.program(writer.apply([_where_on(cut, target, f) for f in range(outputs)], (s,), ("s",), outputs))


@program_of.register
def _smoother(target: KernelSmoother, on: Any = None) -> Program:
    """Softmax of <(x, 1), (c / b^2, log a - sum c^2 / (2 b^2))>: what is common to all kernels is left out."""
    writer = Writer()
    low, high = _ends(on, (1, target.inputs))
    x = writer.input(("",) * target.inputs, low, high)
    centres = writer.constant(target.centres, "c")
    width = writer.constant(target.bandwidth[None], "b")
    amplitudes = np.ones(target.anchors) if target.amplitudes is None else target.amplitudes
    log = writer.apply(parse("log(a)", ("a",)), (writer.constant(amplitudes[:, None], "a"),), ("a",), 1)
    slopes = writer.apply(parse("c/b**2", ("c", "b")), (centres, width), ("c", "b"), target.inputs)
    squares = writer.apply(parse("c**2/b**2", ("c", "b")), (centres, width), ("c", "b"), target.inputs)
    first, last = np.eye(target.inputs + 1)[:, : target.inputs], np.eye(target.inputs + 1)[:, target.inputs :]
    half = -last @ np.ones((1, target.inputs)) / 2
    keys = writer.affine({slopes: first, squares: half, log: last}, np.zeros(target.inputs + 1), "keys")
    queries = writer.affine({x: first}, last[:, 0], "queries")
    values = writer.constant(target.responses, "responses")
    return writer.program(writer.add(Attend(values, queries, keys)), token_axis=False)


@program_of.register
def _callable(target: CallableTarget, on: Any = None) -> Program:
    known = None if target.lipschitz is None else (float(target.lipschitz),)
    return opaque_program(target.digest, ("x",), 1, ((target.low,), (target.high,)), target.outputs, known)


@program_of.register
def program_of_callable(target: CallableSeveral, on: Any = None, lipschitz: Lipschitz | None = None) -> Program:
    """lipschitz: what the user vouched for."""
    known = None if lipschitz is None else lipschitz.constants
    ends = target.low, target.high
    return opaque_program(target.digest, target.variables, target.tokens, ends, target.outputs, known)


def opaque_program(
    digest: str,
    names: tuple[str, ...],
    tokens: int | None,
    ends: tuple[tuple[float, ...], tuple[float, ...]],
    outputs: int,
    lipschitz: tuple[float, ...] | None,
) -> Program:
    """A function that is known by its values, of all entries of its input."""
    several = tokens or 1
    if several > 1:
        names = tuple(f"x[{i},{j}]" for i in range(several) for j in range(len(names) // several))
    return Entries((Opaque(digest, names, lipschitz),) * outputs, names, *ends, tokens).program()


def _ends(on: Any, shape: tuple[int, int]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The ends of every entry of an input."""
    if on is None:
        return None, None
    box = Box.of(on).broadcast_to(shape)
    return box.low, box.high


def _affine_step(affine: Affine, of: int, before: tuple[int, int], after: tuple[int, int]) -> AffineStep:
    """An affine map of flat vectors as one of tokens."""
    radius, bias_radius = affine.errors
    weight = affine.weight
    if before[0] > 1 or after[0] > 1:
        weight, radius = (array.reshape(*after, *before) for array in (weight, radius))
    return AffineStep((Term(of, weight, radius),), affine.bias.reshape(after), bias_radius.reshape(after))


def _where_on(cut: Expression, target: TruncatedLinear, feature: int) -> Expression:
    """The cut where the output feature is this one, else 0."""
    result = cut if target.features[-1] == feature else ZERO
    for switch, own in reversed(list(zip(target.switches, target.features[:-1], strict=True))):
        result = where("<=", variable("s"), number(float(switch)), cut if own == feature else ZERO, result)
    return result
