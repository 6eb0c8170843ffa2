"""Functions that files do not keep: verified given the function, and the constant that is assumed of it.

What is given is f from (n, inputs) to (n, outputs), or from (n, tokens, features) to (n, tokens, outputs), of float64
arrays; of one number from (n,). That it is the one that the network was made from, a digest of its values tells, at 64
points of numpy's default generator, seed 0, uniform in the program's box; for one number at 33 points that crowd
towards its ends. Its outputs are quantities of the program that lie within what the constant allows of the value at the
middle of the box; heads, on one number or over a grid, are compared with them (`cells`).

Assumed: the constant, which values may contradict but never prove, and that values are right to 2 units in the last
place of float64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.certificate import Certificate, require_only
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.files import Stored
from anchorhead.verify.grids.functions import UP, VALUE_ERROR, Lipschitz, Values
from anchorhead.verify.programs.program import Apply, Input, Opaque, Program

PROBES, CROWDED = 64, 33
NEEDED = (
    "this network is for a callable, which files do not keep: give it, as in ah.check(net, function=f) or "
    "anchorhead.verify.verify(path, function=f)"
)


@dataclass(frozen=True, eq=False)
class Given:
    """The function as one of (n, inputs), and what is assumed of it. low, high: the program's box, flattened."""

    function: Callable[..., Any]
    shape: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    lipschitz: Lipschitz

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(n, outputs); finite."""
        given = np.array(x, np.float64).reshape(len(x), *self.shape)
        found = np.asarray(self.function(given), np.float64).reshape(len(x), -1)
        require(bool(np.isfinite(found).all()), "the function that is given is not finite on the box")
        return found

    def ends(self, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Between what its outputs stay, of which there have to be so many."""
        middle = (self.low / 2 + self.high / 2)[None]
        values = self(middle)[0]
        require(len(values) == outputs, f"a function of {len(values)} outputs, where {outputs} belong")
        reach = np.maximum(self.high - middle, middle - self.low)
        away = self.lipschitz.along(reach)[0].sum() * UP + 4 * VALUE_ERROR * np.abs(values)
        return values - away, values + away

    def plus(self, output: int, beta: float) -> Values:
        """Of places (n, inputs) an output, and beta: float64 adds once."""

        def values(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = self(x)[:, output]
            return found + beta, VALUE_ERROR * np.abs(found) + 2.0**-51 * (np.abs(found) + abs(beta))

        return values

    @property
    def assumed(self) -> list[str]:
        return [str(self.lipschitz), f"values of f right to {VALUE_ERROR / 2.0**-52:g} ulp of float64"]


def read_given(
    stored: Stored, program: Program, certificate: Certificate, function: Callable[..., Any] | None
) -> Given:
    """The function that is given, if it is the one that a program is about."""
    if function is None:
        raise NotVerified(NEEDED)
    box = program.steps[0]
    opaque = {one for step in program.steps if isinstance(step, Apply) for one in step.functions}
    if not isinstance(box, Input) or box.low is None or box.high is None or len(opaque) != 1:
        raise NotVerified("a program that is more than one callable on a box")
    (one,) = opaque
    if not isinstance(one, Opaque):
        raise NotVerified("a program that is no callable")
    low, high = (np.broadcast_to(end, certificate.low.shape).reshape(-1) for end in (box.low, box.high))
    require_only(certificate, "assumed Lipschitz constant")
    require(len(certificate.conditions) == 1, "a callable whose certificate does not say what is assumed")
    constants = tuple(float(number) for number in certificate.conditions[0]["constants"])
    fits = constants == one.lipschitz and len(constants) in (1, len(low)) and all(0 <= c < np.inf for c in constants)
    require(fits, "the certificate assumes another constant than the program")
    shape = certificate.low.shape if program.token_axis else (len(low),) if len(low) > 1 else ()
    found = Given(function, shape, low, high, Lipschitz(constants, len(constants) == 1 and len(low) > 1))
    require(
        _is_same(found, one.digest, _samples(stored)),
        "function= is not the one that the network is for: its values differ",
    )
    return found


def _is_same(given: Given, digest: str, samples: Any) -> bool:
    """Whether values have the digest; of a function of one number, values that differ in their last digits from samples
    which have it do as well: not every machine has the same cosines."""
    if given.shape != ():
        return (
            _digest(given(np.random.default_rng(0).uniform(given.low, given.high, (PROBES, len(given.low))))) == digest
        )
    between = (1 - np.cos(np.linspace(0, np.pi, CROWDED))) / 2
    values = given(np.clip(given.low + (given.high - given.low) * between, given.low, given.high)[:, None])
    known = np.array(samples, np.float64) if isinstance(samples, list) else values
    close = known.shape == values.shape and np.allclose(values, known, rtol=1e-12, atol=1e-12)
    return _digest(values) == digest or (bool(close) and _digest(known) == digest)


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()


def _samples(stored: Stored) -> Any:
    """Values that the derivation mentions, never trusted."""
    data = (stored.derivation or {}).get("data")
    return data.get("samples") if isinstance(data, dict) else None


def is_callable(program: Program) -> bool:
    """Whether a program is one function that the file does not hold, and maps of inputs and outputs."""
    applied: list[Any] = [one for step in program.steps if isinstance(step, Apply) for one in step.functions]
    return any(isinstance(one, Opaque) for one in applied)
