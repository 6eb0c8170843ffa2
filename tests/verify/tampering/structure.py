"""Changes of structure: masks, tokens, outputs, skips, biases, heads, layers."""

from __future__ import annotations

import copy

import numpy as np

from .file import File, Random, Row, entry, large, pick

MASKS = (None, "causal", "self+registers", "registers+states")


def mask(file: File, rng: Random) -> bool:
    layer = pick(rng, file.rows("Attention"))
    if layer is None:
        return False
    other = pick(rng, list(MASKS))
    layer.pop("mask", None)
    if other is not None:
        layer["mask"] = other
    return moved_token(file, rng) if rng.random() < 0.3 else True


def moved_token(file: File, rng: Random) -> bool:
    """What a register carries goes to an input token's bias, and the other way round."""
    embed = file.embed
    weight, bias, registers = (file.get(embed, name) for name in ("weight", "bias", "registers"))
    if registers is None:
        return False
    bias, registers = np.array(bias), np.array(registers)
    row = int(rng.integers(len(registers)))
    own = bias if bias.ndim == 1 else bias[int(rng.integers(len(bias)))]
    fixed = ~(weight != 0).any(axis=tuple(a for a in range(weight.ndim) if a != weight.ndim - 2))
    some = fixed & (rng.random(len(fixed)) < 0.8)
    own[some], registers[row, some] = registers[row, some].copy(), own[some].copy()
    file.put(embed, "bias", bias)
    file.put(embed, "registers", registers)
    return True


def output(file: File, rng: Random) -> bool:
    last = file.counts()[-1]
    kinds = [kind for kind, count in (("register", last.registers), ("state", last.states)) if count]
    file.header["network"]["output"] = pick(rng, ["input", *kinds])
    return True


def more_tokens(file: File, rng: Random) -> bool:
    """A register or a state more: a copy, zeros, or another token's constants, perhaps with a large entry. Maps across
    the sequence do not read it."""
    embed = file.embed
    field = str(rng.choice(["registers", "registers", "states"]))
    now, registers = file.get(embed, field), file.get(embed, "registers")
    width = file.get(embed, "weight").shape[-2]
    sources = [np.zeros(width), np.reshape(file.get(embed, "bias"), (-1, width))[0]]
    sources += [] if registers is None else [registers[int(rng.integers(len(registers)))]]
    row = np.array(pick(rng, sources), file.dtype)
    if rng.random() < 0.5:
        row[int(rng.integers(width))] = large(rng)
    before = file.counts()
    file.put(embed, field, row[None] if now is None else np.insert(now, int(rng.integers(len(now) + 1)), row, axis=0))
    for layer, stream in zip(file.layers[1:], before, strict=False):
        weight = file.get(layer, "weight") if layer["layer"] == "Linear" else None
        if weight is not None and weight.ndim == 4 and stream.inputs is not None:
            place = stream.inputs + (stream.registers if field == "states" else 0)
            file.put(layer, "weight", np.insert(weight, place, 0, axis=2))
            break
    return True


def fewer_tokens(file: File, rng: Random) -> bool:
    field = str(rng.choice(["registers", "states"]))
    now = file.get(file.embed, field)
    if now is None:
        return False
    rows = np.delete(now, int(rng.integers(len(now))), axis=0)
    file.put(file.embed, field, rows if len(rows) else None)
    return True


def other_order(file: File, rng: Random) -> bool:
    """Registers in another order: whatever does not see a grid reads the same."""
    now = file.get(file.embed, "registers")
    if now is None:
        return False
    file.put(file.embed, "registers", now[rng.permutation(len(now))])
    return True


def skip(file: File, rng: Random) -> bool:
    layer = pick(rng, file.rows("Attention"))
    if layer is None:
        return False
    outputs, width = file.get(layer, "output").shape[1], file.get(layer, "query").shape[2]
    now = layer.pop("skip", None)
    if rng.random() < 0.3:
        return True
    weight = np.zeros((outputs, width)) if now is None else np.array(file.get(now, "weight"))
    if rng.random() < 0.5:
        weight[entry(weight, rng, False)] += float(rng.choice([1, -1, 0.01]))
    bias = np.zeros(outputs)
    bias[int(rng.integers(outputs))] = float(rng.choice([0, 1, 0.01, 1000]))
    layer["skip"] = file.linear(weight, bias if rng.random() < 0.5 else None)
    return True


