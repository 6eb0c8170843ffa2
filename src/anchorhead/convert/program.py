"""`ah.program`: what people write functions in, as one program of exact mathematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anchorhead.constructions.request import requested
from anchorhead.convert.convert import read
from anchorhead.convert.splines import spline_target
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.spec import is_expression


def program(
    model: Any,
    on: Any = None,
    *,
    tokens: int | None = None,
    features: int | None = None,
    activation: str | None = None,
    order: Sequence[str] | None = None,
    output: str | None = None,
) -> Program:
    """The program of expressions, or of a model: its steps, in exact arithmetic.

    model       expressions as `ah.approximate` takes them, "x*y + sin(z)", or a model as `ah.convert` takes it: a
                torch.nn.Sequential, a file of weights with activation=, an ONNX file, an MLP of scikit-learn, a spline,
                a Maxout, a KernelSmoother
    on          an interval for each variable, {"x": (-1, 1), "y": (0, 2)}, or (-1, 1) for the only one; of a model, a
                box such as (0, 1)
    tokens, features   of expressions: the input is (tokens, features); of a model, tokens= alone
    activation, order, output   of files, as in `ah.convert`

    returns   a Program: print(program) shows steps, shapes and ranges; program(x) are its values; g @ f is f, then g;
              `ah.compile` makes a network of it

        >>> program = ah.program("exp(x) + y", on={"x": (0, 1), "y": (-1, 1)})
        >>> print(program)
        input  1 x 2  [-1, 1]     x, y
        x      1 x 1  [0, 1]      x
        y      1 x 1  [-1, 1]     y
        q3     1 x 1  [0, 3.718]  exp(x) + y at x, y -> out
        >>> round(float(program([1.0, 0.5])[0]), 6)
        3.218282
    """
    model = without_sympy(model)
    if is_expression(model):
        for name, word in (("activation", activation), ("order", order), ("output", output)):
            if word is not None:
                raise AnchorheadError(f"{name}={word!r} is for files, not for expressions")
        return program_of(requested(model, on, tokens, features))
    if features is not None:
        raise AnchorheadError(f"features={features!r} is for expressions: a model has its own")
    target, _ = read(model, tokens, activation, output, order)
    if on is None and type(model).__module__.startswith("scipy.interpolate"):
        on = spline_target(model)[1]
    if on is None:
        raise AnchorheadError("on is missing: the box of inputs, as in on=(0, 1)")
    box = Box.of(on)
    if isinstance(target, Expression):
        ends = tuple((float(end.reshape(-1)[0]),) for end in (box.low, box.high))
        return Entries((target,), target.variables or ("x",), None, *ends).program()
    shape = target.input_shape if isinstance(target, Mlp) else (target.inputs,)
    whole = box.broadcast_to(shape)
    return program_of(target, (whole.low, whole.high))
