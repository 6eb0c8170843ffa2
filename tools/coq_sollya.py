"""A third opinion: Sollya's supnorm of the difference of a head and its function, where both are smooth."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from fractions import Fraction

import anchorhead as ah
from anchorhead.export.coq.head_file import known
from anchorhead.language.expressions.expression import SWITCHES, postorder
from anchorhead.language.targets import Expression
from tools.coq_files import Kept

SECONDS = 20
"""Of CPU: what takes longer takes minutes, as a rule."""
ACCURACY = "2^(-7)"
"""Relative, of the enclosure."""
INFIX = {"add": "+", "mul": "*", "div": "/", "power": "^"}
WRITTEN = {
    "expm1": "expm1({})", "sigmoid": "(1/(1+exp(-{})))", "softplus": "log(1+exp({}))", "neg": "(-{})",
    "e": "exp(1)", "pi": "pi", "variable": "x",
}  # fmt: skip


def upper_bound(head: ah.Head, kept: Kept) -> float | None:
    """No less than the error in exact arithmetic; None without Sollya, at kinks, or without an answer in time."""
    _, target = known(head.network)
    if shutil.which("sollya") is None or target.outputs != 1:
        return None
    core = target.expressions[0].core
    if any(node.op in SWITCHES for node in postorder(core)):
        return None
    low, high = (_exact(end) for end in head.on)
    program = f"prec=140!; supnorm(0, {_head(head)} - {_written(core)}, [{low};{high}], absolute, {ACCURACY}); quit;\n"
    return kept.answer(f"{SECONDS} s of Sollya: {program}", lambda: _answer(program))


def _answer(program: str) -> float | None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    ran = subprocess.run(["sollya"], input=program, capture_output=True, text=True, preexec_fn=limit, check=False)
    found = re.search(r"\[[-+.\de]+;([-+.\de]+)\]", ran.stdout)
    return float(found[1]) if found else None


def _exact(value: float) -> str:
    fraction = Fraction(float(value))
    return f"({fraction.numerator}/{fraction.denominator})"


def _head(head: ah.Head) -> str:
    means = [_exact(float(head.atom.bias[0]))]
    for part in head.parts:
        weights = [
            f"exp({_exact(a)}*(x-{_exact(head.atom.origin)})+{_exact(b)})"
            for a, b in zip(part.slopes, part.offsets, strict=True)
        ]
        top = "+".join(f"{_exact(v)}*{w}" for v, w in zip(part.values[:, 0], weights, strict=True))
        means.append(f"({top})/({'+'.join(weights)})")
    return f"({' + '.join(means)})"


def _written(root: Expression) -> str:
    done: dict[Expression, str] = {}
    for node in postorder(root):
        args = [done[arg] for arg in node.args]
        if node.op == "number":
            done[node] = _exact(float(node.data or 0))
        elif node.op == "integer_power":
            done[node] = f"({args[0]}^({node.data}))"
        elif node.op in INFIX:
            done[node] = f"({INFIX[node.op].join(args)})"
        else:
            done[node] = WRITTEN.get(node.op, f"{node.op}({{}})").format(*args)
    return done[root]
