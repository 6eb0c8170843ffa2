"""The entries of a program's quantities, one by one, in any kind of number: as texts, or as values that are compared.

A kind is a table of rules, by which expressions are evaluated (`expressions.evaluated`). Its rule "number" takes a
float and a radius: a number that is meant to be somewhere within it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.programs.program import Affine, Apply, Attend, Dot, Input, Normalise, Opaque, Program

MAX_PAIRS = 2**20
"""Tokens that meet tokens in one step: they grow as the square of what a file holds."""
MAX_PARTS = 2**23
"""Products and nodes of expressions in all steps, entry by entry: they grow with the tokens that there are."""
Rules = Mapping[str, Callable[..., Any]]
Rows = list[list[Any]]
"""Tokens, and their features."""


def entries(program: Program, inputs: Rows, rules: Rules, of: int | None = None, start: int = 0) -> Rows:
    """What the program puts out, given its inputs; or the quantity at another place. start: the place of what is given
    in place of the inputs, before which nothing is read."""
    require(len(program.outputs) == 1, "a program of several outputs")
    last = program.outputs[0] if of is None else of
    found: list[Rows] = []
    parts = 0
    for place, step in enumerate(program.steps[: last + 1]):
        require(isinstance(step, Input) == (place == 0), "a program of several inputs")
        if place <= start:
            found.append(inputs if place == start else [])
            continue
        parts += _parts(step, found)
        require(parts <= MAX_PARTS, f"a program of more than {MAX_PARTS:,} products, entry by entry")
        found.append(_step(step, found, rules))
    return found[last]


def _parts(step: object, found: Sequence[Rows]) -> int:
    """How many a step has."""
    match step:
        case Affine():
            each = [len(found[of]) if w.ndim == 2 else len(w) for of, w in zip(step.of, step.weights, strict=True)]
            row = sum(w.shape[-1] * (w.shape[2] if w.ndim == 4 else 1) for w in step.weights)
            return max([len(step.bias), *each]) * step.bias.shape[1] * (1 + row)
        case Apply():
            nodes = [len(one.nodes) if isinstance(one, Expression) else 1 for one in step.functions]
            return max(len(found[of]) for of in step.of) * sum(nodes[k] for k in step.which)
        case Dot():
            return len(found[step.a]) * len(found[step.b]) * len(found[step.a][0])
        case Attend():
            asked = found[step.values if step.queries is None else step.queries]
            return len(asked) * len(found[step.values]) * (len(asked[0]) + len(found[step.values][0]))
    return 0


def _step(step: object, found: Sequence[Rows], rules: Rules) -> Rows:
    match step:
        case Affine():
            return _affine(step, found, rules)
        case Apply():
            given = [found[of] for of in step.of]
            tokens, width = max(map(len, given)), len(step.which)
            fits = all(len(q) in (1, tokens) and len(q[0]) in (1, width) for q in given)
            require(fits, "functions and quantities of a program do not fit")
            rows: Rows = []
            for t in range(tokens):
                at = [[q[t % len(q)][f % len(q[0])] for q in given] for f in range(width)]
                named = (dict(zip(step.arguments, one, strict=True)) for one in at)
                rows.append([_applied(step.functions[k], one, rules) for k, one in zip(step.which, named, strict=True)])
            return rows
        case Dot():
            _require_few(found[step.a], found[step.b])
            return [[_inner(a, b, rules) for b in found[step.b]] for a in found[step.a]]
        case Attend():
            return _attended(step, found, rules)
        case Normalise():
            return [_normalised(step, row, rules) for row in found[step.of]]
    raise NotVerified(f"a {type(step).__name__} is not modelled")


def _applied(function: Expression | Opaque, at: Mapping[str, Any], rules: Rules) -> Any:
    if isinstance(function, Opaque):
        return rules["opaque"](*(at[name] for name in function.arguments))
    return evaluated(function, at, rules)


def _affine(step: Affine, found: Sequence[Rows], rules: Rules) -> Rows:
    bias_radius = np.zeros(step.bias.shape) if step.bias_radius is None else step.bias_radius
    radii = [np.zeros(w.shape) if r is None else r for w, r in zip(step.weights, step.radii, strict=True)]
    given = [found[of] for of in step.of]
    tokens, width = step.bias.shape
    for q, weight in zip(given, step.weights, strict=True):
        tokens = max(tokens, len(q) if weight.ndim == 2 else len(weight))
    fits = len(step.bias) in (1, tokens)
    for q, weight in zip(given, step.weights, strict=True):
        each = len(q) in (1, tokens) if weight.ndim < 4 else weight.shape[2] == len(q)
        rows, own = (1, weight.shape[0]) if weight.ndim == 2 else weight.shape[:2]
        fits = fits and each and weight.shape[-1] == len(q[0]) and own == width and rows in (1, tokens)
    require(fits, "weights and quantities of a program do not fit")

    def entry(t: int, f: int) -> Any:
        terms = []
        for q, weight, radius in zip(given, step.weights, radii, strict=True):
            row, off = (a[f] if a.ndim == 2 else a[t % len(a), f].ravel() for a in (weight, radius))
            of = [one for token in q for one in token] if weight.ndim == 4 else q[t % len(q)]
            used = [(w, e, one) for w, e, one in zip(row.tolist(), off.tolist(), of, strict=True) if w or e]
            terms += [one if (w, e) == (1, 0) else rules["mul"](rules["number"](w, e), one) for w, e, one in used]
        bias, off = (float(a[t % len(a), f]) for a in (step.bias, bias_radius))
        terms += [rules["number"](bias, off)] if bias or off or not terms else []
        return terms[0] if len(terms) == 1 else rules["add"](*terms)

    return [[entry(t, f) for f in range(width)] for t in range(tokens)]


def _require_few(a: Rows, b: Rows) -> None:
    require(len(a) * len(b) <= MAX_PAIRS, f"a step of a program in which {len(a):,} x {len(b):,} tokens meet")


def _inner(a: Sequence[Any], b: Sequence[Any], rules: Rules) -> Any:
    return rules["add"](*(rules["mul"](x, y) for x, y in zip(a, b, strict=True)))


def _attended(step: Attend, found: Sequence[Rows], rules: Rules) -> Rows:
    values = found[step.values]
    if step.queries is None or step.keys is None:
        require(step.queries is step.keys and step.mask is None, "a mean with queries, keys or a mask is not modelled")
        return [[_mean(column, rules) for column in zip(*values, strict=True)]]
    rows = []
    _require_few(found[step.queries], found[step.keys])
    for i, query in enumerate(found[step.queries]):
        seen = len(values) if step.mask is None else i + 1
        weights = [rules["exp"](_inner(query, key, rules)) for key in found[step.keys][:seen]]
        total = rules["add"](*weights)
        columns = zip(*values[:seen], strict=True)
        rows.append([rules["div"](_inner(weights, column, rules), total) for column in columns])
    return rows


def _normalised(step: Normalise, row: Sequence[Any], rules: Rules) -> list[Any]:
    require(step.norm in ("layer", "rms"), f"a norm {step.norm[:40]!r} is not modelled")
    if step.norm == "layer":
        mean = rules["neg"](_mean(row, rules))
        row = [rules["add"](one, mean) for one in row]
    square = _mean([rules["integer_power"](2, one) for one in row], rules)
    root = rules["sqrt"](rules["add"](square, rules["number"](step.eps)))
    return [rules["div"](one, root) for one in row]


def _mean(all_of: Sequence[Any], rules: Rules) -> Any:
    return rules["div"](rules["add"](*all_of), rules["number"](float(len(all_of))))
