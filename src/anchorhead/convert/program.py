"""`ah.program`: what people write functions in, as one program of exact mathematics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anchorhead.constructions.request import requested
from anchorhead.constructions.single.certified_head import Head
from anchorhead.convert.models import program_of_model
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.targets.spec import is_expression
from anchorhead.network import Network


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
                a Maxout, a KernelSmoother; or a network or head of ours, learners too: the program that it approximates
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
    words = {"activation": activation, "order": order, "output": output}
    return written(model, on, tokens, features, words)[0]


def written(model: Any, on: Any, tokens: Any, features: Any, words: Mapping[str, Any]) -> tuple[Program, str]:
    """The program of expressions, of a model or of a network, or one that is given; and the dtype of its weights.

    words   of files: activation, order and output
    """
    said = [f"{name}={word!r}" for name, word in words.items() if word is not None]
    model = model.network if isinstance(model, Head) else model
    if isinstance(model, Network | Program):
        what = "network" if isinstance(model, Network) else "program"
        given = {"on": on, "tokens": tokens, "features": features}
        said = [f"{name}={word!r}" for name, word in given.items() if word is not None] + said
        if said:
            raise AnchorheadError(f"{', '.join(said)} with a {what}, which has a program of its own: leave it out")
        if isinstance(model, Program):
            return model, "float64"
        if model.program is None:
            raise AnchorheadError("the network does not say what it approximates: it has no program")
        return model.program, model.dtype
    model = without_sympy(model)
    if is_expression(model):
        if said:
            raise AnchorheadError(f"{', '.join(said)} is for files, not for expressions")
        return program_of(requested(model, on, tokens, features)), "float64"
    if features is not None:
        raise AnchorheadError(f"features={features!r} is for expressions: a model has its own")
    return program_of_model(model, on, tokens, **words)
