"""A row of the table of networks: its name, what it approximates, how it is built, and tags to select it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anchorhead.constructions.planning.plan import Plan
from anchorhead.network import Network

DTYPES = ("float64", "float32")
KINDS = (
    "layer",
    "scalar",
    "opaque scalar",
    "truncated linear",
    "kernel smoother",
    "mlp",
    "grid",
    "expressions",
    "opaque several",
    "descent",
    "many learners",
)
"""Kinds of targets; a "layer" shows the grammar, and has neither a target nor a certificate."""
TAGS = {
    "proven": "its certificate is proven",
    "measured": "its certificate is measured: there is nothing that a check could prove",
    "variables": "its inputs have names",
    "two-layer": "a form of neurons",
    "attention-softmax": "a form of neurons",
    "deep": "a form of neurons",
    "sequence": "a layout: all of the prompt is one sequence, weights see positions",
    "transformer": "a layout: registers hold the anchors",
    "uniform": "anchors on a lattice, as in the paper, not solved",
    "parts": "grids and neurons side by side",
    "smooth": "neurons with an activation that has no kinks",
    "tokens": "takes several tokens",
    "any count": "takes any number of tokens",
    "causal": "has an attention with a causal mask",
    "grid heads": "has an attention whose keys stand on a grid of more than one axis",
    "across": "has a linear map across tokens",
    "softmax": "has a softmax layer",
    "constant": "its output is the same for every input",
    "repeat": "has layers that are repeated",
    "momentum": "a learner with a memory",
    "threshold": "a learner with a soft threshold",
    "link": "a learner whose gradient is a head",
    "sample": "one of a handful that stand for all where each costs seconds",
}


@dataclass(frozen=True)
class Row:
    """One network in each dtype.

    kind       one of KINDS
    build      from a dtype to the network; cheap, and the same every time
    tags       of TAGS; which of them are true of the layers is tested
    function   of "opaque several": the callable, which a check needs
    plan       from a dtype to the plan that foresees it, where plans are for such networks
    options    with which `ah.compile` makes it of its program
    """

    name: str
    kind: str
    build: Callable[[str], Network]
    tags: frozenset[str]
    function: Callable[..., Any] | None = None
    plan: Callable[[str], Plan] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def row(name: str, kind: str, build: Callable[[str], Network], *tags: str, **more: Any) -> Row:
    """A row whose kind and tags are known ones."""
    unknown = ({kind} - {*KINDS}) | ({*tags} - {*TAGS})
    if unknown:
        raise ValueError(f"{name}: {unknown} is neither in KINDS nor in TAGS")
    return Row(name, kind, build, frozenset(tags), **more)
