"""What is known between two layers of a network, and the claims that are still to be met."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from anchorhead.lemmas.record import Record
from anchorhead.network import Attention, Embed
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.readings import Refusal, visible

Kind = TypeVar("Kind")


@runtime_checkable
class Claim(Protocol):
    """What the program makes next of exact quantities. A lemma knows the kinds of claims that it explains."""

    def after(self, sources: Sources) -> Sources:
        """Between what the results lie, for quantities between these."""
        ...


@dataclass(frozen=True, eq=False)
class Known:
    """inputs, others  forms of the features of the input tokens, and of registers and then states: over `sources`, and
                    over nothing
    states          how many of the others are states
    claims          what the program makes of the sources, and of that, from here on
    embed           what made the features, where nothing else did
    cast            inputs may be of another type than the network's
    record          where lemmas note down what they explain
    """

    inputs: Forms
    others: Forms
    states: int
    sources: Sources
    claims: tuple[Claim, ...]
    arithmetic: Arithmetic
    embed: Embed | None = None
    cast: bool = True
    record: Record = field(default_factory=Record)

    def claim(self, kind: type[Kind]) -> Kind:
        """The next claim, where it is of this kind."""
        if not self.claims or not isinstance(self.claims[0], kind):
            raise Refusal(f"the program has no {kind.__name__} next")
        return self.claims[0]

    def loose(self) -> Known:
        """Intervals alone, where tokens have sources of their own: other lemmas mix tokens."""
        if not self.sources.own:
            return self
        return replace(self, inputs=self.inputs.over(self.sources, 0), sources=NOTHING, embed=None)

    def ended(self, y: Forms) -> Known:
        """After the last layer, whose outputs are forms of what the claim makes."""
        return self.explained(y, None, self.claims[0].after(self.sources))

    def explained(self, inputs: Forms, others: Forms | None, exact: Sources) -> Known:
        """The next claim is met: inputs are forms of what it makes; None: no other tokens are left."""
        states = self.states
        if others is None:
            others, states = Forms.constants(np.zeros((0, inputs.constant.shape[1]))), 0
        return Known(inputs, others, states, exact, self.claims[1:], self.arithmetic, record=self.record)

    @property
    def sequence(self) -> Forms:
        """All tokens."""
        if not len(self.others.constant):
            return self.inputs
        return Forms.joined([self.inputs, self.others.over(NOTHING, len(self.sources.low))])

    def visible(self, layer: Attention, token: int) -> tuple[Forms, Forms]:
        """The inputs, and the others, that an input token sees."""
        return visible(layer, self.inputs, self.others, self.states, token)

    def after(self, tokens: list[tuple[Forms, Sources | None]], others: Forms | None) -> Known:
        """The next layer's, from what is known of each token: over the claim's exact quantities, or as before."""
        exact = next((sources for _, sources in tokens if sources is not None), None)
        if exact is None:
            inputs = Forms.joined([form for form, _ in tokens])
            return replace(self.explained(inputs, others, self.sources), claims=self.claims)
        count = len(exact.low)
        joined = Forms.joined([form.over(self.sources, count) if of is None else form for form, of in tokens])
        return self.explained(joined, others, exact)
