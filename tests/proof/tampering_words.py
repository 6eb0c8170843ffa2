"""Changes of what a header says: the program, the derivation, the certificate, the dtype, the axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.language.canonical import from_data, to_data
from anchorhead.network import Derivation, Network

from .tampering_paths import Random, arrays, at, entry, large, pick, rebuilt, with_at


def program(network: Network, rng: Random) -> Network | None:
    """Another number in what the network is said to approximate: its steps, or their arrays."""
    data, found = to_data(network.program)
    edited = _changed(data, found, rng)
    return edited and rebuilt(network, network.layers, program=from_data(*edited))


def derivation(network: Network, rng: Random) -> Network | None:
    """Another number in the hints of the proof."""
    edited = _changed(network.derivation.data, network.derivation.arrays, rng)
    if edited is None:
        return None
    return rebuilt(network, network.layers, derivation=Derivation(network.derivation.kind, *edited))


def _changed(data: Any, found: Any, rng: Random) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    data, found = dict(data), dict(found)
    names = [name for name, array in found.items() if array.size]
    if names and rng.random() < 0.6:
        name = pick(rng, names)
        array = np.array(found[name])
        place = entry(array, rng, rng.random() < 0.7)
        if array.dtype.kind in "iu":
            array[place] = int(rng.integers(0, 3))
        else:
            array[place] = pick(rng, [array[place] * (1 + 10 ** rng.uniform(-7, 1)), 0.0, large(rng), -array[place]])
        found[name] = array
    else:
        name = pick(rng, sorted(data))
        if name is None:
            return None
        data[name] = _edited(data[name], rng)
    return data, found


def _edited(value: Any, rng: Random) -> Any:
    """The same with one number, somewhere inside, changed."""
    match value:
        case bool():
            return not value
        case int():
            return value + int(rng.choice([-1, 1]))
        case float():
            return float(pick(rng, [value * 1.01, value + 0.1, -value, 0.0, 2 * value, 1e6]))
        case list() | tuple() if value:
            place = int(rng.integers(len(value)))
            return [_edited(one, rng) if n == place else one for n, one in enumerate(value)]
        case dict() if value:
            name = pick(rng, sorted(value))
            return {**value, name: _edited(value[name], rng)}
    return value


def certificate(network: Network, rng: Random) -> Network:
    """A smaller bound, or a larger box."""
    now = network.certificate
    if rng.random() < 0.5:
        less = replace(now, bound=now.bound * float(rng.choice([0.0, 0.01, 0.5])))
        return rebuilt(network, network.layers, certificate=less)
    by = float(rng.choice([1.01, 2.0, 100.0, 1e6]))
    box = type(now.on).of((np.array(now.on.low) * by, np.array(now.on.high) * by))
    return rebuilt(network, network.layers, certificate=replace(now, on=box))


def dtype(network: Network, rng: Random) -> Network:
    """All weights in the other type, and a certificate that says so."""
    other = "float64" if network.dtype == "float32" else "float32"
    now = network.layers
    for path in arrays(network):
        now = with_at(now, path, at(now, path).astype(other))
    said = replace(network.certificate, dtype=other)
    return rebuilt(network, now, certificate=said)


def token_axis(network: Network, rng: Random) -> Network:
    return rebuilt(network, network.layers, token_axis=not network.token_axis)