def bias(file: File, rng: Random) -> bool:
    layer = pick(rng, file.rows("Attention", "Linear"))
    if layer is None:
        return False
    if layer.get("bias") is not None and rng.random() < 0.5:
        layer.pop("bias")
        return True
    weight = file.get(layer, "output" if layer["layer"] == "Attention" else "weight")
    outputs = weight.shape[1] if layer["layer"] == "Attention" or weight.ndim == 4 else int(np.prod(weight.shape[:-1]))
    other = np.zeros(outputs)
    other[int(rng.integers(outputs))] = float(rng.choice([0.0, 1.0, -0.01, 1e-6, 2.0**40]))
    file.put(layer, "bias", other)
    return True


def grid(file: File, rng: Random) -> bool:
    layer, registers = pick(rng, file.rows("Attention")), file.get(file.embed, "registers")
    if layer is None or registers is None:
        return False
    n = len(registers)
    now = layer.pop("grid", None)
    other = pick(rng, [None, [n], [max(1, n - 1)], [1, n], [n, 1], list(reversed(now or [1]))])
    if other is not None:
        layer["grid"] = other
    return True


def heads(file: File, rng: Random) -> bool:
    """A head dropped, repeated, or in another place."""
    layer = pick(rng, file.rows("Attention"))
    if layer is None:
        return False
    count = len(file.get(layer, "query"))
    order = list(range(count))
    match int(rng.integers(3)):
        case 0 if len(order) > 1:
            order.pop(int(rng.integers(len(order))))
        case 1:
            order.append(int(rng.integers(len(order))))
        case _:
            rng.shuffle(order)
    for field in ("query", "key", "value", "output"):
        array = file.get(layer, field)
        if len(array) == count:
            file.put(layer, field, array[order])
    layer.pop("labels", None)
    return True


def layers(file: File, rng: Random) -> bool:
    """A layer dropped, repeated, or put in: an identity, a softmax of single features, an attention that copies."""
    now = file.layers
    place = int(rng.integers(1, len(now) + 1))
    width = file.counts()[place - 1].width
    match int(rng.integers(6)):
        case 0 if len(now) > 1:
            file.drop(max(1, place - 1))
        case 1 if place > 1:
            file.insert(place, copy.deepcopy(now[place - 1]))
        case 2:
            file.insert(place, file.linear(np.eye(width)))
        case 3:
            file.insert(place, {"layer": "Softmax", "groups": [1] * width})
        case 4:
            file.insert(place, _copier(file, width, rng))
        case _:
            inner = now[place - 1]
            if place > 1 and inner["layer"] != "Repeat":
                now[place - 1] = {"layer": "Repeat", "layers": [inner], "times": int(rng.integers(1, 3))}
            elif place > 1:
                inner["times"] = max(1, inner["times"] + int(rng.choice([-1, 1])))
    return True


def _copier(file: File, width: int, rng: Random) -> Row:
    """Copies whatever token has the largest number in one feature."""
    query, key = np.zeros((2, 1, 1, width))
    query[0, 0, int(rng.integers(width))], key[0, 0, int(rng.integers(width))] = 1.0, large(rng)
    eye = np.eye(width)[None]
    skip = file.linear(eye[0]) if rng.random() < 0.5 else None
    row: Row = {"layer": "Attention"}
    for field, array in (("query", query), ("key", key), ("value", eye), ("output", eye if skip is None else 0 * eye)):
        file.put(row, field, array)
    if skip is not None:
        row["skip"] = skip
    return row


def source(file: File, rng: Random) -> bool:
    embed = file.embed
    if embed.get("tokens") is None:
        return False
    now = file.get(embed, "source")
    count = embed["tokens"] if now is None else len(now)
    file.put(embed, "source", rng.integers(embed["tokens"], size=count))
    return True
