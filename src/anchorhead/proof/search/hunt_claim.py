"""What a hunt tries to break: the claim of a certificate, and the judgement of one input by Arb."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom
from anchorhead.language.expressions.precision import precision
from anchorhead.language.forms import scalar_of
from anchorhead.language.targets import ScalarTarget
from anchorhead.network import Network
from anchorhead.network.chain import weights
from anchorhead.proof.heads.whole_head import read_network

PRECISION = 200
"""Bits of Arb's enclosure of the target."""


@dataclass(frozen=True)
class Found:
    """An input, what was computed there (by torch, then by numpy; one number an output), the error, and whether it is
    proven to be above the bound."""

    at: float
    computed: tuple[tuple[float, ...], ...]
    error: float
    above: bool

    def to_json(self) -> list[Any]:
        """Floats in hexadecimal: every bit, infinities too."""
        return [self.at.hex(), [[y.hex() for y in row] for row in self.computed], self.error.hex(), self.above]

    @classmethod
    def from_json(cls, data: Any) -> Found:
        at, computed, error, above = data
        rows = tuple(tuple(float.fromhex(y) for y in row) for row in computed)
        return cls(float.fromhex(at), rows, float.fromhex(error), bool(above))


@dataclass(frozen=True, eq=False)
class Claim:
    """|network(x) - target(x)| <= bound for every x of the dtype in the target's interval."""

    network: Network
    target: ScalarTarget
    bound: float

    @classmethod
    def of(cls, network: Network) -> Claim:
        """What the certificate of a head on a scalar claims."""
        if network.certificate is None or network.program is None or network.construction != "scalar":
            raise AnchorheadError(
                "a hunt needs a head on a scalar with its certificate and its function as an expression: "
                "build one with anchorhead.head('gelu', ...) and save it"
            )
        return cls(network, scalar_of(network.program), network.certificate.bound)

    @cached_property
    def atom(self) -> Atom:
        """The same head, to be computed by numpy."""
        return read_network(self.network, Box.of((self.target.low, self.target.high))).atom(self.network.dtype)

    @property
    def digest(self) -> str:
        """Of all that the result of a hunt depends on but its size and seed."""
        target = self.target
        functions = [one.to_json() for one in target.expressions]
        found = hashlib.sha256(json.dumps([functions, target.low, target.high, self.bound.hex()]).encode())
        for array in weights(self.network.layers):
            found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return found.hexdigest()

    def computed(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2 m"]:
        """By torch and by numpy, as float64."""
        by_torch = self.network(x.reshape(-1, 1, 1), outside="ignore").reshape(len(x), -1)
        with np.errstate(all="ignore"):
            return np.stack([by_torch, self.atom(x)], axis=1).astype(np.float64)

    def judge(self, x: float, computed: Float[np.ndarray, "2 m"]) -> Found:
        """The larger error of the two at x, from Arb's enclosure of the target; it is not less than said."""
        outputs = tuple(tuple(map(float, row)) for row in computed)
        if not np.isfinite(computed).all():
            return Found(x, outputs, np.inf, above=True)
        with precision(PRECISION):
            exact = self.target.ball(arb(x))
            pairs = [(y, f) for row in outputs for y, f in zip(row, exact, strict=True) if f.is_finite()]
            errors = [(arb(y) - f).abs_lower() for y, f in pairs]
            above = any(error > arb(self.bound) for error in errors)
            return Found(x, outputs, max(map(float, errors), default=0.0), above)

    def __str__(self) -> str:
        return f"{self.target.name} on [{self.target.low:g}, {self.target.high:g}] within {self.bound:.3g}"
