"""A program as text: a line for each step, with its shape and its range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anchorhead.decimals import counted
from anchorhead.language.program import Program
from anchorhead.language.ranges import Range, ranges
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Repeat, Step

MAX_LINES = 60
MAX_TEXT = 60
MAX_TERMS = 4
"""A map that is a sum of so few entries is written out."""


def shown(program: Program) -> str:
    known = ranges(program) if all(_has_box(program.steps[place]) for place in program.inputs) else None
    rows = []
    for place, step in enumerate(program.steps):
        out = " -> out" if place in program.outputs else ""
        within = "" if known is None else _interval(known[place])
        rows.append((program.name(place), str(program.shapes[place]), within, said(program, step) + out))
    if len(rows) > MAX_LINES:
        left = len(rows) - MAX_LINES
        rows = [*rows[: MAX_LINES - 10], ("…", "", "", f"{counted(left, 'step')} more"), *rows[-10:]]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)) for row in rows]
    lines += [f"provided that {condition}" for condition in program.conditions]
    return "\n".join(line.rstrip() for line in lines)


def said(program: Program, step: Step) -> str:
    """What a step does, in words and signs."""
    name = program.name
    match step:
        case Input():
            many = "any number of tokens, " if step.tokens is None else ""
            names = ", ".join(step.features) if all(step.features) else counted(len(step.features), "feature")
            return f"{many}{_short(names)}"
        case Affine():
            return _affine(program, step)
        case Apply():
            functions = [str(one) for one in step.functions]
            given = ", ".join(
                f"{argument} = {name(of)}" if argument != name(of) else argument
                for argument, of in zip(step.arguments, step.of, strict=True)
            )
            return f"{_short(', '.join(functions))} at {given}"
        case Dot():
            return f"<{name(step.a)}, {name(step.b)}>"
        case Attend():
            if step.queries is None or step.keys is None:
                return f"mean of {name(step.values)}"
            mask = f", {step.mask}" if step.mask else ""
            return f"softmax(<{name(step.queries)}, {name(step.keys)}>) {name(step.values)}{mask}"
        case Normalise():
            return f"{'LayerNorm' if step.norm == 'layer' else 'RMSNorm'} of {name(step.of)}, eps {step.eps:g}"
        case Repeat():
            started = ", ".join(name(place) for place in step.carried)
            path = ", all of the path" if step.collect else ""
            return f"{counted(step.times, 'round')} of {counted(step.body.size, 'step')} from {started}{path}"


def _affine(program: Program, step: Affine) -> str:
    if not step.terms:
        return _short("constant " + ", ".join(f"{v:g}" for v in step.bias.ravel()[:8]))
    parts = []
    for term in step.terms:
        rows = np.unique(term.weight.reshape(-1, term.weight.shape[-1]), axis=0) if term.weight.ndim == 2 else []
        if len(rows) == 1 and np.count_nonzero(rows[0]) <= MAX_TERMS:
            names = _feature_names(program, term.step)
            parts += [n if w == 1 else f"{w:g} {n}" for w, n in zip(rows[0], names, strict=True) if w]
        else:
            parts.append(f"W {program.name(term.step)}")
    if step.bias.any():
        parts.append(f"{step.bias.item():g}" if step.bias.size == 1 else "b")
    return _short(" + ".join(parts).replace("+ -", "- ") or "0")


def _feature_names(program: Program, place: int) -> Sequence[str]:
    step, name = program.steps[place], program.name(place)
    if isinstance(step, Input) and all(step.features):
        return step.features
    width = program.shapes[place].width
    return [name] if width == 1 else [f"{name}[{j}]" for j in range(width)]


def _interval(known: Range) -> str:
    if not known.known:
        return "not known"
    low, high = float(np.min(known.low)), float(np.max(known.high))
    least = max(1e-8 * max(abs(low), abs(high)), 1e-300)  # enclosures are a little wider: 0 is shown as 0
    return f"[{low if abs(low) > least else 0:.4g}, {high if abs(high) > least else 0:.4g}]"


def _has_box(step: Step) -> bool:
    return isinstance(step, Input) and step.low is not None


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
