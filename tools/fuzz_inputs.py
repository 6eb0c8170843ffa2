"""What fuzz.py feeds to the readers: valid inputs of each kind, and how they are changed."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError

VARIABLES = ("x", "y", "z", "x[0,1]", "x[1,0]", "x[2,2]")
LARGE = [0, 1, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@dataclass(frozen=True)
class Target:
    """A reader, what valid inputs look like, and how they are mutated."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], Any]
    words: tuple[bytes, ...] = ()
    inside: Callable[[bytes, random.Random], bytes] | None = None
    """A change that leaves the format whole, and what it says wrong."""


def mutated(seeds: list[bytes], target: Target, rng: random.Random) -> bytes:
    """A valid input after one to eight changes; where the format allows, half of them leave it whole."""
    if target.inside is not None and rng.random() < 0.5:
        return target.inside(rng.choice(seeds), rng)
    words, data = target.words, bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(9):
            case 0 if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[place % len(data)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 2:
                del data[place:]
            case 3:
                other = rng.choice(seeds)
                cut = rng.randrange(len(other) + 1)
                data[place:] = other[cut:]
            case 4:
                data[place:place] = rng.randbytes(rng.randrange(1, 9))
            case 5:
                size = rng.randrange(1, 65)
                data[place:place] = data[place : place + size] * rng.randrange(1, 4)
            case 6:
                del data[place : place + rng.randrange(1, 17)]
            case 7:
                number = rng.choice(LARGE)
                data[place : place + rng.randrange(10)] = rng.choice(
                    (varint(number), struct.pack("<Q", number % 2**64))
                )
            case _ if words:
                data[place : place + rng.randrange(4)] = rng.choice(words)
    return bytes(data)


def odd(rng: random.Random) -> Any:
    """A value of JSON that does not belong."""
    return rng.choice((*LARGE, -1, 0.5, None, True, "", "x", [], {}, [1], {"tensor": "x"}, [[]], "1e999", -(2**63)))


def changed_json(data: Any, rng: random.Random) -> Any:
    """JSON with one value in it changed, removed or doubled."""
    if not isinstance(data, dict | list) or not data or rng.random() < 0.1:
        return odd(rng)
    key = rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
    copy = data.copy()
    match rng.randrange(8):
        case 0:
            del copy[key]
        case 1 if isinstance(copy, list):
            copy.insert(key, copy[key])
        case _:
            copy[key] = changed_json(data[key], rng)
    return copy


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


def inside_onnx(data: bytes, rng: random.Random) -> bytes:
    """A model with a few fields changed."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    for _ in range(rng.choice((1, 1, 2, 4))):
        node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
        number = rng.choice((*LARGE[:10], -1, -2, 2, 3, 5, 10**6, 10**9)) % 2**63 * rng.choice((1, 1, 1, -1))
        match rng.randrange(14):
            case 0:
                node.op_type = rng.choice((*OPERATIONS, "If", "LSTM", ""))
            case 1 if node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(
                    [*node.output, *rng.choice(graph.node).output, "x", ""]
                )
            case 2 if node.input:
                del node.input[rng.randrange(len(node.input))]
            case 3:
                node.input.append(rng.choice([*rng.choice(graph.node).output, tensor.name, "x", ""]))
            case 4 if node.attribute:
                attribute = rng.choice(node.attribute)
                if attribute.ints:
                    attribute.ints[rng.randrange(len(attribute.ints))] = number
                else:
                    attribute.i, attribute.f = number, rng.choice((0.0, float("nan"), float("inf"), -1.0, 1e38, 1e-45))
            case 5:
                node.attribute.append(
                    onnx.helper.make_attribute(rng.choice(ATTRIBUTES), rng.choice((number, [number] * 2, 0.5, "x")))
                )
            case 6:
                tensor.dims[:] = [*tensor.dims, number] if rng.random() < 0.5 else [number] * len(tensor.dims)
            case 7:
                tensor.data_type = rng.randrange(24)
            case 12:
                node.output.append(f"more {rng.randrange(9)}")
            case 13:
                tensor.dims[:] = [*[1] * rng.choice((1, 2, 40, 70)), *tensor.dims]
            case 8:
                if tensor.raw_data:
                    tensor.raw_data = rng.randbytes(len(tensor.raw_data))
                elif tensor.float_data:
                    tensor.float_data[0] = rng.choice((float("nan"), float("inf"), 1e38, 1e-45))
                elif tensor.int64_data:
                    tensor.int64_data[0] = number
            case 9:
                axis = rng.choice(graph.input[0].type.tensor_type.shape.dim)
                axis.dim_value = number
            case 10:
                model.opset_import[0].version = rng.choice((7, 9, 11, 13, 18, 22, number))
            case _:
                tensor.data_location, tensor.name = rng.choice((0, 1)), rng.choice((tensor.name, "x", "y", "z"))
    return model.SerializeToString()


OPERATIONS = (
    *(
        "Relu",
        "Gemm",
        "MatMul",
        "Add",
        "Mul",
        "Div",
        "Sub",
        "Pow",
        "Conv",
        "AveragePool",
        "BatchNormalization",
        "Reshape",
    ),
    *("Transpose", "Slice", "Gather", "Split", "Concat", "Pad", "Expand", "Squeeze", "Unsqueeze", "Flatten", "Shape"),
    *(
        "ReduceMean",
        "ReduceSum",
        "Clip",
        "PRelu",
        "Cast",
        "Constant",
        "ConstantOfShape",
        "Max",
        "Dropout",
        "Erf",
        "Log",
    ),
    *("GlobalAveragePool", "Neg", "Identity", "Reciprocal", "Sqrt", "Gelu"),
)
ATTRIBUTES = (
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "dilations",
    "group",
    "kernel_shape",
    "to",
    "alpha",
    "keepdims",
    "value",
)


def words(text: str, *more: bytes) -> tuple[bytes, ...]:
    """Words that mean something to a reader."""
    return (*(word.encode() for word in text.split()), *more)


CELLS = (
    *(
        "0",
        "1",
        "-0.0",
        "1e308",
        "1e-400",
        " 2 ",
        "+3",
        "00012",
        "1e3",
        ".5",
        "5.",
        "0x10",
        "1_0",
        "1e999",
        "nan",
        "-inf",
    ),
    *("", "?", "yes", "no", "1.0", "a,b", 'say ""a""', "two\nlines", "é", "٣", "\x00", "9" * 400, "-1"),
)
NAMES = ("y", "Y", " y", "a", "", "y\ty", "1", "n" * 200, "\x1b[31m", "c d")


def inside_csv(data: bytes, rng: random.Random) -> bytes:
    """A table with as many fields in every row: fields, rows and columns changed, quotes and ends of lines at will."""
    names = data.decode("utf-8-sig").splitlines()[0].replace('"', "").split(",")
    rows = [[f"{rng.gauss(0, 3):.3g}" for _ in names[1:]] + [rng.choice("01")] for _ in range(rng.randrange(7))]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        column = rng.randrange(len(names))
        match rng.randrange(8):
            case 0 | 1 if rows:
                rng.choice(rows)[column] = rng.choice(CELLS[:12])
            case 2 if rows:
                rng.choice(rows)[column] = rng.choice(CELLS)
            case 3:
                names[column] = rng.choice(NAMES)
            case 4:
                rows += [row.copy() for _ in range(rng.choice((1, 1, 40))) for row in rows[:10]]
            case 5 if rows:
                del rows[rng.randrange(len(rows))]
            case 6 if len(names) > 1:
                for row in (names, *rows):
                    del row[column]
            case _:
                times = rng.choice((1, 1, 3, 300))
                names += [f"{names[column]}{place}" for place in range(times)]
                for row in rows:
                    row += [row[column]] * times
    quote = rng.choice(("", "", '"'))
    table = [",".join(f"{quote}{field}{quote}" for field in row) for row in (names, *rows)]
    end = rng.choice(("\n", "\n", "\r\n", "\n\n", "\r"))
    return (end.join(table) + rng.choice(("", end))).encode(rng.choice(("utf-8", "utf-8", "utf-8-sig")))


def varint(number: int) -> bytes:
    """As protobuf writes a whole number."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def onnx_seeds() -> list[bytes]:
    """Small models with each kind of operation, in each way to store a constant."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    def model(nodes: list[Any], constants: dict[str, np.ndarray], shape: list[Any], stored: bool = False) -> bytes:
        held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
        if stored:
            kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
            held = [
                helper.make_tensor(name, kinds[str(np.asarray(a).dtype)], np.shape(a), np.ravel(a).tolist())
                for name, a in constants.items()
            ]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape if name == "x" else None) for name in "xy"]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()

    def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
        return helper.make_node(op, inputs.split(), [output], name=op, **attributes)

    plain = [node("Gemm", "x w b", "z"), node("Relu", "z", "a"), node("Gemm", "a v", "y", alpha=0.5, transB=1)]
    arrays = {"w": weights(3, 4), "b": weights(4), "v": weights(2, 4)}
    picture = [
        node("Conv", "x w b", "p", pads=[1, 0, 1, 0], strides=[2, 1]),
        node("BatchNormalization", "p b b b q", "n", epsilon=0.1),
        node("LeakyRelu", "n", "a", alpha=0.1),
        node("AveragePool", "a", "e", kernel_shape=[2, 1]),
        node("Reshape", "e to", "r"),
        node("Slice", "r s e1 ax", "t"),
        node("Transpose", "t", "y", perm=[1, 0]),
    ]
    more = {"w": weights(2, 1, 2, 2), "b": weights(2), "q": np.abs(weights(2)), "to": np.array([2, -1])}
    more |= {"s": np.array([0]), "e1": np.array([3]), "ax": np.array([1])}
    branched = [
        node("Constant", "", "h", value=numpy_helper.from_array(np.float32(0.5))),
        node("MatMul", "x w", "z"),
        node("Mul", "z h", "p"),
        node("Erf", "p", "q"),
        node("Mul", "z q", "r"),
        node("Concat", "r x", "s", axis=1),
        node("Shape", "s", "n"),
        node("Expand", "s n", "t"),
        node("ReduceMean", "t", "u", keepdims=1),
        node("Clip", "u", "y"),
    ]
    return [
        model(plain, arrays, ["n", 3]),
        model(plain, arrays, ["n", 3], stored=True),
        model(picture, more, ["n", 1, 4, 3]),
        model(branched, {"w": weights(3, 2)}, ["n", 3], stored=True),
    ]


def read_onnx(data: bytes, path: Path) -> None:
    from anchorhead.convert.onnx_files import mlp_from_onnx

    path.write_bytes(data)
    mlp_from_onnx(path)


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


def csv_seeds() -> list[bytes]:
    rng = np.random.default_rng(0)
    rows = [",".join(f"{x:.3g}" for x in row) for row in rng.normal(size=(6, 3))]
    quoted = ['"a b","c ""d""",y', '1,"2",0', "3,,1", "NA,4,?"]
    return ["\n".join(["a,b,y", *rows]).encode(), "\r\n".join(quoted).encode("utf-8-sig"), b"a;b;y\n1;2;3\n"]


def read_csv(data: bytes, path: Path) -> None:
    from anchorhead.cli.learn_table import read_table

    path.write_bytes(data)
    read_table(path, "y", kind=("number", "class", "count")[len(data) % 3])  # type: ignore[arg-type]


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
    from anchorhead.targets.expression import Expression
    from anchorhead.targets.parser import parse

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
