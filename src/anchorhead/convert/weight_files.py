"""Saved weights as targets: the state_dict of a plain network, in a safetensors file. Nothing in it is executed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from anchorhead.disk import file_to_read, path_of
from anchorhead.errors import AnchorheadError
from anchorhead.given import require_finite
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.language.targets.spec import expression_of

MAX_NUMBERS = 50_000_000
PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")
DTYPES = {"F32": "float32", "F64": "float64"}
Shapes = dict[str, tuple[int, ...]]


def mlp_from_safetensors(
    path: str | Path, activation: str, tokens: int | None = None, order: Sequence[str] | None = None
) -> tuple[Mlp, str]:
    """The network x -> W_L phi(... phi(W_1 x + b_1) ...) + b_L of a saved state_dict, and the dtype of its weights.

    path        a safetensors file with "<layer>.weight" (outputs, inputs) and, optionally, "<layer>.bias" (outputs,)
    activation  phi, between all layers and not after the last: a name ("relu") or an expression in x
    tokens      n: inputs and outputs are n tokens, one after the other
    order       the layers' names, first to last; by default sorted, numbers in them by their size: fc2 before fc10
    """
    phi = _activation(activation)
    path = path_of(path)
    if path.suffix.lower() in PICKLES:
        raise AnchorheadError(
            f"{path} is a pickle by its name, which runs code when it is read: save the weights with "
            "safetensors.torch.save_file(model.state_dict(), 'model.safetensors')"
        )
    path = file_to_read(path, "a safetensors file")
    try:
        with safe_open(path, framework="numpy") as file:
            shapes, dtype = _contents(file, path)
            layers = _layers(shapes, path, order)
            affine = [_affine(file, path, layer, shapes) for layer in layers]
    except (SafetensorError, OSError, TypeError) as error:
        raise AnchorheadError(f"{path} cannot be read: not a safetensors file, or cut short ({error})") from error
    hidden = tuple(Hidden(one, (phi,), np.zeros(one.outputs, int)) for one in affine[:-1])
    return Mlp(hidden, affine[-1], tokens), dtype


def _activation(activation: Any) -> Expression:
    if not isinstance(activation, str):
        raise AnchorheadError(
            f"activation={activation!r}: give its name, such as 'relu', or an expression in x such as "
            "'leaky_relu(x, 0.1)'"
        )
    try:
        phi = expression_of(activation)
    except AnchorheadError as error:
        raise AnchorheadError(f"activation={activation!r}: {error}") from error
    if len(phi.variables) != 1:
        raise AnchorheadError(f"activation={activation!r} does not depend on x: give a function of x, such as 'relu'")
    return phi


def _contents(file: Any, path: Path) -> tuple[Shapes, str]:
    """The shape of every tensor, before any is read, and the dtype of all."""
    shapes: Shapes = {}
    dtypes = set()
    for name in file.keys():  # noqa: SIM118
        view = file.get_slice(name)
        shapes[name] = tuple(view.get_shape())
        if view.get_dtype() not in DTYPES:
            raise AnchorheadError(
                f"{name} in {path} has dtype {view.get_dtype()}: weights are F32 or F64; save the state_dict of "
                "model.float()"
            )
        dtypes.add(DTYPES[view.get_dtype()])
    count = sum(int(np.prod(shape, dtype=object)) for shape in shapes.values())
    if count > MAX_NUMBERS:
        raise AnchorheadError(f"{path} holds {count:,} numbers: networks of at most {MAX_NUMBERS:,} can be converted")
    return shapes, "float64" if "float64" in dtypes else "float32"


def _layers(shapes: Shapes, path: Path, order: Sequence[str] | None) -> list[str]:
    """The layers' names, first to last, after checks that every tensor belongs to one and that they fit together."""
    names = {name: name.rpartition(".")[0] for name in shapes if name.rpartition(".")[2] == "weight"}
    layers = [layer for name, layer in names.items() if len(shapes[name]) == 2 and 0 not in shapes[name]]
    biases = {_name(layer, "bias"): layer for layer in layers}
    for name, shape in sorted(shapes.items(), key=lambda item: _natural(item[0])):
        needed = "*.weight of 2 axes" if name not in biases else f"{(shapes[_name(biases[name], 'weight')][0],)}"
        expected = (names.get(name) in layers) if name in names else name in biases and f"{shape}" == needed
        if not expected:
            raise AnchorheadError(
                f"{path} holds {name} of shape {shape}, which is not part of a plain network: needed is {needed}, and "
                "for each such weight at most a bias, an entry for each of its rows"
            )
    if not layers:
        raise AnchorheadError(f"{path} holds no tensor: needed is at least one *.weight of 2 axes")
    ordered = _ordered(layers, shapes, path) if order is None else _given_order(order, layers, path)
    for one, two in pairwise(ordered):
        made, taken = shapes[_name(one, "weight")][0], shapes[_name(two, "weight")][1]
        if made != taken:
            raise AnchorheadError(
                f"the layers of {path} do not follow on each other: {_name(one, 'weight')} makes {made} outputs, "
                f"{_name(two, 'weight')} takes {taken} inputs. Their order is {', '.join(ordered)}; if that is "
                "wrong, give order="
            )
    return ordered


def _ordered(layers: list[str], shapes: Shapes, path: Path) -> list[str]:
    """Sorted by name. Names that differ in words say nothing of the order, so that shapes must tell them apart."""
    ordered = sorted(layers, key=_natural)
    seen: dict[tuple[int, ...], str] = {}
    for layer in ordered:
        other = seen.setdefault(shapes[_name(layer, "weight")], layer)
        if re.sub(r"\d+", "0", layer) != re.sub(r"\d+", "0", other):
            raise AnchorheadError(
                f"the names in {path} do not tell which of {other} and {layer}, of the same shape, comes first: give "
                f"order=, the names of all layers: {', '.join(ordered)}"
            )
    return ordered


def _given_order(order: Sequence[str], layers: list[str], path: Path) -> list[str]:
    if isinstance(order, str) or sorted(map(str, order)) != sorted(layers):
        raise AnchorheadError(
            f"order={order!r}: give the name of each layer of {path} once: {', '.join(sorted(layers, key=_natural))}"
        )
    return [str(layer) for layer in order]


def _affine(file: Any, path: Path, layer: str, shapes: Shapes) -> Affine:
    weight = file.get_tensor(_name(layer, "weight"))
    bias = file.get_tensor(_name(layer, "bias")) if _name(layer, "bias") in shapes else np.zeros(len(weight))
    for name, array in (("weight", weight), ("bias", bias)):
        require_finite(array, f"{_name(layer, name)} in {path} has", "all weights")
    return Affine(weight, bias)


def _name(layer: str, kind: str) -> str:
    return f"{layer}.{kind}" if layer else kind


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers in a name by their size, and before letters."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, len(part.lstrip("0")), part.lstrip("0")) if part[0] in "0123456789" else (1, 0, part) for part in parts]
