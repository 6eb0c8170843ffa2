"""So many tamperings of a file: which the verifier accepts, and which of these break their bound."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext import Learner
from anchorhead.network import Network
from anchorhead.verify import verify
from tests.networks import network as of_table
from tests.networks import row_of

from .changes import tampered
from .file import loaded
from .search import breaks


@dataclass
class Tally:
    """How many tamperings were tried, how many of them the reader refused (the others met the lemmas), how many were
    accepted, how many of these the library itself would not load, and which break their bound."""

    tried: int = 0
    unreadable: int = 0
    accepted: int = 0
    not_loaded: int = 0
    harmful: list[str] = field(default_factory=list)
    confused: list[str] = field(default_factory=list)


def given_of(name: str) -> Any:
    """What the search needs to know beside a file: the function of a callable, the loss of a learner."""
    network = of_table(name)
    return network.descent.loss if isinstance(network, Learner) else row_of(name).function


def hunt(name: str, count: int, seed: int, all_ways: bool = False) -> Tally:
    """Tries so many tamperings of a network of the table; they depend on nothing but the seed."""
    tally, given = Tally(), given_of(name)
    attempt = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tampered.safetensors"
        while tally.tried < count:
            attempt += 1
            rng = np.random.default_rng([seed, attempt, *name.encode()])
            made = tampered(name, rng)
            if made is None:
                continue
            file, said = made
            tally.tried += 1
            content = file.content()
            path.write_bytes(content)
            found = verify(path)
            where = f"{name}: {said} (seed {seed}, attempt {attempt})"
            if not found.verified:
                tally.unreadable += np.isnan(found.stated)
                if "could not make sense" in found.why:
                    tally.confused.append(f"{where}: {found.why}")
                continue
            tally.accepted += 1
            network = loaded(content)
            tally.not_loaded += network is None
            error = harm(network, rng, given, all_ways)
            if error is not None and network is not None:
                tally.harmful.append(f"{where}: {error:.3g} > {network.certificate.bound:.3g}")  # type: ignore[union-attr]
    return tally


def harm(network: Network | None, rng: np.random.Generator, given: Any = None, all_ways: bool = True) -> float | None:
    """What `breaks` finds; infinite where the network or its program cannot be run."""
    if network is None:
        return None
    try:
        return breaks(network, rng, given, all_ways=all_ways)
    except AnchorheadError:
        return np.inf
