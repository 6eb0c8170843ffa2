"""Networks as targets: affine maps and functions of one variable, entry by entry, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int, Shaped

from anchorhead.decimals import counted
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.text import short_text
from anchorhead.read_only import ReadOnly

IDENTITY = parse("x")


@dataclass(frozen=True, eq=False)
class Affine(ReadOnly):
    """x -> weight x + bias; in float64, which holds float32 weights exactly.

    weight_error, bias_error  how far the numbers that are meant (1/3, pi) may be from those that are written; none: 0
    """

    weight: Float[np.ndarray, "outputs inputs"]
    bias: Float[np.ndarray, " outputs"]
    weight_error: Float[np.ndarray, "outputs inputs"] | None = None
    bias_error: Float[np.ndarray, " outputs"] | None = None

    def __post_init__(self) -> None:
        for name, dims in (("weight", 2), ("bias", 1)):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != dims or not array.size:
                raise AnchorheadError(f"the {name} of an affine map has shape {array.shape}: {dims} axes are needed")
            self._keep(name, array)
            error = getattr(self, f"{name}_error")
            error = np.zeros(array.shape) if error is None else np.array(error, dtype=np.float64)
            if error.shape != array.shape or not (np.isfinite(error) & (error >= 0)).all():
                raise AnchorheadError(f"the errors of the {name} of an affine map: numbers of at least 0, one for each")
            self._keep(f"{name}_error", error)
        if len(self.weight) != len(self.bias):
            raise AnchorheadError(f"an affine map of {len(self.weight)} outputs has a bias of {len(self.bias)} entries")

    def _keep(self, name: str, array: np.ndarray) -> None:
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    @property
    def errors(self) -> tuple[Float[np.ndarray, "outputs inputs"], Float[np.ndarray, " outputs"]]:
        """The errors of weight and bias."""
        return np.asarray(self.weight_error), np.asarray(self.bias_error)

    @property
    def inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]


@dataclass(frozen=True, eq=False)
class Hidden(ReadOnly):
    """Neurons a_r = phi_r(w_r . x + t_r), phi_r = activations[which[r]], each an expression in x.

    kept   the neurons are to be computed even where they do nothing but the affine map
    names  which entry of the program each is, by step, token and feature, where that is known
    """

    affine: Affine
    activations: tuple[Expression, ...]
    which: Int[np.ndarray, " neurons"]
    kept: bool = False
    names: Int[np.ndarray, "neurons 3"] | None = None

    def __post_init__(self) -> None:
        which = np.array(self.which, dtype=np.int64)
        which.flags.writeable = False
        if which.shape != (self.affine.outputs,) or which.min() < 0 or which.max() >= len(self.activations):
            raise AnchorheadError(
                f"{self.affine.outputs} neurons with {len(self.activations)} activations, chosen by an array of shape "
                f"{which.shape}: needed is the number of an activation for each neuron"
            )
        for activation in self.activations:
            if len(activation.variables) > 1:
                raise AnchorheadError(f"the activation {activation} depends on more than one variable")
        object.__setattr__(self, "which", which)
        object.__setattr__(self, "activations", tuple(self.activations))

    @classmethod
    def of(cls, weight: Any, bias: Any, activation: Expression) -> Hidden:
        """Neurons that all have the same activation."""
        affine = Affine(weight, bias)
        return cls(affine, (activation,), np.zeros(affine.outputs, int))

    @classmethod
    def extending(cls, neurons: Hidden, **more: Any) -> Self:
        """The same neurons, with what more a class of ours knows of them."""
        return cls(**{one.name: getattr(neurons, one.name) for one in fields(neurons) if one.init}, **more)

    @property
    def neurons(self) -> int:
        return self.affine.outputs

    @property
    def linear(self) -> bool:
        """Whether nothing happens here but the affine map."""
        return not self.kept and all(self.activations[k] is IDENTITY for k in np.unique(self.which))


@dataclass(frozen=True, eq=False)
class Mlp:
    """x -> readout(hidden_L(... hidden_1(x))), a feed-forward network in exact arithmetic.

    With `tokens` = n the vector x is n tokens, one after the other, and so is the result. `name` says what it is where
    it was not given as a network, `variables` what the entries of x are called, where they have names.
    """

    hidden: tuple[Hidden, ...]
    readout: Affine
    tokens: int | None = None
    name: str = ""
    variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        sizes = [layer.affine for layer in self.hidden] + [self.readout]
        for number, (one, two) in enumerate(pairwise(sizes), start=1):
            if one.outputs != two.inputs:
                raise AnchorheadError(
                    f"layer {number} of the network has {one.outputs} outputs, layer {number + 1} takes {two.inputs}"
                )
        if self.variables and len(self.variables) != self.inputs:
            raise AnchorheadError(f"{len(self.variables)} names for {self.inputs} inputs: one for each, or none")
        if self.tokens is not None:
            for name, size in (("inputs", self.inputs), ("outputs", self.outputs)):
                if self.tokens < 1 or size % self.tokens:
                    raise AnchorheadError(
                        f"{size} {name} do not divide into tokens={self.tokens}: the {name} must be a multiple of it"
                    )

    @property
    def inputs(self) -> int:
        """How many numbers go in, all tokens together."""
        return (self.hidden[0].affine if self.hidden else self.readout).inputs

    @property
    def outputs(self) -> int:
        """How many numbers come out, all tokens together."""
        return self.readout.outputs

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.inputs,) if self.tokens is None else (self.tokens, self.inputs // self.tokens)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outputs,) if self.tokens is None else (self.tokens, self.outputs // self.tokens)

    def with_neurons(self) -> Mlp:
        """The same function; a network that is an affine map alone gets neurons, which do nothing."""
        if any(not layer.linear for layer in self.hidden):
            return self
        affine = self.readout
        neurons = Hidden(affine, (IDENTITY,), np.zeros(affine.outputs, int), kept=True)
        readout = Affine(np.eye(affine.outputs), np.zeros(affine.outputs))
        return Mlp((*self.hidden, neurons), readout, self.tokens, self.name or str(self), self.variables)

    def values(self, x: Any) -> Shaped[np.ndarray, "..."]:
        """f(x), affine maps and piecewise linear activations in extended precision where the machine has it."""
        from anchorhead.language.of_targets import program_of

        return program_of(self)(x)

    def __str__(self) -> str:
        if self.name:
            return self.name
        sizes = " -> ".join(
            str(size) for size in [self.inputs, *(layer.neurons for layer in self.hidden), self.outputs]
        )
        names = {short_text(activation) for layer in self.hidden for activation in layer.activations}
        known = [*sorted(names - {"x"})] or ["linear"]
        tokens = [] if self.tokens is None else [counted(self.tokens, "token")]
        return f"network {sizes} ({', '.join(known + tokens)})"


__all__ = ["IDENTITY", "Affine", "Hidden", "Mlp"]
