"""What a network is given is looked at before it runs: shape, finite entries, and whether the certificate covers it.

Inputs are compared with the certified box before they are rounded to the network's dtype, and rounded to numbers that
lie in it, too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from anchorhead.certificate import Certificate
from anchorhead.conditions import Excluded, NormImage
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, OutsideWarning
from anchorhead.given import checked_word
from anchorhead.language.program import Program
from anchorhead.network.embed import Embed
from anchorhead.network.stated_arithmetic import lasting_tensors
from anchorhead.network.tensors import as_numbers, require_dense

Outside = Literal["warn", "raise", "clip", "ignore"]
OUTSIDE: tuple[Outside, ...] = ("warn", "raise", "clip", "ignore")


def checked_outside(outside: Any) -> Outside:
    return checked_word("outside", outside, OUTSIDE)


class Guard:
    """Of one network; it knows what it has warned of."""

    def __init__(
        self, embed: Embed, token_axis: bool, certificate: Certificate | None, program: Program | None
    ) -> None:
        self.inputs, self.tokens, self.token_axis = embed.inputs, embed.tokens, token_axis
        self.kind, self.dtype = embed.weight.dtype, getattr(torch, str(embed.weight.dtype))
        self.certificate, self.program = certificate, program
        self.has_direct = certificate is not None and "direct" in certificate.evaluations
        self.boxes: dict[torch.device, BoxGuard] = {}
        self.warned: set[str] = set()

    def look(self, x: Any, outside: Outside) -> tuple[Tensor, bool]:
        """The input in the network's dtype, and whether all of it lies in the certified box, as far as that matters."""
        tensor = require_dense(x) if isinstance(x, Tensor) else torch.from_numpy(as_numbers(x))
        self._check_shape(tensor)
        rounded = tensor if tensor.dtype is self.dtype else tensor.to(self.dtype)  # a call of `to` takes a microsecond
        if self.certificate is None or (outside == "ignore" and not self.has_direct):
            return _finite(rounded), False
        guard = self._box(self.certificate.on, tensor.device)
        if guard.holds(tensor):
            if self.certificate.conditions and outside != "ignore":
                self._mind_what_is_left_out(tensor, outside)
            return rounded if rounded is tensor else guard.kept(rounded), True
        _finite(rounded)
        if outside == "ignore":
            return rounded, False
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
        self._warn_or_raise(text, outside, "box")
        return rounded, False

    @property
    def needed(self) -> str:
        """The shape of inputs, in words."""
        tokens = "tokens" if self.tokens is None else self.tokens
        return f"(..., {tokens}, {self.inputs})" if self.token_axis else f"(..., {self.inputs})"

    def _check_shape(self, tensor: Tensor) -> None:
        shape = tensor.shape
        wrong = len(shape) < 1 + self.token_axis or shape[-1] != self.inputs
        if self.token_axis and not wrong:
            wrong = shape[-2] == 0 or (self.tokens is not None and shape[-2] != self.tokens)
        if wrong:
            raise AnchorheadError(f"an input of shape {tuple(shape)}: needed is {self.needed}")
        if tensor.is_complex():
            raise AnchorheadError(f"an input of dtype {tensor.dtype}: give real numbers")

    def _box(self, on: Box, device: torch.device) -> BoxGuard:
        if device not in self.boxes:
            with lasting_tensors():
                self.boxes[device] = BoxGuard.of(on, self.kind, device)
        return self.boxes[device]

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
                    "what no norm puts out",
                )
        left_out = self.certificate.condition(Excluded)
        if left_out is None or self.program is None:
            return
        covered = left_out.holds(self._ramp.pre_activations(exact))
        if not covered.all():
            self._warn_or_raise(
                f"{int((~covered).sum())} of {covered.size} tokens are not covered by the certificate, which is for "
                f'inputs for which {left_out}. Call with outside="ignore", or build without outputs=',
                "raise" if outside == "clip" else outside,
                "what is left out",
            )

    @cached_property
    def _ramp(self) -> Any:
        from anchorhead.language.forms import ramp_of

        return ramp_of(self.program)  # type: ignore[arg-type]

    def _warn_or_raise(self, text: str, outside: Outside, what: str) -> None:
        """Beyond what the certificate covers: an error, or a warning, once of each."""
        if outside == "raise":
            raise AnchorheadError(text)
        if what not in self.warned:
            self.warned.add(what)
            warnings.warn(text, OutsideWarning, stacklevel=5)


def _finite(tensor: Tensor) -> Tensor:
    if bool(torch.isfinite(tensor.detach().sum())):  # of entries that are not finite no sum is
        return tensor
    if not bool(torch.isfinite(tensor).all()):
        place = tuple(int(i) for i in torch.argwhere(~torch.isfinite(tensor))[0])
        raise AnchorheadError(
            f"the input, in {tensor.dtype}, has the entry {float(tensor[place])} at {place}: all must be finite"
        )
    return tensor


@dataclass(frozen=True, eq=False)
class BoxGuard:
    """The ends of a box on a device, in float64, as far as the dtype has numbers.

    interval   the ends of every entry, if all have the same
    passed     where the dtype does not hold ends, so that rounding may pass them, its last numbers in the box
    """

    box: Box
    low: Tensor
    high: Tensor
    interval: tuple[float, float] | None
    passed: tuple[Tensor, Tensor] | None

    @classmethod
    def of(cls, box: Box, kind: np.dtype, device: torch.device) -> Self:
        largest = float(np.finfo(kind).max)
        low, high = (np.clip(end, -largest, largest) for end in (box.low, box.high))
        alike = low.size and (low == low.flat[0]).all() and (high == high.flat[0]).all()
        interval = (float(low.flat[0]), float(high.flat[0])) if alike else None
        first, last = low.astype(kind), high.astype(kind)
        beyond = first < low, last > high
        first = np.where(beyond[0], np.nextafter(first, kind.type(np.inf)), first)
        last = np.where(beyond[1], np.nextafter(last, kind.type(-np.inf)), last)
        numbers = [torch.from_numpy(np.array(end)).to(device) for end in (low, high, first, last)]
        passed = (numbers[2], numbers[3]) if beyond[0].any() or beyond[1].any() else None
        return cls(box, numbers[0], numbers[1], interval, passed)

    def holds(self, x: Tensor) -> bool:
        """Whether all entries lie in the box, for which they must be finite; before they are rounded."""
        x = x.detach() if x.requires_grad else x
        if not x.numel():
            return True
        if self.interval is None or not x.is_floating_point():
            exact = x.to(torch.float64)
            return bool(((exact >= self.low) & (exact <= self.high)).all())
        ends = torch.aminmax(x)
        # a GPU is waited for once; on a CPU a stack takes as long as a small product
        least, largest = [one.item() for one in ends] if x.is_cpu else torch.stack(ends).tolist()
        return self.interval[0] <= least and largest <= self.interval[1]

    def kept(self, x: Tensor) -> Tensor:
        """Inputs of the box, rounded, without those that have passed its ends by that."""
        if self.passed is None:
            return x
        return x + (x.detach().clamp(*self.passed) - x.detach())
