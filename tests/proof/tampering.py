"""The hunt for tamperings that are accepted although the bound no longer holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import anchorhead as ah
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from tests.networks import network as of_table
from tests.networks import row_of

from .tampering_changes import tampered
from .tampering_orders import ORDERS
from .true_errors import inputs, near, worst_error

WAYS = ("flushed", "alone", "module", "exact", *ORDERS)
POINTS, CLIMBS = 60, 3
Function = Callable[..., np.ndarray]


@dataclass
class Tally:
    """How many tamperings were tried, how many were accepted, and which of these break the bound."""

    tried: int = 0
    accepted: int = 0
    harmful: list[str] = field(default_factory=list)


def hunt(name: str, count: int, seed: int) -> Tally:
    """Tries so many tamperings of a network of the table; they depend on nothing but the seed."""
    network, function = of_table(name), row_of(name).function
    tally = Tally()
    attempt = 0
    while tally.tried < count:
        attempt += 1
        rng = np.random.default_rng([seed, attempt, *name.encode()])
        made = tampered(network, rng)
        if made is None:
            continue
        other, said = made
        tally.tried += 1
        if not accepted(other, function):
            continue
        tally.accepted += 1
        error = breaks(other, rng, function)
        if error is not None:
            tally.harmful.append(
                f"{name}: {said} (seed {seed}, attempt {attempt}): {error:.3g} > {other.certificate.bound:.3g}"
            )
    return tally


def accepted(network: Network, function: Function | None) -> bool:
    try:
        ah.check(network, function)
    except AnchorheadError:
        return False
    return True


def breaks(network: Network, rng: np.random.Generator, function: Function | None = None) -> float | None:
    """An error above the bound, if one is found: at random inputs first, then near the worst of them."""
    bound = network.certificate.bound
    try:
        x = inputs(network, POINTS, rng)
        error, each = worst_error(network, x, ("torch",), function)
        if error > bound:
            return error
        error, each = worst_error(network, x[::4], WAYS, function)
        x = x[::4]
        for climb in range(CLIMBS):
            if error > bound:
                return error
            best = x[np.argsort(each)[-5:]]
            x = np.concatenate([best, near(network, np.repeat(best, 5, axis=0), 0.1 ** (climb + 1), rng)])
            error, each = worst_error(network, x, ("torch", "exact") if climb == CLIMBS - 1 else ("torch",), function)
    except AnchorheadError:
        return np.inf
    return error if error > bound else None
