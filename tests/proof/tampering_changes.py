"""Ways to tamper with a saved network, drawn at random: its weights, its structure, and what its header says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax, TargetRecord

Random = np.random.Generator
Path = tuple[Any, ...]
"""How to get to a field: numbers of layers and names of fields, as in (1, "layers", 0, "skip", "weight")."""
LARGE = (1.0, 2.0, 100.0, 799.0, 800.0, 1000.0, 2000.0, 2.0**20, 2.0**40, 2.0**60, 2.0**100)


def tampered(network: Network, rng: Random) -> tuple[Network, str] | None:
    """The network after one to three changes, and what they were; None where the grammar refuses it."""
    said = []
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        name = str(rng.choice(list(CHANGES), p=WEIGHTS))
        try:
            with np.errstate(all="ignore"):
                changed = CHANGES[name](network, rng)
        except (AnchorheadError, OverflowError):
            return None
        if changed is None:
            return None
        network = changed
        said.append(name)
    return network, ", ".join(said)


def at(layers: Any, path: Path) -> Any:
    for step in path:
        layers = layers[step] if isinstance(step, int) else getattr(layers, step)
    return layers


def with_at(thing: Any, path: Path, value: Any) -> Any:
    """A copy of layers, or of one, with another value at a path."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return (*thing[:step], with_at(thing[step], tuple(rest), value), *thing[step + 1 :])
    return replace(thing, **{step: with_at(getattr(thing, step), tuple(rest), value)})


def rebuilt(network: Network, layers: Any, **words: Any) -> Network:
    given = {one.name: getattr(network, one.name) for one in fields(Network) if one.init and one.name != "layers"}
    return Network(layers, **{**given, "outside": "ignore", **words})


def arrays(network: Network) -> list[Path]:
    """The paths of all weights."""
    return [path for path, value in walk(network) if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def parts(network: Network, kind: type) -> list[Path]:
    """The paths of all layers of a kind, those in a Repeat and skips included."""
    return [path for path, value in walk(network) if type(value) is kind]


def walk(network: Network) -> Iterator[tuple[Path, Any]]:
    def inside(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        yield path, value
        if isinstance(value, Embed | Linear | Attention | Repeat):
            for one in fields(value):
                yield from inside(getattr(value, one.name), (*path, one.name))
        elif isinstance(value, tuple) and path and path[-1] == "layers":
            for number, one in enumerate(value):
                yield from inside(one, (*path, number))

    for number, layer in enumerate(network.layers):
        yield from inside(layer, (number,))


def pick(rng: Random, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))] if choices else None


def changed_array(network: Network, rng: Random, change: Callable[[np.ndarray], None]) -> Network:
    path = pick(rng, arrays(network))
    array = np.array(at(network.layers, path))
    change(array)
    return rebuilt(network, with_at(network.layers, path, array))


def entry(array: np.ndarray, rng: Random, filled: bool) -> tuple[int, ...]:
    places = np.argwhere(array != 0) if filled else np.empty((0, array.ndim), int)
    if len(places):
        return tuple(places[rng.integers(len(places))])
    return tuple(int(rng.integers(side)) for side in array.shape)


def large(rng: Random) -> float:
    return float(rng.choice([-1, 1]) * rng.choice(LARGE))


def one_weight(network: Network, rng: Random) -> Network:
    def change(array: np.ndarray) -> None:
        place = entry(array, rng, filled=rng.random() < 0.7)
        match int(rng.integers(6)):
            case 0:
                array[place] *= 1 + 10 ** rng.uniform(-7, 1) * rng.choice([-1, 1])
            case 1:
                array[place] = 0.0
            case 2:
                array[place] *= -1
            case 3:
                array[place] = large(rng)
            case 4:
                array[place] += large(rng)
            case 5:
                array[place] *= 2.0 ** rng.integers(-60, 61)

    return changed_array(network, rng, change)


