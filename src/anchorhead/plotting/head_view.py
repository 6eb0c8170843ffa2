"""What a picture needs to know of a head, whether it was just made or read back from a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.certificate import Certificate
from anchorhead.constructions.single.certified_head import Head
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Part, softmax
from anchorhead.language.expressions.precision import precision
from anchorhead.language.forms import scalar_of
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.network import Network
from anchorhead.proof.heads.whole_head import read_network

_EVEN = 3000
_PER_DECADE = 8
_NEAR = np.linspace(-12, 12, 97)  # in units of 1/slope step: how a crossing is sampled
_FINE = 1e4  # units of round-off: an error below is drawn against the target's balls


@dataclass(frozen=True, eq=False)
class HeadView:
    """The head, and the network that it is with its target and certificate."""

    atom: Atom
    target: ScalarTarget | CallableTarget
    network: Network
    certificate: Certificate

    @classmethod
    def of(cls, thing: Head | Network) -> HeadView:
        """Raises for a network whose target is no function of one variable, or that has no certificate."""
        if isinstance(thing, Head):
            atom, target, network = thing.atom, thing.target, thing.network
        else:
            if thing.program is None or thing.construction != "scalar":
                raise AnchorheadError("a network that is for no function of one variable is no head")
            target, network = scalar_of(thing.program), thing
            atom = read_network(thing, Box.of((target.low, target.high))).atom(thing.dtype)
        if network.certificate is None:
            raise AnchorheadError("a head without a certificate cannot be plotted: it has no band to show")
        return cls(atom, target, network, network.certificate)

    @property
    def on(self) -> tuple[float, float]:
        return self.target.low, self.target.high

    @property
    def names(self) -> list[str]:
        """What the functions are called, one by one."""
        if isinstance(self.target, ScalarTarget):
            return [str(expression) for expression in self.target.expressions]
        return [f"output {m}" for m in range(self.target.outputs)]

    def crossings(self) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
        """The queries of all parts at which neighbouring anchors weigh the same, and the slope steps there."""
        places, steps = [], []
        for part in self.atom.parts:
            slopes, offsets, _ = part.astype(np.float64)
            step = np.diff(slopes)
            apart = step > 0
            places.append(self.atom.origin - np.diff(offsets)[apart] / step[apart])
            steps.append(step[apart])
        return np.concatenate(places), np.concatenate(steps)

    def weights(self, part: Part, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n p"]:
        """How much a part's anchors weigh, in float64."""
        slopes, offsets, _ = part.astype(np.float64)
        return softmax((s - self.atom.origin)[:, None] * slopes + offsets)

    def points(self) -> Float[np.ndarray, " n"]:
        """Even points, and geometric ones towards ends, kinks and crossings, as the dtype stores them.

        The error at a kink lives on a width of 1/slope, which even points would miss.
        """
        low, high = self.on
        dtype = np.dtype(self.certificate.dtype)
        decades = int(-np.log10(np.finfo(dtype).eps))
        away = (high - low) * np.geomspace(1, 10.0**-decades, _PER_DECADE * decades)
        places, steps = self.crossings()
        inside = (places >= low) & (places <= high)
        centres = np.concatenate([[low, high], self.target.kinks, places[inside]])
        joined = [np.linspace(low, high, _EVEN), centres, places[:, None] + _NEAR / steps[:, None]]
        joined += [centres[:, None] + away, centres[:, None] - away]
        s = np.concatenate([points.reshape(-1) for points in joined])
        s = np.unique(s[np.isfinite(s)].astype(dtype).astype(np.float64))
        return s[(s >= low) & (s <= high)]

    def computed(self, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n m"]:
        """The head as its dtype computes it."""
        y = self.network(s.astype(self.certificate.dtype).reshape(-1, 1, 1))
        return np.asarray(y, dtype=np.float64).reshape(len(s), -1)

    def exact(self, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n m"]:
        """The target in float64, or rounded from balls where float64's own error would show in the picture."""
        values = self.target.values(s)
        coarse = self.certificate.bound > _FINE * 2.0**-53 * np.abs(values).max()
        if coarse or not isinstance(self.target, ScalarTarget):
            return values
        from flint import arb

        with precision(128):
            return np.array([[float(ball.mid()) for ball in self.target.ball(arb(float(place)))] for place in s])
