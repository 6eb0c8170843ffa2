"""What fuzz.py feeds to the readers: valid inputs of each kind, how they are changed, and who reads them."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from pathlib import Path

import numpy as np

from anchorhead.errors import AnchorheadError
from tools.fuzz_csv import csv_seeds, inside_csv, read_csv
from tools.fuzz_mutations import Target, changed_json, words
from tools.fuzz_onnx import inside_onnx, onnx_seeds, read_onnx

VARIABLES = ("x", "y", "z", "x[0,1]", "x[1,0]", "x[2,2]")


def inside_safetensors(data: bytes, rng: random.Random) -> bytes:
    """The header's JSON, or the description in it, changed in one place."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    held = header.get("__metadata__", {}).get("anchorhead")
    if held is not None and rng.random() < 0.7:
        header["__metadata__"]["anchorhead"] = json.dumps(changed_json(json.loads(held), rng))
    else:
        header = changed_json(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def safetensors_seeds() -> list[bytes]:
    """Saved networks and the weights of plain ones."""
    from safetensors.numpy import save

    import anchorhead as ah

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n.safetensors"
        ah.truncated_linear(rng.normal(size=(2, 2)), [0.1, 0.2], -1, 1, anchors=4).save(path)
        saved = [path.read_bytes()]
        ah.approximate("x + y", {"x": (-1, 1), "y": (-1, 1)}, 1e-2).save(path)
        saved.append(path.read_bytes())
    layers = {
        f"{i}.{name}": rng.normal(size=(3, 3) if name == "weight" else 3) for i in (0, 2) for name in ("weight", "bias")
    }
    return [*saved, save(layers)]


def read_safetensors(data: bytes, path: Path) -> None:
    from anchorhead.convert.weight_files import mlp_from_safetensors
    from anchorhead.network.files import load

    path.write_bytes(data)
    try:
        load(path)
    except AnchorheadError:
        mlp_from_safetensors(path, "relu")


def expression_seeds() -> list[bytes]:
    texts = [
        "sin(3*x)*exp(y) + x**2 - 1/(2 + z)",
        "where(x < 0.5, relu(x), max(x, y, 0.1))",
        "gelu(x) + elu(x, 0.5) - softplus(x, 2)*pi",
        "x[0,1]*tanh(x[1,0]) + abs(-x[2,2])",
        "((((x + 1)*2)**3)/4)",
    ]
    return [text.encode() for text in texts]


def read_expression(data: bytes, path: Path) -> None:
    from anchorhead.language.expressions.expression import Expression
    from anchorhead.language.expressions.parser import parse

    made = parse(data.decode("utf-8", errors="replace"), VARIABLES)
    Expression.from_json(json.loads(json.dumps(made.to_json())))
    str(made)


TARGETS: dict[str, Target] = {
    "onnx": Target(onnx_seeds, read_onnx, words("Gemm Conv If Expand x y z", b"\x08\x01", b"\x12\x00"), inside_onnx),
    "safetensors": Target(
        safetensors_seeds,
        read_safetensors,
        words('null [] {} -1 1e999 99999999999 "F64" "I64" "tensor" [1] NaN true'),
        inside_safetensors,
    ),
    "csv": Target(csv_seeds, read_csv, words(', " nan inf 1e999 y -', b"\n", b"\r", b"\x00", b"\xff"), inside_csv),
    "expressions": Target(
        expression_seeds,
        read_expression,
        words(
            "** ( ) [ ] , x exp( where( 1e308 10**10 - < __import__('os') x.y 'a' := 0x1f 1j _ (((( é",
            *(b"\n", b"if ", b"lambda: ", b"\x00"),
        ),
    ),
}