def swapped(network: Network, rng: Random) -> Network:
    """Two entries, or two slices along an axis, change places."""

    def change(array: np.ndarray) -> None:
        if rng.random() < 0.5:
            one, two = entry(array, rng, True), entry(array, rng, True)
            array[one], array[two] = array[two], array[one]
        else:
            axis = int(rng.integers(array.ndim))
            order = np.arange(array.shape[axis])
            one, two = rng.integers(len(order), size=2)
            order[[one, two]] = order[[two, one]]
            array[:] = np.take(array, order, axis=axis)

    return changed_array(network, rng, change)


def pair(network: Network, rng: Random) -> Network:
    """The same large number added to two entries, or to one and taken from the other."""

    def change(array: np.ndarray) -> None:
        by, sign = large(rng), float(rng.choice([-1, 1]))
        one, two = entry(array, rng, rng.random() < 0.5), entry(array, rng, rng.random() < 0.5)
        array[one] += by
        array[two] += sign * by

    return changed_array(network, rng, change)


def shifted(network: Network, rng: Random) -> Network:
    """A number added to all entries of a slice, or all of them scaled."""

    def change(array: np.ndarray) -> None:
        axis = int(rng.integers(array.ndim))
        part = [slice(None)] * array.ndim
        part[axis] = int(rng.integers(array.shape[axis]))
        if rng.random() < 0.5:
            array[tuple(part)] += large(rng)
        else:
            array[tuple(part)] *= 2.0 ** rng.integers(-60, 61)

    return changed_array(network, rng, change)


def balanced(network: Network, rng: Random) -> Network:
    """One array times a power of two, another one over it; or both times it."""
    paths = [pick(rng, arrays(network)) for _ in range(2)]
    attention = pick(rng, parts(network, Attention))
    if attention is not None and rng.random() < 0.7:
        names = [("query", "key"), ("value", "output"), ("query", "query"), ("key", "key")][int(rng.integers(4))]
        paths = [(*attention, name) for name in names]
    by, sign = float(rng.integers(1, 140)), int(rng.choice([-1, 1]))
    layers = network.layers
    for path, power in zip(paths, (by, sign * by), strict=True):
        array = at(layers, path)
        layers = with_at(layers, path, (array * array.dtype.type(2.0**power)).astype(array.dtype))
    return rebuilt(network, layers)


def silenced(network: Network, rng: Random) -> Network:
    """A large number in a whole column of registers or biases, where logits are made."""
    place = (0, "registers") if network.embed.registers is not None and rng.random() < 0.6 else (0, "bias")
    array = np.array(at(network.layers, place))
    column = int(rng.integers(array.shape[-1]))
    rows = rng.random(array.shape[:-1]) < rng.choice([0.3, 1.0])
    array[..., column] += (rows * large(rng)).astype(array.dtype)
    return rebuilt(network, with_at(network.layers, place, array))


