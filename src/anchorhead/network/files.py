"""Saved networks: one safetensors file with the weights, and the rest as JSON in its header.

The header's entry "anchorhead" holds {"format", "network": the layers, with the name of a tensor where an
array stands, "target", "certificate"}. Nothing in a file is ever executed.
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
from anchorhead.network.attention import Attention
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.network import Network
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.target_record import TargetRecord

FORMAT = 2
LARGEST = 2**33
"""Bytes of a file that is read: a thousand million numbers."""
LAYERS = {cls.__name__: cls for cls in (Embed, Linear, Attention, Softmax, Repeat)}


def save(network: Network, path: str | Path) -> None:
    """All of the network in one file: a failure leaves what was there."""
    tensors: dict[str, np.ndarray] = {}
    header = {
        "format": FORMAT,
        "network": {
            "layers": [_packed(layer, f"layers.{n}", tensors) for n, layer in enumerate(network.layers)],
            "output": network.output,
            "outside": network.outside,
            "token_axis": network.token_axis,
        },
        "target": _packed_target(network.target, tensors),
        "certificate": None if network.certificate is None else network.certificate.to_json(),
    }
    try:
        content = to_bytes(tensors, {"anchorhead": json.dumps(header, allow_nan=False)})
    except (TypeError, ValueError, KeyError, SafetensorError) as error:
        raise AnchorheadError(
            f"{path} cannot be written: the target or the certificate holds something that is neither "
            f"JSON nor an array of numbers ({error})"
        ) from error
    write_atomically(path, content)


def load(path: str | Path) -> Network:
    """Reads a saved network; its structure and that its weights are finite is checked, its bound is not."""
    header, tensors = _read(file_to_read(path, "a saved network", LARGEST))
    version = header.get("format")
    if not isinstance(version, int) or version < 1:
        raise AnchorheadError(f"{path} does not say which format it has: it was not saved by anchorhead, or is damaged")
    if version > FORMAT:
        raise AnchorheadError(
            f"{path} has format {version}; this version of anchorhead reads up to format {FORMAT}: install a newer one"
        )
    if version < FORMAT:
        raise AnchorheadError(
            f"{path} has format {version}, of an earlier version of anchorhead, whose certificates kept in words what "
            "they hold for: build the network again and save it"
        )
    try:
        body, certificate = header["network"], header["certificate"]
        return Network(
            [_unpacked(layer, tensors) for layer in body["layers"]],
            output=body["output"],
            outside=body["outside"],
            token_axis=body.get("token_axis", True),
            target=_unpacked_target(header["target"], tensors),
            certificate=None if certificate is None else Certificate.from_json(certificate),
        )
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


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "anchorhead" not in metadata:
                raise AnchorheadError(f"{path} is a safetensors file, but not a network that anchorhead saved")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
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


def _packed_target(target: TargetRecord | None, tensors: dict[str, np.ndarray]) -> dict[str, Any] | None:
    if target is None:
        return None
    tensors.update({f"target.{name}": array for name, array in target.arrays.items()})
    return {"kind": target.kind, "data": dict(target.data), "arrays": sorted(target.arrays)}


def _unpacked_target(packed: dict[str, Any] | None, tensors: dict[str, np.ndarray]) -> TargetRecord | None:
    if packed is None:
        return None
    arrays = {str(name): tensors[f"target.{name}"] for name in packed["arrays"]}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise AnchorheadError("an array of its target is not finite")
    return TargetRecord(str(packed["kind"]), dict(packed["data"]), arrays)
