"""A network: an immutable chain of the grammar's layers, that runs, explains itself and can be saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from anchorhead.certificate import EVALUATIONS, Certificate
from anchorhead.conditions import Excluded, NormImage
from anchorhead.errors import AnchorheadError, OutsideWarning
from anchorhead.given import checked_word
from anchorhead.language.program import Program
from anchorhead.network.attention import Attention
from anchorhead.network.box_guard import BoxGuard
from anchorhead.network.chain import as_layers, chain, check_layers, leaving, weights
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.network.direct import DirectModule, Refused, WithGradients, is_traced, lower, stored_series
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.module import NetworkModule, build
from anchorhead.network.named_inputs import is_number, side_by_side
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stated_arithmetic import lasting_tensors
from anchorhead.network.stream import KINDS, Kind, Stream
from anchorhead.network.tensors import as_numbers, require_dense
from anchorhead.network.threads import threads_for
from anchorhead.read_only import ReadOnly

Layer = Embed | Linear | Attention | Softmax | Repeat
Outside = Literal["warn", "raise", "clip", "ignore"]
OUTSIDE: tuple[Outside, ...] = ("warn", "raise", "clip", "ignore")
MEMORY_CAP = 256 * 2**20
"""Bytes that the logits of one block may take when a network is called."""


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
        self.__dict__["_cache"] = {"warned": False}
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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__["_cache"] = {"warned": False}

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

    def with_entries(self, entries: Iterable[Entry]) -> Self:
        """The same network, whose derivation says this."""
        known = self.derivation
        return self if known is None else self.with_(derivation=replace(known, entries=tuple(entries)))

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
        way = checked_outside(self.outside if outside is None else outside)
        self._check_evaluation(evaluation)
        if len(inputs) == 1 and not named and not (self.variables and is_number(inputs[0])):
            return self._run(inputs[0], way, evaluation)
        if not self.variables:
            raise self._without_names(len(inputs) + len(named))
        x = side_by_side(self.variables, inputs, named)
        y = self._run(x[..., None, :] if self.token_axis else x, way, evaluation)
        y = y[..., 0, :] if self.token_axis else y
        if y.shape[-1] == 1:
            y = y[..., 0]
        return y[()]

    def _run(self, x: Any, outside: Outside, evaluation: str | None = None) -> Any:
        tensor, inside = self._looked_at(x, outside)
        direct = self._direct(tensor) if inside and evaluation != "plain" else None
        axes = 2 if self.token_axis else 1
        batch = tensor.shape[:-axes]
        flat = tensor if len(batch) == 1 else tensor.reshape(-1, *tensor.shape[-axes:])
        module: Any = direct
        differentiable = torch.is_grad_enabled() and tensor.requires_grad
        if direct is None or differentiable:
            plain = self._runner(tensor.device)
            module = plain if direct is None else partial(WithGradients.apply, direct, plain)
        numbers = self._numbers_a_row(tensor) if direct is None else direct.numbers
        count, rows = flat.shape[0], max(1, MEMORY_CAP // (flat.element_size() * numbers))
        with threads_for(count * numbers), torch.set_grad_enabled(differentiable):
            y = module(flat) if count <= rows else torch.cat([module(part) for part in flat.split(rows)])
        shape = y.shape[1:] if direct is None else direct.shape[2 - axes :]
        y = y if len(batch) == 1 and y.shape[1:] == shape else y.reshape(*batch, *shape)
        return y if isinstance(x, Tensor) else y.detach().cpu().numpy()

    def _check_evaluation(self, evaluation: Any) -> None:
        if evaluation is None:
            return
        covered = EVALUATIONS[:1] if self.certificate is None else self.certificate.evaluations
        if checked_word("evaluation", evaluation, EVALUATIONS) not in covered:
            raise AnchorheadError(
                f'evaluation="{evaluation}" of a network whose certificate covers {", ".join(covered)}: leave it out'
            )

    def _direct(self, tensor: Tensor) -> DirectModule | None:
        """The steps of the direct evaluation, where the certificate covers it and the layers are such as have one."""
        if self.certificate is None or "direct" not in self.certificate.evaluations or is_traced():
            return None
        key = "direct", tensor.device
        if key not in self._cache:
            with lasting_tensors():
                try:
                    series = stored_series({} if self.derivation is None else self.derivation.data)
                    given = self.layers, self.output, self.dtype, tensor.device, self.certificate.on
                    self._cache[key] = lower(*given, series)
                except Refused:  # a certificate that other layers were given
                    self._cache[key] = None
        return self._cache[key]

    def _without_names(self, given: int) -> AnchorheadError:
        inputs, tokens = self.embed.inputs, "tokens" if self.embed.tokens is None else self.embed.tokens
        needed = f"(..., {tokens}, {inputs})" if self.token_axis else f"(..., {inputs})"
        return AnchorheadError(
            f"{given} input{'s' * (given != 1)} of a network whose inputs have no names: give one array of shape "
            f"{needed}"
        )

    def attention(self, x: Any) -> list[Any]:
        """The attention weights: a (..., heads, tokens that ask, tokens that are seen) for each attention
        layer, for those inside a Repeat at each step.

        Tokens come in the order input, register, state. Kinds whose answer no later layer reads do not ask;
        kinds that nobody who asks may see are left out.
        """
        tensor = self._guarded(x, "ignore")
        tensor = tensor if self.token_axis else tensor.unsqueeze(-2)
        module = self._runner(tensor.device)
        flat = tensor.reshape(-1, *tensor.shape[-2:])
        numbers = len(flat) * module.recorded(flat.shape[-2])
        if numbers * flat.element_size() > 16 * MEMORY_CAP:
            raise AnchorheadError(
                f"the attention weights of {len(flat):,} inputs of {flat.shape[-2]:,} tokens are {numbers:,} "
                "numbers: ask for fewer or shorter inputs"
            )
        record: list[Tensor] = []
        with threads_for(self._numbers(tensor)), torch.no_grad():
            module(flat if self.token_axis else flat.squeeze(-2), record)
        maps = [m if m.dim() == 4 else m.expand(len(flat), *m.shape) for m in record]
        maps = [m.reshape(*tensor.shape[:-2], *m.shape[1:]) for m in maps]
        return maps if isinstance(x, Tensor) else [m.cpu().numpy() for m in maps]

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

    def _guarded(self, x: Any, outside: Outside) -> Tensor:
        """The input in the network's dtype, after a look at whether the certificate covers it."""
        return self._looked_at(x, outside)[0]

    def _looked_at(self, x: Any, outside: Outside) -> tuple[Tensor, bool]:
        """Likewise, and whether all of it lies in the certified box."""
        tensor = require_dense(x) if isinstance(x, Tensor) else torch.from_numpy(as_numbers(x))
        _check_shape(tensor, self.embed, self.token_axis)
        rounded = tensor.to(getattr(torch, self.dtype))
        guard = self._guard(tensor.device, outside)
        inside = guard is not None and guard.holds(tensor)
        if not inside:
            _check_finite(rounded)
        if guard is None or (outside == "ignore" and not inside):
            return rounded, False
        if inside:
            if outside != "ignore":
                self._mind_what_is_left_out(tensor, outside)
            return guard.kept(rounded), True
        exact = tensor.to(torch.float64)
        within = exact.clamp(guard.low, guard.high)
        self._mind_what_is_left_out(within if outside == "clip" else exact, outside)
        if outside == "clip":
            return guard.kept(within.to(rounded.dtype)), True
        beyond = exact != within
        text = (
            f"{int(beyond.sum())} of {beyond.numel()} input entries lie outside the box {guard.box} that the "
            f"certificate covers (for example {float(exact[beyond][0]):g}): the bound does not hold there. "
            'Build with a larger on=, or call with outside="clip" or outside="ignore"'
        )
        self._warn_or_raise(text, outside, "warned")
        return rounded, False

    def _guard(self, device: torch.device, outside: Outside) -> BoxGuard | None:
        """That of the certified box; None where it makes no difference whether inputs lie in it."""
        known = self.certificate
        if known is None or (outside == "ignore" and "direct" not in known.evaluations):
            return None
        key = "guard", device
        if key not in self._cache:
            with lasting_tensors():
                self._cache[key] = BoxGuard.of(known.on, self.embed.weight.dtype, device)
        return self._cache[key]

    def _mind_what_is_left_out(self, x: Tensor, outside: Outside) -> None:
        """Inputs of the box of which the certificate claims nothing; there is nowhere to clip them to."""
        if self.certificate is None or not self.certificate.conditions:
            return
        exact = x.detach().cpu().double().numpy()
        image = self.certificate.condition(NormImage)
        if image is not None:
            holds = image.holds(exact)
            if not holds.all():
                self._warn_or_raise(
                    f"{int((~holds).sum())} of {holds.size} tokens are none that the {image.norm} in front can put "
                    'out: nothing is proven for them. Give outputs of that norm, or outside="ignore"',
                    "raise" if outside == "clip" else outside,
                    "warned of what no norm puts out",
                )
        left_out = self.certificate.condition(Excluded)
        if left_out is None or self.program is None:
            return
        if "ramp" not in self._cache:
            from anchorhead.language.forms import ramp_of

            self._cache["ramp"] = ramp_of(self.program)
        covered = left_out.holds(self._cache["ramp"].pre_activations(exact))
        if not covered.all():
            self._warn_or_raise(
                f"{int((~covered).sum())} of {covered.size} tokens are not covered by the certificate, which is for "
                f'inputs for which {left_out}. Call with outside="ignore", or build without outputs=',
                "raise" if outside == "clip" else outside,
                "warned of what is left out",
            )

    def _warn_or_raise(self, text: str, outside: Outside, key: str) -> None:
        """Beyond what the certificate covers: an error, or a warning, once for each key."""
        if outside == "raise":
            raise AnchorheadError(text)
        if not self._cache.get(key):
            self._cache[key] = True
            warnings.warn(text, OutsideWarning, stacklevel=5)

    def _runner(self, device: torch.device) -> NetworkModule:
        if device not in self._cache:
            with lasting_tensors():
                module = self.module().to(device).requires_grad_(False)
                module.take_shortcuts()
            for attention in module.attentions():
                attention.budget = MEMORY_CAP // np.dtype(self.dtype).itemsize
            self._cache[device] = module
        return self._cache[device]

    def _numbers_a_row(self, tensor: Tensor) -> int:
        """About how many numbers one element of a batch of inputs needs at the widest place."""
        tokens = tensor.shape[-2] if self.token_axis else 1
        activations = max(sum(s.count(tokens).values()) * s.width for s in self._all_streams)
        attentions = self._runner(tensor.device).attentions()
        logits = max((attention.logits(tokens) for attention in attentions), default=0)
        return max(activations, 2 * logits)

    def _numbers(self, tensor: Tensor) -> int:
        """About how many numbers a run on these inputs handles at the widest place."""
        return tensor.shape[: -2 if self.token_axis else -1].numel() * self._numbers_a_row(tensor)

    @cached_property
    def _all_streams(self) -> tuple[Stream, ...]:
        """What leaves each layer, those inside a Repeat included."""
        return (self.streams[0], *leaving(self.layers[1:], self.streams[0]))

    @property
    def _cache(self) -> dict[Any, Any]:
        return self.__dict__["_cache"]


