"""Files of learners that were made to be accepted though their networks err: each says one thing that is not so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from anchorhead import incontext
from anchorhead.constructions.learners.layouts import sequence
from anchorhead.constructions.learners.networks import anchored
from anchorhead.constructions.learners.written import network_of
from anchorhead.lemmas.learners.own_anchors import Piece
from anchorhead.network import Network
from anchorhead.verify.files import Stored, read_file

from .learner_files import changed

LARGE = 2.0**30
MARKED = -1
"""The feature that `widened` puts last."""


def structure(file: Stored, change: Callable[[list[Any]], object]) -> Stored:
    """The layers of the header changed; names of features are left out."""
    network = copy.deepcopy(dict(file.network))
    change(network["layers"])
    for row in network["layers"]:
        for one in (row, *row.get("layers", ())):
            for name in ("features", "labels"):
                one.pop(name, None)
                (one.get("skip") or {}).pop(name, None)
    return replace(file, network=network)


def widened(file: Stored, count: int = 1) -> Stored:
    """Features more, the last ones: 0 in all tokens, and in nothing that is made of them."""
    axes = {"query": [-1], "key": [-1], "value": [-1], "output": [-2], "bias": [-1], "registers": [-1], "states": [-1]}
    tensors, last = dict(file.tensors), f"layers.{len(file.network['layers']) - 1}."
    for name, array in file.tensors.items():
        if name.startswith("layers."):
            what = name.rpartition(".")[2]
            along = axes.get(what, [-2] if name == "layers.0.weight" else [-1, -2] if what == "weight" else [])
            sides = [(0, 0)] * array.ndim
            for axis in along:
                sides[axis] = (0, count if axis == -1 or not name.startswith(last) else 0)
            tensors[name] = np.pad(array, sides)
    return structure(replace(file, tensors=tensors), lambda layers: None)


def put(file: Stored, name: str, place: tuple[Any, ...], number: Any) -> Stored:
    """Entries of an array replaced."""

    def change(array: np.ndarray) -> np.ndarray:
        array[place] = number
        return array

    return changed(file, name, change)


def asked(file: Stored, layer: str, rows: np.ndarray, keys: np.ndarray) -> Stored:
    """Logits with products more, (products, features) for queries and for keys of all heads."""

    def more(added: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def change(array: np.ndarray) -> np.ndarray:
            new = np.broadcast_to(added, (len(array), *added.shape)).astype(array.dtype)
            return np.concatenate([array, new], axis=1)

        return change

    return changed(changed(file, f"{layer}.query", more(rows)), f"{layer}.key", more(keys))


def drowned(file: Stored, layer: str, asks: int, holds: int, by: float = LARGE) -> Stored:
    """A large number and its negative in all logits of a feature that asks at one that is held: nothing is left of the
    rest once these are rounded."""
    eye = np.eye(file.tensors[f"{layer}.query"].shape[2])
    return asked(file, layer, np.stack([eye[asks], -eye[asks]]), np.stack([by * eye[holds]] * 2))


def scores_drowned(file: Stored) -> Stored:
    """Examples, who are that, ask the state and the reference, which are none."""
    return drowned(file, "layers.1.0", 6, 9)


def residuals_drowned(file: Stored) -> Stored:
    """The state asks with its mark for the signs of examples, which are 1 and -1."""
    return drowned(file, "layers.1.0", 4, 2)


def silence_drowned(file: Stored) -> Stored:
    """What lowers the anchors of other examples is small beside what cancels in their logits."""
    for bit in range(4):
        file = drowned(file, "layers.1.0", 14 + bit, 5 + bit, LARGE**2)
    return file


def anchors_of_rows(file: Stored) -> Stored:
    """An anchor of the threshold is taken from registers and given to rows, half of it to either sign. One example is
    two rows; several have the anchor several times."""
    slope, offset, value = 7, 8, 9
    registers = np.array(file.tensors["layers.0.registers"])
    (middle,) = np.flatnonzero(registers[:, slope] == 0)
    for place, number in ((offset, registers[middle, offset] - np.log(2)), (value, registers[middle, value])):
        file = put(file, "layers.0.bias", (place,), number)
    file = changed(file, "layers.0.registers", lambda array: np.delete(array, middle, axis=0))
    return structure(file, lambda layers: layers[1]["layers"][1].pop("mask"))


def w_of_before(file: Stored) -> Stored:
    """The step that reads a gradient keeps what w was in another feature, from which the threshold takes it."""
    w, file = 5, widened(file)
    file = put(file, "layers.1.0.skip.weight", (MARKED, w), 1.0)
    file = put(file, "layers.1.1.skip.weight", (w, w), 0.0)
    return put(file, "layers.1.1.skip.weight", (w, MARKED), 1.0)


def output_of_before(file: Stored) -> Stored:
    """A last attention with two heads: one reads w and writes nothing, the other puts out what w was a step before."""
    w, file = [5, 6], widened(file, 2)
    width = file.tensors["layers.2.weight"].shape[1]
    file = put(file, "layers.1.0.skip.weight", ([width - 2, width - 1], w), 1.0)
    kind, eye = file.tensors["layers.0.weight"].dtype, np.eye(width)
    value = np.stack([eye[w], eye[[width - 2, width - 1]]])
    nothing, output = np.zeros((2, 1, width)), np.stack([np.zeros((2, 2)), np.eye(2)])
    arrays = {"query": nothing, "key": nothing, "value": value, "output": output}
    tensors = {name: array for name, array in file.tensors.items() if name != "layers.2.weight"}
    tensors |= {f"layers.2.{name}": array.astype(kind) for name, array in arrays.items()}
    row = {"layer": "Attention", "mask": "self+registers"}
    row |= {name: {"tensor": f"layers.2.{name}"} for name in arrays}
    return structure(replace(file, tensors=tensors), lambda layers: layers.__setitem__(2, row))


def examples_of_one_sign(file: Stored) -> Stored:
    """The tokens are two examples, and their negatives are left out."""

    def change(layers: list[Any]) -> None:
        layers[0].update(source={"tensor": "layers.0.source"}, tokens=4)

    return structure(replace(file, tensors={**file.tensors, "layers.0.source": np.array([0, 1])}), change)


def half_an_example(file: Stored) -> Stored:
    """The network takes a token less."""
    return structure(file, lambda layers: layers[0].update(tokens=layers[0]["tokens"] - 1))


def labels_of_others(file: Stored) -> Stored:
    """A layer before the steps gives every register the label of another example, with which it then asks. Anchors hold
    the slope of the label as a constant, and one of each example its label and a mark."""
    label, y, asks, address, asking = 3, 3, 11, range(6, 10), range(15, 19)
    shown, slope, mark, theirs, *other = range(28, 36)
    file = widened(file, 8)
    names = ("weight", "bias", "registers")
    weight, bias, registers = (np.array(file.tensors[f"layers.0.{name}"]) for name in names)
    first, eye = slice(None, None, len(weight) // len(registers)), np.eye(weight.shape[1])
    bias[:, slope] = weight[:, y, label]
    weight[first, shown, label] = bias[first, mark] = 1.0
    registers[:, other] = np.roll(registers[:, asking], 1, axis=0)
    arrays = {
        "query": np.stack([*(-LARGE * eye[other]), 2.0**20 * eye[asks]])[None],
        "key": eye[None, [*address, mark]],
        "value": eye[None, [shown]],
        "output": eye[None, :, [theirs]],
        "skip": eye,
    }
    tensors = {**file.tensors, **{f"layers.new.{name}": array.astype(weight.dtype) for name, array in arrays.items()}}
    tensors |= {f"layers.0.{name}": array for name, array in zip(names, (weight, bias, registers), strict=True)}
    row: dict[str, Any] = {"layer": "Attention"} | {name: {"tensor": f"layers.new.{name}"} for name in arrays}
    row["skip"] = {"layer": "Linear", "weight": row["skip"]}
    file = structure(replace(file, tensors=tensors), lambda layers: layers.insert(1, row))
    for layer in (0, 1):
        file = put(file, f"layers.1.{layer}.skip.weight", (range(28, 36), range(28, 36)), 1.0)
    for name, held in (("query", theirs), ("key", slope)):
        file = put(file, f"layers.1.0.{name}", (0, y), eye[held])
    return file


def keys_that_overflow(file: Stored) -> Stored:
    """Anchors, who ask for a mean too, read so much of their own addresses that their keys overflow one step later. All
    logits are 0 times that, so what they read is no number; the step after that, registers see them."""
    file = put(file, "layers.1.1.value", (0, 0, [5, 6, 7, 8]), 2.0**100)
    return put(file, "layers.1.1.key", (0, 0, 18), 2.0**100)


def values_of_the_start(file: Stored) -> Stored:
    """Of many learners: rows read where w begins, as the registers do, and show that as what they move w by."""
    names = list(file.network["layers"][0]["features"])
    size = sum(name.startswith("w") and name[1:].isdigit() for name in names)
    width, file = len(names), widened(file, size)
    new = np.arange(width, width + size)
    file = put(file, "layers.1.query", (0, 0, names.index("one")), file.tensors["layers.1.query"].max())
    file = put(file, "layers.1.output", (0, new, range(size)), 1.0)
    for layer in ("layers.1", "layers.2.0", "layers.2.1", "layers.2.2"):
        file = put(file, f"{layer}.skip.weight", (new, new), 1.0)
    return put(file, "layers.2.2.value", (0,), np.eye(width + size)[new])


def reference_that_moves(file: Stored) -> Stored:
    """Registers, who ask in a threshold too, read something of the reference, which is out of reach of the state: their
    w moves, and that of the reference is what scores are compared with."""
    value = list(file.network["layers"][0]["features"]).index("value of the clip")
    return put(file, "layers.0.registers", (0, value), 1.0)


def something_that_is_off(file: Stored) -> Stored:
    """What copies read of a grid that is not meant for them is not 0."""
    value = list(file.network["layers"][0]["features"]).index("value of the grid")
    points, last = file.network["layers"][1]["layers"][1]["grid"]
    return put(file, "layers.0.registers", (range((points - 1) * last, points * last), value), 0.5)


def links_of_registers(file: Stored) -> Stored:
    """Of many learners: the registers of w hold a value that no example reads, but those who are none do; their links
    are then so large that they are not out of reach."""
    value = list(file.network["layers"][0]["features"]).index("value of an anchor, part 0")
    return put(file, "layers.0.registers", (0, value), 2.0**60)


def another_threshold(file: Stored) -> Stored:
    """The clip is a tenth larger than what w is to be shrunk by, and else what it was."""
    value = list(file.network["layers"][0]["features"]).index("value of the clip")
    return put(file, "layers.0.registers", (slice(None), value), 1.1 * file.tensors["layers.0.registers"][:, value])


def steep_anchors_of_others(file: Stored) -> Stored:
    """Of many learners: anchors of other links are lowered by 1000, out of reach of scores near 0. Those of a kink are
    steep, and heard by every row whose score is beyond it."""
    gates = [j for j, name in enumerate(file.network["layers"][0]["features"]) if name.startswith("not for flag")]
    lowered = file.tensors["layers.0.registers"][:, gates] != 0
    return put(file, "layers.0.registers", (slice(None), gates), -1000.0 * lowered)


def keys_of_nothing(file: Stored) -> Stored:
    """A key is so large a multiple of a feature that all tokens hold 0 in that it overflows where it is multiplied by
    queries first."""
    file = widened(file)
    for name in ("query", "key"):
        file = changed(file, f"layers.1.0.{name}", lambda array: np.pad(array, ((0, 0), (0, 1), (0, 0))))
    file = put(file, "layers.1.0.query", (slice(None), -1, 4), 2.0**60)
    return put(file, "layers.1.0.key", (slice(None), -1, MARKED), 2.0**120)


def a_link_twice(file: Stored) -> Stored:
    """The heads that read the link are there twice, so that it is twice what it was."""
    where = next(name for name in ("layers.1.1", "layers.1.0") if f"{name}.query" in file.tensors)
    where = "layers.1.0" if file.network["output"] == "register" else where
    for name in ("query", "output"):
        file = changed(file, f"{where}.{name}", lambda array: np.concatenate([array, array]))
    for name in ("key", "value"):
        if len(file.tensors[f"{where}.{name}"]) > 1:
            file = changed(file, f"{where}.{name}", lambda array: np.concatenate([array, array]))
    return structure(file, lambda layers: None)


def half_of_what_is_taken_off(file: Stored) -> Stored:
    """Of many learners: what is taken off arguments is asked for in the logits of one of the two tokens of w, and not
    taken off the score: that takes off half of it."""
    names = list(file.network["layers"][0]["features"])
    a, eye = names.index("off the score"), np.eye(len(names))
    file = put(file, "layers.2.0.skip.weight", (names.index("score"), a), 0.0)
    marked, width = widened(file), len(names) + 1
    marked = put(marked, "layers.0.registers", (0, width - 1), 1.0)
    for layer in ("layers.1", "layers.2.0", "layers.2.1", "layers.2.2"):
        marked = put(marked, f"{layer}.skip.weight", (width - 1, width - 1), 1.0)
    sharpness = np.abs(file.tensors["layers.2.0.query"][:, 0]).max(axis=-1)

    def more(added: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda array: np.concatenate([array, added.astype(array.dtype)], axis=1)

    rows = np.stack([-h * np.append(eye[a], 0.0) for h in sharpness])[:, None]
    marked = changed(marked, "layers.2.0.query", more(rows))
    key = np.zeros((len(marked.tensors["layers.2.0.key"]), 1, width))
    key[:, 0, -1] = 1.0
    return changed(marked, "layers.2.0.key", more(key))


def a_head_without_anchors(file: Stored) -> Stored:
    """One head more for the hinge in a sequence, to which no anchor belongs: it reads those of the other head."""
    given = {"steps": 2, "rate": 0.05, "features": 2, "on": (-1, 1), "examples": 3, "intercept": True}
    target = incontext.gradient_descent("hinge", layout="sequence", progress=False, **given).descent  # type: ignore[arg-type]
    build, none = sequence.build, Piece(*[np.zeros(0)] * 5)

    def built(target: Any, step: Any) -> Network:
        return build(target, replace(step, collect=replace(step.collect, pieces=(*step.collect.pieces, none))))

    with patch.object(sequence, "build", built), TemporaryDirectory() as folder:
        network_of(target, anchored(target, 1.0, "float64"), "float64").save(Path(folder) / "learner.safetensors")
        other = read_file(Path(folder) / "learner.safetensors")
    return replace(file, network=other.network, tensors=other.tensors)


def an_example_twice(file: Stored) -> Stored:
    """In a sequence the second register asks for the first example, too, and nobody for the second."""
    asks = [k for k, name in enumerate(file.network["layers"][0]["features"]) if name.startswith("asks for")]
    return put(file, "layers.0.registers", (1, asks), file.tensors["layers.0.registers"][0, asks])


def slopes_in_two(file: Stored) -> Stored:
    """Slopes 1/2 and -1/2 of the logistic in a sequence as a large number and another one that is taken off: what is
    left of their products with w and examples is what these are rounded by."""
    x, w, width = [0, 1], [18, 19], file.tensors["layers.0.weight"].shape[1]
    file, more = widened(file, 2), [width, width + 1]
    weight = np.array(file.tensors["layers.0.weight"])
    large = 2.0**20 * np.sign(weight[:, x, x])
    weight[:, x, x] += large
    weight[:, more, x] = -large
    file = replace(file, tensors={**file.tensors, "layers.0.weight": weight})
    for layer in ("layers.1.0", "layers.1.1"):
        file = put(file, f"{layer}.skip.weight", (more, more), 1.0)
    eye = np.eye(width + 2)
    return asked(file, "layers.1.0", eye[w], eye[more])


def drained(file: Stored, by: float = 2.0**117) -> Stored:
    """Examples are so small in tokens that they vanish, and are multiplied again where they are read."""
    x = [0, 1]
    file = put(file, "layers.0.weight", (x, x), 1 / by)
    for name in ("key", "value"):
        file = put(file, f"layers.1.0.{name}", (0, x, x), by)
    return file


def rows_that_are_anchors(file: Stored) -> Stored:
    """Of phi(s - y) = tanh(s - y), in a sequence: one register, which reads rows themselves as its anchors, of logits
    s - y and y - s and values x and -x. That is tanh(s - y) x for one example; several share the weight."""
    x, label, one, w, push, width = [0, 1], 2, 3, [4, 5], [6, 7], 8
    eye, rate = np.eye(width), float(file.tensors["layers.1.1.output"].min())
    weight, keeps = np.zeros((width, 4)), np.eye(width)
    weight[[*x, label], [0, 1, 3]] = 1.0
    keeps[push] = 0.0
    link = {
        "query": np.stack([*eye[w], -eye[one], eye[one]])[None],
        "key": np.stack([*eye[x], eye[label], -(2.0**20) * eye[one]])[None],
        "value": eye[None, x],
        "output": eye[:, push][None],
        "skip": keeps,
    }
    nothing = np.zeros((1, 1, width))
    mean = {"query": nothing, "key": nothing, "value": eye[None, push], "output": rate * eye[:, w][None], "skip": eye}
    arrays = {"layers.0.weight": weight, "layers.0.bias": np.zeros(width), "layers.0.registers": eye[[one]]}
    arrays |= {f"layers.1.{k}.{name}": array for k, of in enumerate((link, mean)) for name, array in of.items()}
    arrays["layers.2.weight"] = eye[w]

    def row(kind: str, where: str, *names: str, **others: Any) -> dict[str, Any]:
        return {"layer": kind, **{name: {"tensor": f"{where}.{name}"} for name in names}, **others}

    def body(k: int, **others: Any) -> dict[str, Any]:
        skip = {"layer": "Linear", "weight": {"tensor": f"layers.1.{k}.skip"}}
        return row("Attention", f"layers.1.{k}", "query", "key", "value", "output", skip=skip, **others)

    times = file.network["layers"][1]["times"]
    layers = [
        row("Embed", "layers.0", "weight", "bias", "registers"),
        {"layer": "Repeat", "layers": [body(0), body(1, mask="self+registers")], "times": times},
        row("Linear", "layers.2", "weight"),
    ]
    kept = {name: array for name, array in file.tensors.items() if not name.startswith("layers.")}
    kept |= {name: array.astype(file.tensors["layers.2.weight"].dtype) for name, array in arrays.items()}
    return replace(file, tensors=kept, network={**file.network, "layers": layers, "output": "register"})
