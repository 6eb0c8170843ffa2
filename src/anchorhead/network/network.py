"""A network: an immutable chain of the grammar's layers, that runs, explains itself and can be saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from anchorhead.certificate import EVALUATIONS, Certificate
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_word
from anchorhead.language.program import Program
from anchorhead.network.attention import Attention
from anchorhead.network.calls import Calls
from anchorhead.network.chain import as_layers, chain, check_layers, weights
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.network.embed import Embed
from anchorhead.network.guard import Outside, checked_outside
from anchorhead.network.linear import Linear
from anchorhead.network.modules.network import NetworkModule, build
from anchorhead.network.named_inputs import is_number, side_by_side
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import Kind, Stream
from anchorhead.read_only import ReadOnly

Layer = Embed | Linear | Attention | Softmax | Repeat


@dataclass(frozen=True, eq=False, init=False)
class Network(ReadOnly):
    """A first Embed, then any number of Linear, Attention, Softmax and Repeat: nothing else.

    output       the kind of token whose features leave the network
    token_axis   whether inputs and outputs have an axis of tokens: a network of one token may leave it out
    program      what it approximates, if known
    derivation   by which construction, with the hints of its proof
    certificate  what is known of its error, if anything
    outside      what a call does with inputs outside the certified box: "warn" once, "raise", "clip" or
                 "ignore"

        >>> net = ah.approximate("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
        >>> [type(layer).__name__ for layer in net.layers][:2]
        ['Embed', 'Attention']
    """

    layers: tuple[Layer, ...]
    output: Kind = "input"
    program: Program | None = None
    certificate: Certificate | None = None
    outside: Outside = "warn"
    token_axis: bool = True
    derivation: Derivation | None = None

    def __init__(
        self,
        layers: Iterable[Layer],
        output: Kind = "input",
        program: Program | None = None,
        certificate: Certificate | None = None,
        outside: Outside = "warn",
        token_axis: bool = True,
        derivation: Derivation | None = None,
    ) -> None:
        set_ = object.__setattr__
        set_(self, "layers", as_layers(layers))
        set_(self, "output", output)
        set_(self, "program", program)
        set_(self, "derivation", derivation)
        set_(self, "certificate", certificate)
        set_(self, "outside", checked_outside(outside))
        set_(self, "token_axis", bool(token_axis))
        check_layers(self.layers)
        set_(self, "streams", chain(self.layers))
        if output not in self.streams[-1].kinds:
            raise AnchorheadError(
                f"output={output!r} of a network whose last layer leaves {self.streams[-1]}: "
                f"one of {', '.join(self.streams[-1].kinds)}"
            )
        if not self.token_axis and (self.embed.tokens, self.streams[-1].count(1)[output]) != (1, 1):
            raise AnchorheadError(
                f"token_axis=False of a network that takes {self.embed.tokens or 'any number of'} tokens: "
                "only networks from one token to one token can leave the axis out"
            )
        if certificate is not None and certificate.dtype != self.dtype:
            raise AnchorheadError(f"a certificate for {certificate.dtype} cannot go with weights in {self.dtype}")
        if certificate is not None:
            certificate.on.broadcast_to((self.embed.tokens or 1, self.embed.inputs))

    streams: tuple[Stream, ...] = field(init=False)
    """What leaves each layer."""

    @classmethod
    def of(cls, network: Network) -> Self:
        """The same network as one of this class."""
        return cls(**{one.name: getattr(network, one.name) for one in fields(Network) if one.init})

    def with_(self, **changes: Any) -> Self:
        """The same network with another target, certificate or way with inputs outside its box."""
        return replace(self, **changes)

    @cached_property
    def dtype(self) -> str:
        return str(self.embed.weight.dtype)

    @property
    def embed(self) -> Embed:
        first = self.layers[0]
        if not isinstance(first, Embed):
            raise AnchorheadError("a network starts with an Embed")
        return first

    @property
    def parameters(self) -> int:
        """How many numbers are stored as weights."""
        return sum(array.size for array in weights(self.layers))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of the inputs, in order, where the box has names and the network one token; else none."""
        names = self.program.features if self.program is not None and len(self.program.inputs) == 1 else ()
        plain = all(isinstance(name, str) and name.isidentifier() for name in names)
        return names if plain and self.embed.tokens == 1 and len(names) == self.embed.inputs else ()

    @property
    def construction(self) -> str | None:
        """By which construction it was made, if that is known."""
        return None if self.derivation is None else self.derivation.kind

    @property
    def lowered(self) -> Program | None:
        """The program in the form of which the network was built."""
        known = self.derivation
        return self.program if known is None or known.lowered is None else known.lowered

    def written_as(self, program: Program) -> Self:
        """The same network, whose program is this one, as it was written; that in another form, of which the network
        was built, is kept with the derivation."""
        from anchorhead.language.entries import same

        known, lowered = self.derivation, self.program
        if known is None or lowered is None or program.token_axis != self.token_axis or same(program, lowered):
            return self
        changed = self.with_(program=program, derivation=replace(known, lowered=lowered.with_(title="")))
        return changed.in_its_own_words()

    def in_its_own_words(self) -> Self:
        """The same network, whose certificate calls neurons for an expression by what the program says."""
        from anchorhead.language.symbolic import formula

        known, certificate, program = self.derivation, self.certificate, self.program
        if known is None or known.lowered is None or known.kind != "mlp" or certificate is None or program is None:
            return self
        return self.with_(certificate=replace(certificate, target=formula(program)))

    def with_entries(self, entries: Iterable[Entry], claims: ClaimTable) -> Self:
        """The same network, whose derivation says this."""
        known = self.derivation
        return self if known is None else self.with_(derivation=replace(known, entries=tuple(entries), claims=claims))

    def __call__(
        self, *inputs: Any, outside: Outside | None = None, evaluation: str | None = None, **named: Any
    ) -> Any:
        """The network's output: a tensor for a tensor, an array for anything else.

        net(x)               x (..., tokens, inputs) becomes (..., tokens, outputs), in the network's dtype; without a
                             token axis (..., inputs) becomes (..., outputs)
        net(0.5, 0.5), net(x=0.5, y=0.5)   of a network whose inputs have names (net.variables): numbers, or arrays of
                             one shape (or that broadcast to one). Numbers give a number, arrays an array of that shape;
                             a network of several outputs adds an axis for them
        outside              what to do with inputs outside the certified box, if not what the network does by itself
        evaluation           "plain": the attention itself, as the layers are written. "direct", which is what is done
                             by default where the certificate covers it (certificate.evaluations): no axis of keys, for
                             inputs in its box

        Long batches, many tokens and many heads are worked through in blocks.
        """
        way = self.outside if outside is None else checked_outside(outside)
        if evaluation is not None:
            self._check_evaluation(evaluation)
        if len(inputs) == 1 and not named and not (self.variables and is_number(inputs[0])):
            return self._calls.run(inputs[0], way, evaluation)
        if not self.variables:
            raise self._without_names(len(inputs) + len(named))
        x = side_by_side(self.variables, inputs, named)
        y = self._calls.run(x[..., None, :] if self.token_axis else x, way, evaluation)
        y = y[..., 0, :] if self.token_axis else y
        if y.shape[-1] == 1:
            y = y[..., 0]
        return y[()]

    def __matmul__(self, other: Any) -> Self:
        """Networks are no layers of one another: what is composed are programs, and one network is proven for both."""
        raise AnchorheadError(
            f"a network after {'another' if isinstance(other, Network) else f'a {type(other).__name__}'}: compose "
            "programs, as in ah.compile(ah.program(g) @ ah.program(f), within=1e-4), which is proven as one"
        )

    def _check_evaluation(self, evaluation: Any) -> None:
        covered = EVALUATIONS[:1] if self.certificate is None else self.certificate.evaluations
        if checked_word("evaluation", evaluation, EVALUATIONS) not in covered:
            raise AnchorheadError(
                f'evaluation="{evaluation}" of a network whose certificate covers {", ".join(covered)}: leave it out'
            )

    def _without_names(self, given: int) -> AnchorheadError:
        return AnchorheadError(
            f"{given} input{'s' * (given != 1)} of a network whose inputs have no names: give one array of shape "
            f"{self._calls.guard.needed}"
        )

    def attention(self, x: Any) -> list[Any]:
        """The attention weights: a (..., heads, tokens that ask, tokens that are seen) for each attention
        layer, for those inside a Repeat at each step.

        Tokens come in the order input, register, state. Kinds whose answer no later layer reads do not ask;
        kinds that nobody who asks may see are left out.
        """
        return self._calls.attention(x)

    def module(self) -> NetworkModule:
        """A new torch module with these weights: no guard, no blocks, differentiable, exportable."""
        return build(self.layers, self.output, self.token_axis)

    def describe(self) -> str:
        """Layers, heads, widths, parameters, largest logit and weight, and what each feature means."""
        from anchorhead.network.describe import describe

        return describe(self)

    def save(self, path: str | Path) -> None:
        """Writes the network, its target and its certificate to one safetensors file."""
        from anchorhead.network.files import save

        save(self, path)

    def _repr_html_(self) -> str:
        from anchorhead.network.html import network_html

        return network_html(self)

    def __repr__(self) -> str:
        kinds = ", ".join(type(layer).__name__ for layer in self.layers)
        known = f", {self.certificate.kind} within {self.certificate.bound:.3g}" if self.certificate else ""
        return f"Network({kinds}; {self.parameters:,} parameters, {self.dtype}{known})"

    @cached_property
    def _calls(self) -> Calls:
        return Calls(self)
