"""So many tamperings of a file: which the verifier accepts, and which of these break their bound."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext import Learner
from anchorhead.network import Network
from anchorhead.verify import claims, verify
from anchorhead.verify.scalar.cells import prove
from tests.networks import network as of_table
from tests.networks import row_of

from .changes import tampered
from .file import File, loaded
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


class Remembered:
    """`scalar.cells.prove`, which gives the same for the same: where other things change, heads need one proof."""

    def __init__(self) -> None:
        self.known: dict[tuple, Any] = {}

    def __call__(self, parts: Any, claim: Any, intervals: Any, model: Any, limit: float = 0.0) -> Any:
        arrays = tuple(array.tobytes() for part in parts for array in part.arrays.values())
        more = tuple((part.whole, part.lean, len(part.slopes)) for part in parts)
        key = (arrays, more, claim, tuple(intervals), model, limit)
        if key not in self.known:
            self.known[key] = prove(parts, claim, intervals, model, limit)
        return self.known[key]


def given_of(name: str) -> Any:
    """What the search needs to know beside a file: the function of a callable, the loss of a learner."""
    network = of_table(name)
    return network.descent.loss if isinstance(network, Learner) else row_of(name).function


def hunt(name: str, count: int, seed: int, all_ways: bool = False) -> Tally:
    """Tries so many tamperings of a network of the table; they depend on nothing but the seed."""
    tally, given = Tally(), given_of(name)
    searched: set[str] = set()
    attempt = 0
    with tempfile.TemporaryDirectory() as folder, patch.object(claims, "prove", Remembered()):
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
            found = verify(path, function=row_of(name).function)
            where = f"{name}: {said} (seed {seed}, attempt {attempt})"
            if not found.verified:
                tally.unreadable += bool(np.isnan(found.stated))
                if "could not make sense" in found.why:
                    tally.confused.append(f"{where}: {found.why}")
                continue
            tally.accepted += 1
            same = _claim(file)
            if same in searched:
                continue
            searched.add(same)
            network = loaded(content)
            tally.not_loaded += network is None
            error = harm(network, rng, given, all_ways)
            if error is not None and network is not None:
                tally.harmful.append(f"{where}: {error:.3g} > {network.certificate.bound:.3g}")  # type: ignore[union-attr]
    return tally


def _claim(file: File) -> str:
    """What an accepted file claims, without its hints and its words: the same claim is searched once."""
    certificate = {name: file.header["certificate"][name] for name in ("bound", "on", "dtype", "conditions")}
    said = [file.header["network"], file.header["program"], certificate]
    digest = sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(file.arrays):
        digest.update(f"{name} {file.arrays[name].dtype} {file.arrays[name].shape}".encode())
        digest.update(file.arrays[name].tobytes())
    return digest.hexdigest()


def harm(network: Network | None, rng: np.random.Generator, given: Any = None, all_ways: bool = True) -> float | None:
    """What `breaks` finds; infinite where the network or its program cannot be run."""
    if network is None:
        return None
    try:
        points, zooms = (48, 3) if all_ways else (24, 2)
        return breaks(network, rng, given, points, zooms, all_ways)
    except AnchorheadError:
        return np.inf
