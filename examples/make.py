"""Makes the files of this folder that are not written by hand: python examples/make.py (extras `onnx`, `transformers`).

Everything is drawn from numpy's PCG64 with fixed seeds, so the same files come out everywhere.

    mlp.safetensors   a ReLU network from 4 inputs over 6 neurons to 2 outputs, as torch.nn.Sequential stores it
    mlp.onnx          the same network
    houses.csv        80 invented houses: what they have, and a price that is nearly linear in it
    tiny-bert/        a BERT of 2 layers with random weights and a vocabulary of the words in sentences.txt
"""

from __future__ import annotations

import csv
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = (4, 6, 2)


def layers() -> dict[str, np.ndarray]:
    """Weights and biases under the names that torch.nn.Sequential(Linear, ReLU, Linear) gives them."""
    rng = np.random.default_rng(1)
    found = {}
    for number, (inputs, outputs) in zip((0, 2), pairwise(SIZES), strict=True):
        found[f"{number}.weight"] = rng.normal(size=(outputs, inputs)) / np.sqrt(inputs)
        found[f"{number}.bias"] = rng.normal(size=outputs) / 4
    return found


def write_onnx(path: Path, weights: dict[str, np.ndarray]) -> None:
    from onnx import TensorProto, checker, helper, numpy_helper, save

    nodes = [
        helper.make_node("Gemm", ["x", "0.weight", "0.bias"], ["s"], transB=1, name="first"),
        helper.make_node("Relu", ["s"], ["h"], name="relu"),
        helper.make_node("Gemm", ["h", "2.weight", "2.bias"], ["y"], transB=1, name="second"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, ["batch", d]) for n, d in (("x", 4), ("y", 2))]
    kept = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "mlp", ends[:1], ends[1:], kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, str(path))


def write_houses(path: Path) -> None:
    rng = np.random.default_rng(2)
    area, rooms = rng.integers(45, 220, 80), rng.integers(1, 7, 80)
    age, distance = rng.integers(0, 90, 80), rng.integers(1, 30, 80)
    price = 40 + 2.1 * area + 9 * rooms - 0.8 * age - 3.5 * distance + rng.normal(size=80) * 15
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["name", "area", "rooms", "age", "distance", "price"])
        for k in range(80):
            rows.writerow([f"house {k + 1}", area[k], rooms[k], age[k], distance[k], f"{price[k]:.1f}"])


def write_bert(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(exist_ok=True)
    words = sorted(set(re.findall(r"[a-z]+|\.", (HERE / "sentences.txt").read_text().lower())))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokenizer = BertTokenizerFast(vocab={word: number for number, word in enumerate(vocabulary)})
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=len(vocabulary),
        max_position_embeddings=32,
    )
    model, rng = BertModel(config).eval(), np.random.default_rng(3)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            scale, middle = (0.05, 1.0) if "LayerNorm.weight" in name else (0.2, 0.0)
            weight.copy_(torch.from_numpy(middle + scale * rng.normal(size=tuple(weight.shape))))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(folder: Path = HERE) -> None:
    from safetensors.numpy import save_file

    save_file(layers(), folder / "mlp.safetensors")
    write_onnx(folder / "mlp.onnx", layers())
    write_houses(folder / "houses.csv")
    write_bert(folder / "tiny-bert")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
