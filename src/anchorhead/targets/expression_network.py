"""Expressions in several variables as networks of ridges: exactly the same function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb

from anchorhead.targets.analysis.ridges import PRECISION, Structure, structure
from anchorhead.targets.expressions.expression import Expression
from anchorhead.targets.expressions.precision import precision
from anchorhead.targets.layered import Layered, Read
from anchorhead.targets.mlp import Mlp


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in the expressions: the network, if all of them are sums of ridges, and what is left over."""

    network: Mlp | None
    structures: Sequence[Structure]

    @property
    def left_over(self) -> Sequence[Expression]:
        return tuple(term for one in self.structures for term in one.left_over)

    def words(self) -> str:
        """The structure in words."""
        ridges = [ridge for one in self.structures for ridge in one.ridges]
        single = sum(int((ridge.weight != 0).sum() == 1) for ridge in ridges)
        parts = []
        if single:
            parts.append(f"{single} function{'s' * (single > 1)} of one variable")
        if len(ridges) > single:
            several = len(ridges) - single
            parts.append(f"{several} function{'s' * (several > 1)} of one linear combination")
        if self.left_over:
            parts.append(f"{len(self.left_over)} left over: {', '.join(str(term) for term in self.left_over[:3])}")
        return ", ".join(parts) or "a constant"


def expression_network(expressions: Sequence[Expression], variables: Sequence[str], tokens: int | None = None) -> Found:
    """The network whose hidden neurons are the ridges; affine parts of an output are one neuron that is the identity.

    Neurons with the same weights and function serve several outputs.
    """
    structures = tuple(structure(expression, variables) for expression in expressions)
    if any(one.left_over for one in structures):
        return Found(None, structures)
    return Found(ridge_network(structures, variables, tokens, name_of(expressions)), structures)


def ridge_network(
    structures: Sequence[Structure],
    variables: Sequence[str],
    tokens: int | None,
    name: str,
) -> Mlp:
    """The network of the ridges of each output."""
    with precision(PRECISION):
        layered = Layered(variables)
        outputs = []
        for one in structures:
            reads = [layered.ridge(ridge) for ridge in one.ridges]
            outputs.append(layered.total(reads) if reads else Read(0, {}, arb(0)))
        return layered.mlp(outputs, tokens, name)


def name_of(expressions: Sequence[Expression]) -> str:
    """The expressions as a text."""
    name = ", ".join(str(expression) for expression in expressions)
    return name if len(expressions) == 1 else f"[{name}]"