def checked_outside(outside: Any) -> Outside:
    return checked_word("outside", outside, OUTSIDE)


def _check_shape(tensor: Tensor, embed: Embed, token_axis: bool) -> None:
    tokens = "tokens" if embed.tokens is None else embed.tokens
    wrong = tensor.dim() < (2 if token_axis else 1) or tensor.shape[-1] != embed.inputs
    if not wrong and token_axis:
        wrong = tensor.shape[-2] == 0 or (embed.tokens is not None and tensor.shape[-2] != embed.tokens)
    if wrong:
        needed = f"(..., {tokens}, {embed.inputs})" if token_axis else f"(..., {embed.inputs})"
        raise AnchorheadError(f"an input of shape {tuple(tensor.shape)}: needed is {needed}")
    if tensor.is_complex():
        raise AnchorheadError(f"an input of dtype {tensor.dtype}: give real numbers")


def _check_finite(tensor: Tensor) -> None:
    if bool(torch.isfinite(tensor.detach().sum())):  # of entries that are not finite no sum is
        return
    if not bool(torch.isfinite(tensor).all()):
        place = tuple(int(i) for i in torch.argwhere(~torch.isfinite(tensor))[0])
        raise AnchorheadError(
            f"the input, in {tensor.dtype}, has the entry {float(tensor[place])} at {place}: all must be finite"
        )


__all__ = ["KINDS", "Layer", "Network", "Outside"]
