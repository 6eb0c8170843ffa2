"""Networks of learners, written from the numbers that are free in a step; and for a network that is given, its step.

That is read where a layout puts these numbers, and then the network must be the one that is written from them, weight
by weight: so there is nothing in it but what the proof of its layout speaks of.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from anchorhead.constructions.learners.approximating import approximating
from anchorhead.constructions.learners.derived import derived
from anchorhead.constructions.learners.layouts import direct, many, sequence, transformer
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.steps import Step
from anchorhead.network import Network

LAYOUTS = {"direct": direct, "transformer": transformer, "sequence": sequence}
NONE = "this is not the network of the learner that its derivation describes"
NAMES = ("features", "labels")
"""Fields that are words alone."""


def network_of(target: Descent | ManyLearners, step: Step, dtype: str) -> Network:
    """The network of a learner that makes such steps, certificate left out."""
    return derived(approximating(_written(target, step, dtype), target), target, step)


def step_of(network: Network, target: Descent | ManyLearners) -> Step:
    """The step of a network that is said to be that of a learner; CertificateError where it is not."""
    try:
        step = _layout(target).read(network, target)
        written = _written(target, step, network.dtype)
    except AnchorheadError as why:
        raise CertificateError(f"{NONE}: {why}") from why
    if network.output != written.output or not _same(network.layers, written.layers):
        raise CertificateError(f"{NONE}: its weights are not those that are written for such a step")
    return step


def _written(target: Descent | ManyLearners, step: Step, dtype: str) -> Network:
    """What a layout says in float64, as the dtype stores it."""
    exact = _layout(target).build(target, step)
    return Network(_rounded(exact.layers, dtype), output=exact.output)


def _rounded(one: Any, dtype: str) -> Any:
    """Layers, or what they are made of, each weight rounded once."""
    if isinstance(one, np.ndarray):
        return one.astype(dtype) if one.dtype.kind == "f" else one
    if isinstance(one, tuple):
        return tuple(_rounded(part, dtype) for part in one)
    if is_dataclass(one) and not isinstance(one, type):
        return replace(one, **{field.name: _rounded(getattr(one, field.name), dtype) for field in fields(one)})
    return one


def _layout(target: Descent | ManyLearners) -> ModuleType:
    return many if isinstance(target, ManyLearners) else LAYOUTS[target.layout]


def _same(one: Any, other: Any) -> bool:
    """Whether layers, or what they are made of, are alike but for names."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        named = [field.name for field in fields(one) if field.name not in NAMES]
        return all(_same(getattr(one, name), getattr(other, name)) for name in named)
    return bool(one == other)
