"""Saved networks: one safetensors file with the weights, and the rest as JSON in its header.

The header's entry "anchorhead" holds {"format", "network": the layers, with the name of a tensor where an
array stands, "program": what it approximates, as it was written, "derivation", with the program in the form of which it
was built where that is another, "certificate"}; what the derivation claims of softmaxes are the arrays "claims.…".
Nothing in a file is ever executed.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from anchorhead.certificate import Certificate
from anchorhead.disk import file_to_read, write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.language import canonical
from anchorhead.language.program import Program
from anchorhead.network.attention import Attention
from anchorhead.network.claim_table import WIDTHS, ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.network import Network
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax

FORMAT = 3
STILL_READ = 2
"""The earliest format that is read: what it calls a target becomes a program."""
LARGEST = 2**33
"""Bytes of a file that is read: a thousand million numbers."""
LAYERS = {cls.__name__: cls for cls in (Embed, Linear, Attention, Softmax, Repeat)}


def save(network: Network, path: str | Path) -> None:
    """All of the network in one file: a failure leaves what was there."""
    try:
        content = content_of(network)
    except AnchorheadError as error:
        raise AnchorheadError(f"{path} cannot be written: {error}") from error
    write_atomically(path, content)


def content_of(network: Network) -> bytes:
    """What a file of the network holds."""
    tensors: dict[str, np.ndarray] = {}
    header = {
        "format": FORMAT,
        "network": {
            "layers": [_packed(layer, f"layers.{n}", tensors) for n, layer in enumerate(network.layers)],
            "output": network.output,
            "outside": network.outside,
            "token_axis": network.token_axis,
        },
        "program": _packed_program(network.program, tensors),
        "derivation": _packed_derivation(network.derivation, tensors),
        "certificate": None if network.certificate is None else network.certificate.to_json(),
    }
    try:
        return to_bytes(tensors, {"anchorhead": json.dumps(header, allow_nan=False)})
    except (TypeError, ValueError, KeyError, SafetensorError) as error:
        raise AnchorheadError(
            f"the derivation or the certificate holds something that is neither JSON nor an array of numbers ({error})"
        ) from error


def load(path: str | Path) -> Network:
    """Reads a saved network; its structure and that its weights are finite is checked, its bound is not."""
    path = file_to_read(path, "a saved network", LARGEST)
    header, tensors = _read(path)
    version = header.get("format")
    if not isinstance(version, int) or version < 1:
        raise AnchorheadError(f"{path} does not say which format it has: it was not saved by anchorhead, or is damaged")
    if version > FORMAT:
        raise AnchorheadError(
            f"{path} has format {version}; this version of anchorhead reads up to format {FORMAT}: install a newer one"
        )
    if version < STILL_READ:
        raise AnchorheadError(
            f"{path} has format {version}, of an earlier version of anchorhead, whose certificates kept in words what "
            "they hold for: build the network again and save it"
        )
    try:
        body, certificate = header["network"], header["certificate"]
        network = Network(
            [_unpacked(layer, tensors) for layer in body["layers"]],
            output=body["output"],
            outside=body["outside"],
            token_axis=body.get("token_axis", True),
            certificate=None if certificate is None else Certificate.from_json(certificate),
        )
        if version < FORMAT:
            return _with_former_target(network, header["target"], tensors)
        program = _unpacked_program(header["program"], tensors)
        derivation = _unpacked_derivation(header["derivation"], tensors)
        return network.with_(program=program, derivation=derivation).in_its_own_words()
    except AnchorheadError as error:
        raise AnchorheadError(f"{path} is not a valid network: {error}") from error
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        raise AnchorheadError(f"{path} is not a valid network: its description is damaged ({error!r})") from error


def is_former(path: str | Path) -> bool:
    """Whether a file has an earlier format than the one that is written now."""
    version = _read(file_to_read(path, "a saved network", LARGEST), arrays=False)[0].get("format")
    return isinstance(version, int) and version < FORMAT


def _read(path: Path, arrays: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description, and the arrays unless they are not wanted."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "anchorhead" not in metadata:
                raise AnchorheadError(f"{path} is a safetensors file, but not a network that anchorhead saved")
            tensors = {name: file.get_tensor(name) for name in (file.keys() if arrays else ())}
    except (SafetensorError, OSError, TypeError, AttributeError, MemoryError) as error:
        raise AnchorheadError(
            f"{path} cannot be read: not a safetensors file, cut short, or of an unknown type ({error})"
        ) from error
    try:
        header = json.loads(metadata["anchorhead"])
    except (ValueError, RecursionError) as error:
        raise AnchorheadError(f"{path} is damaged: its description is not JSON") from error
    if not isinstance(header, dict):
        raise AnchorheadError(f"{path} is damaged: its description is not an object")
    return header, tensors


def _packed(layer: Any, name: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    packed: dict[str, Any] = {"layer": type(layer).__name__}
    for item in fields(layer):
        value = getattr(layer, item.name)
        if isinstance(value, np.ndarray):
            tensors[f"{name}.{item.name}"] = value
            packed[item.name] = {"tensor": f"{name}.{item.name}"}
        elif isinstance(value, Linear):
            packed[item.name] = _packed(value, f"{name}.{item.name}", tensors)
        elif isinstance(layer, Repeat) and item.name == "layers":
            packed[item.name] = [_packed(step, f"{name}.{n}", tensors) for n, step in enumerate(value)]
        elif value is not None:
            packed[item.name] = value
    return packed


def _unpacked(packed: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    cls = LAYERS.get(packed["layer"])
    if cls is None:
        raise AnchorheadError(f"it has a layer of the unknown kind {packed['layer']!r}")
    arguments: dict[str, Any] = {}
    for name in {item.name for item in fields(cls)} & packed.keys():
        value = packed[name]
        if isinstance(value, dict) and "tensor" in value:
            arguments[name] = tensors[value["tensor"]]
        elif isinstance(value, dict):
            arguments[name] = _unpacked(value, tensors)
        elif isinstance(value, list):
            arguments[name] = tuple(_unpacked(v, tensors) if isinstance(v, dict) else v for v in value)
        else:
            arguments[name] = value
    return cls(**arguments)


def _packed_program(
    program: Program | None, tensors: dict[str, np.ndarray], prefix: str = "program."
) -> dict[str, Any] | None:
    if program is None:
        return None
    data, arrays = canonical.to_data(program)
    tensors.update({f"{prefix}{name}": array for name, array in arrays.items()})
    return data


def _unpacked_program(
    packed: dict[str, Any] | None, tensors: dict[str, np.ndarray], prefix: str = "program."
) -> Program | None:
    if packed is None:
        return None
    arrays = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    return canonical.from_data(packed, arrays)


def _packed_derivation(derivation: Derivation | None, tensors: dict[str, np.ndarray]) -> dict[str, Any] | None:
    if derivation is None:
        return None
    known: dict[str, Any] = {"kind": derivation.kind, "data": dict(derivation.data)}
    if derivation.lowered is not None:
        known["lowered"] = _packed_program(derivation.lowered, tensors, "lowered.")
    if derivation.claims is not None:
        tensors.update(derivation.claims.arrays)
    return {**known, "entries": derivation.entries_json()}


def _unpacked_derivation(packed: dict[str, Any] | None, tensors: dict[str, np.ndarray]) -> Derivation | None:
    if packed is None:
        return None
    entries = Derivation.entries_of(packed.get("entries", ()))
    lowered = _unpacked_program(packed.get("lowered"), tensors, "lowered.")
    claims = {name: tensors[f"claims.{name}"] for name in WIDTHS} if "claims.units" in tensors else None
    known = None if claims is None else ClaimTable(**claims)
    return Derivation(str(packed["kind"]), dict(packed["data"]), entries, lowered, known)


def _with_former_target(network: Network, packed: dict[str, Any] | None, tensors: dict[str, np.ndarray]) -> Network:
    """What format 2 kept as a target of one of ten kinds, as a program."""
    if packed is None:
        return network
    from anchorhead.language.former import former_hints, former_program

    kind, data = str(packed["kind"]), dict(packed["data"])
    arrays = {str(name): tensors[f"target.{name}"] for name in packed["arrays"]}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise AnchorheadError("an array of its target is not finite")
    tokens, last = network.embed.tokens if network.token_axis else None, network.streams[-1]
    on = None if network.certificate is None else network.certificate.on
    program = former_program(kind, data, arrays, tokens, on, last.width * (last.inputs or 1))
    return network.with_(program=program, derivation=Derivation(kind, former_hints(kind, data), claims=None))