def mask(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    other = pick(rng, [None, "causal", "self+registers", "registers+states"])
    layers = with_at(network.layers, (*path, "mask"), other)
    if rng.random() < 0.3:
        return moved_token(rebuilt(network, layers), rng)
    return rebuilt(network, layers)


def moved_token(network: Network, rng: Random) -> Network | None:
    """What a register carries goes to an input token's bias, or the other way round."""
    embed = network.embed
    if embed.registers is None:
        return None
    registers, bias = np.array(embed.registers), np.array(embed.bias)
    row = int(rng.integers(len(registers)))
    token = () if bias.ndim == 1 else int(rng.integers(len(bias)))
    fixed = ~(embed.weight != 0).any(axis=tuple(a for a in range(embed.weight.ndim) if a != embed.weight.ndim - 2))
    some = fixed & (rng.random(len(fixed)) < 0.8)
    registers[row, some], bias[(*np.atleast_1d(token), some) if token != () else some] = (
        bias[token][some],
        registers[row, some].copy(),
    )
    return rebuilt(network, (replace(embed, registers=registers, bias=bias), *network.layers[1:]))


def output(network: Network, rng: Random) -> Network:
    return rebuilt(network, network.layers, output=pick(rng, list(network.streams[-1].kinds)))


def more_tokens(network: Network, rng: Random) -> Network:
    """A register or a state more: a copy, zeros, or another token's constants, perhaps with a large entry."""
    embed = network.embed
    name = str(rng.choice(["registers", "registers", "states"]))
    now = getattr(embed, name)
    width = embed.weight.shape[-2]
    sources = [np.zeros(width), np.reshape(embed.bias, (-1, width))[0]]
    sources += [] if embed.registers is None else [embed.registers[int(rng.integers(len(embed.registers)))]]
    row = np.array(pick(rng, sources), embed.weight.dtype)
    if rng.random() < 0.5:
        row[int(rng.integers(width))] = large(rng)
    rows = row[None] if now is None else np.insert(now, int(rng.integers(len(now) + 1)), row, axis=0)
    return rebuilt(network, _widened(network, replace(embed, **{name: rows})))


def _widened(network: Network, embed: Embed) -> tuple[Any, ...]:
    """The layers after an Embed of one token more: maps across the sequence do not read it."""
    layers, before, now = [embed], network.embed.start(), embed.start()
    for layer in network.layers[1:]:
        if isinstance(layer, Linear) and layer.across and layer.weight.ndim == 4 and now.tokens != before.tokens:
            place = (before.inputs or 0) + (before.registers if now.states > before.states else 0)
            layer = replace(layer, weight=np.insert(layer.weight, place, 0, axis=2))
        before, now = layer_after(network, layer, before), layer.follow(now)
        layers.append(layer)
    return tuple(layers)


def layer_after(network: Network, layer: Any, before: Any) -> Any:
    number = next((n for n, stream in enumerate(network.streams) if stream is before), None)
    return before if number is None or number + 1 >= len(network.streams) else network.streams[number + 1]


def fewer_tokens(network: Network, rng: Random) -> Network | None:
    embed = network.embed
    name = str(rng.choice(["registers", "states"]))
    now = getattr(embed, name)
    if now is None:
        return None
    rows = np.delete(now, int(rng.integers(len(now))), axis=0)
    return rebuilt(network, (replace(embed, **{name: rows if len(rows) else None}), *network.layers[1:]))


def skip(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    layer = at(network.layers, path)
    other = None
    if rng.random() < 0.7:
        weight = np.zeros((layer.outputs, layer.width), layer.query.dtype) if layer.skip is None else layer.skip.weight
        weight = np.array(weight)
        if rng.random() < 0.5:
            weight[entry(weight, rng, False)] += float(rng.choice([1, -1, 0.01]))
        bias = np.zeros(layer.outputs, layer.query.dtype)
        bias[int(rng.integers(len(bias)))] = float(rng.choice([0, 1, 0.01, 1000]))
        other = Linear(weight, bias if rng.random() < 0.5 else None)
    return rebuilt(network, with_at(network.layers, (*path, "skip"), other))


def bias(network: Network, rng: Random) -> Network | None:
    path = pick(rng, [*parts(network, Attention), *parts(network, Linear)])
    if path is None:
        return None
    layer = at(network.layers, path)
    other = None
    if layer.bias is None or rng.random() < 0.5:
        other = np.zeros(layer.outputs, layer.query.dtype if isinstance(layer, Attention) else layer.weight.dtype)
        other[int(rng.integers(len(other)))] = float(rng.choice([0.0, 1.0, -0.01, 1e-6, 2.0**40]))
    return rebuilt(network, with_at(network.layers, (*path, "bias"), other))


def grid(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    registers = 0 if network.embed.registers is None else len(network.embed.registers)
    if path is None or not registers:
        return None
    now = at(network.layers, (*path, "grid"))
    other = pick(rng, [None, (registers,), (max(1, registers - 1),), (1, registers), (now or (1,))[::-1]])
    return rebuilt(network, with_at(network.layers, (*path, "grid"), other))


def heads(network: Network, rng: Random) -> Network | None:
    """A head dropped, repeated, or in another place."""
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    layer = at(network.layers, path)
    order = list(range(layer.heads))
    match int(rng.integers(3)):
        case 0 if len(order) > 1:
            order.pop(int(rng.integers(len(order))))
        case 1:
            order.append(int(rng.integers(len(order))))
        case _:
            rng.shuffle(order)
    names = {name: getattr(layer, name) for name in ("query", "key", "value", "output")}
    some = {name: array[order] if len(array) == layer.heads else array for name, array in names.items()}
    return rebuilt(network, with_at(network.layers, path, replace(layer, **some, labels=None)))


def layers(network: Network, rng: Random) -> Network | None:
    """A layer dropped, repeated, or put in: an identity, a softmax of single features, an attention that copies."""
    now = list(network.layers)
    place = int(rng.integers(1, len(now) + 1))
    stream = network.streams[place - 1]
    dtype = network.dtype
    match int(rng.integers(6)):
        case 0 if len(now) > 1:
            now.pop(max(1, place - 1))
        case 1 if place > 1:
            now.insert(place, now[place - 1])
        case 2:
            now.insert(place, Linear.identity(stream.features, dtype))
        case 3:
            now.insert(place, Softmax((1,) * stream.width))
        case 4:
            now.insert(place, _copier(stream.width, dtype, rng))
        case _:
            inner = now[place - 1]
            if place > 1 and not isinstance(inner, Repeat):
                now[place - 1] = Repeat((inner,), int(rng.integers(1, 3)))
            elif place > 1:
                now[place - 1] = replace(inner, times=max(1, inner.times + int(rng.choice([-1, 1]))))
    return rebuilt(network, now)


def _copier(width: int, dtype: str, rng: Random) -> Attention:
    """Copies whatever token has the largest number in one feature."""
    query, key = np.zeros((2, 1, 1, width), dtype)
    query[0, 0, int(rng.integers(width))], key[0, 0, int(rng.integers(width))] = 1.0, large(rng)
    eye = np.eye(width, dtype=dtype)[None]
    skip = Linear(eye[0]) if rng.random() < 0.5 else None
    return Attention(query, key, eye, eye if skip is None else 0 * eye, skip=skip)


def source(network: Network, rng: Random) -> Network | None:
    embed = network.embed
    if embed.tokens is None:
        return None
    count = len(embed.source) if embed.source is not None else embed.tokens
    return rebuilt(network, (replace(embed, source=rng.integers(embed.tokens, size=count)), *network.layers[1:]))


def target(network: Network, rng: Random) -> Network | None:
    """Another number in what the network is said to approximate: its data, or its arrays."""
    record = network.target
    data, found = dict(record.data), dict(record.arrays)
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
    return rebuilt(network, network.layers, target=TargetRecord(record.kind, data, found))


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


CHANGES: dict[str, Callable[[Network, Random], Network | None]] = {
    "one weight": one_weight,
    "swapped": swapped,
    "pair": pair,
    "shifted": shifted,
    "balanced": balanced,
    "silenced": silenced,
    "mask": mask,
    "moved token": moved_token,
    "output": output,
    "more tokens": more_tokens,
    "fewer tokens": fewer_tokens,
    "skip": skip,
    "bias": bias,
    "grid": grid,
    "heads": heads,
    "layers": layers,
    "source": source,
    "target": target,
    "certificate": certificate,
    "dtype": dtype,
    "token axis": token_axis,
}
OFTEN = {"one weight": 6, "pair": 4, "shifted": 3, "balanced": 3, "silenced": 3, "mask": 2, "more tokens": 2}
WEIGHTS = np.array([OFTEN.get(name, 1) for name in CHANGES], float)
WEIGHTS /= WEIGHTS.sum()
