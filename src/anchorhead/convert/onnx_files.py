"""ONNX files as targets: the graph is followed from its input to its output, and becomes layers of neurons.

Nothing in a file is executed, no other file is read, and sizes are checked before memory is taken.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from anchorhead.convert.onnx_batch import one_sample
from anchorhead.convert.onnx_maps import Map
from anchorhead.convert.onnx_model import STANDARD, Info, Model, Node, read_model
from anchorhead.convert.onnx_operations import OPERATIONS
from anchorhead.convert.onnx_shapes import Given
from anchorhead.convert.onnx_values import MAX_SIZE, Source, Tape, Value
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

OLDEST, NEWEST = 7, 28
"""The opsets whose definitions of the supported operations were read."""
MAX_NODES = 10_000
MAX_LAYERS = 200
"""How many activations may follow on each other: the proof's work grows with the square of it."""
MAX_WEIGHTS = 50_000_000
MAX_TRIED = 4
"""How many other values are tried as ends of the network, for a message, each with a part of the work."""
SHARE_OF_TRIES = 20
FLOATS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


def mlp_from_onnx(path: str | Path, tokens: int | None = None, output: str | None = None) -> tuple[Mlp, str]:
    """The network in an ONNX file, and the dtype of its input.

    tokens   n: inputs and outputs are n tokens, one after the other; a second axis that is free is n
    output   the name of the value that is wanted: an output, or one between (logits before a Softmax); by default the
             only output

    A first axis that is free, or that is fixed to samples which the file treats alike, is the batch, and one sample is
    converted; what is left of inputs and outputs is flat, in row-major order. Constants are those of the file, exactly;
    what the file computes of constants alone, and the numbers of a BatchNormalization, are as float64 rounds them.
    Products of linear maps in a row carry bounds on what rounding did to them, and the proof allows for these.
    """
    path = Path(path)
    model = read_model(path)
    try:
        return _converted(model, _wanted(model, output, tokens), tokens)
    except _NodeRefused as error:
        raise AnchorheadError(f"{path}: {error}{_earlier(model, error.node, tokens)}") from error
    except AnchorheadError as error:
        raise AnchorheadError(f"{path}: {error}") from error


class _NodeRefused(AnchorheadError):
    """A node that cannot be converted; values before it may be."""

    def __init__(self, words: str, node: Node) -> None:
        super().__init__(words)
        self.node = node


def _converted(model: Model, wanted: str, tokens: int | None, share: int = 1) -> tuple[Mlp, str]:
    """The network that ends at the value that is wanted, and the dtype of its input, with this share of the work."""
    nodes = _ordered(model, wanted)
    _check_supported(nodes)
    info = _input(model, nodes, wanted)
    tape = Tape()
    tape.work.left //= share
    shape = _shape(info, tokens)
    known: dict[str, Given] = {info.name: tape.input(shape)}
    for node in nodes:
        _run(tape, node, model, known)
    made = known.get(wanted)
    if not isinstance(made, Value):
        raise AnchorheadError(f"the output {wanted!r} does not depend on the input")
    readout = tape.affine(made)
    needed = _reached(tape.sources, readout)
    samples = _samples(shape, made.shape, tokens)
    one = one_sample(tape.sources, needed, readout, samples) if samples > 1 else None
    sources, readout = (tape.sources, readout) if one is None else one
    return _network(sources, needed, readout, tokens), FLOATS[info.dtype]


def _samples(shape: tuple[int, ...], made: tuple[int, ...], tokens: int | None) -> int:
    """How many samples the first axis may hold: that of the output is as long, and it is not that of the tokens."""
    if len(shape) < 2 or made[:1] != shape[:1] or (len(shape) == 2 and shape[0] == tokens):
        return 1
    return shape[0]


def _earlier(model: Model, refused: Node, tokens: int | None) -> str:
    """Names the nearest value before a node that does become a network; nothing where none does."""
    makers = {name: node for node in model.nodes for name in node.outputs}
    waiting = list(refused.inputs)
    for _ in range(MAX_TRIED):
        name = next((one for one in waiting if one in makers), None)
        if name is None:
            break
        waiting = [one for one in waiting if one != name] + list(makers[name].inputs)
        found = _tried(model, name, tokens)
        if found is not None and found.hidden:
            return f". With output={name!r} (--until) the network ends before it"
    return ""


def _tried(model: Model, wanted: str, tokens: int | None) -> Mlp | None:
    """The network that ends there, if there is one and it takes little work."""
    try:
        return _converted(model, wanted, tokens, SHARE_OF_TRIES)[0]
    except AnchorheadError:
        return None


def _wanted(model: Model, output: str | None, tokens: int | None) -> str:
    version = model.opsets.get("", 0)
    if not OLDEST <= version <= NEWEST:
        raise AnchorheadError(
            f"it is written in opset {version or 'none'}: {OLDEST} to {NEWEST} are read; onnx.version_converter makes "
            "one from the other"
        )
    if output is not None:
        return output
    if not model.outputs:
        raise AnchorheadError("it has no outputs: one is needed")
    first, *others = model.outputs
    good = [name for name in [first, *others][:MAX_TRIED] if _tried(model, name, tokens)] if others else []
    if not good:
        return first  # the only one, or one whose refusal says more than that there are others
    names, which = ", ".join(map(repr, model.outputs)), " or ".join(f"output={name!r}" for name in good)
    raise AnchorheadError(f"it has {len(model.outputs)} outputs ({names}): say which, with {which} (--until)")


def _ordered(model: Model, wanted: str) -> list[Node]:
    """The nodes on which the output depends, each after those that it reads; refuses circles and loose ends."""
    makers: dict[str, Node] = {}
    for node in model.nodes:
        for name in filter(None, node.outputs):
            if name in makers or name in model.constants or name in model.inputs:
                raise AnchorheadError(f"{node} makes {name!r}, which there is already")
            makers[name] = node
    ordered: list[Node] = []
    state: dict[int, bool] = {}
    waiting: list[tuple[str, str, bool]] = [(wanted, "the output", False)]
    while waiting:
        name, reader, done = waiting.pop()
        node = makers.get(name)
        if done and node is not None:
            if state[id(node)]:
                state[id(node)] = False
                ordered.append(node)
            continue
        if node is None:
            if name not in model.constants and name not in model.inputs:
                raise AnchorheadError(f"{reader} reads {name!r}, which nothing makes")
            continue
        if id(node) in state:
            if state[id(node)]:
                raise AnchorheadError(f"{node} depends on itself")
            continue
        state[id(node)] = True
        if len(state) > MAX_NODES:
            raise AnchorheadError(f"the output depends on more than {MAX_NODES:,} nodes")
        waiting.append((name, reader, True))
        waiting += [(one, str(node), False) for one in dict.fromkeys(filter(None, node.inputs))]
    return ordered


def _check_supported(nodes: list[Node]) -> None:
    """Refuses operations that are not known, the first by its name, the others by their kind."""
    unknown = [node for node in nodes if node.domain not in STANDARD or node.op not in OPERATIONS]
    if not unknown:
        return
    others = ", ".join(sorted({node.op for node in unknown} - {unknown[0].op}))
    raise _NodeRefused(
        f"{unknown[0]} cannot be converted{f', nor can {others} further on' if others else ''}: supported are "
        f"{', '.join(sorted(OPERATIONS))}",
        unknown[0],
    )


def _input(model: Model, nodes: list[Node], wanted: str) -> Info:
    """The one input of floats on which the output depends."""
    read = {wanted, *(name for node in nodes for name in node.inputs)}
    found = [info for name, info in model.inputs.items() if name in read and name not in model.constants]
    if len(found) != 1:
        names = ", ".join(repr(info.name) for info in found) or "none"
        raise AnchorheadError(f"the output {wanted!r} depends on {len(found)} inputs ({names}): one is needed")
    if found[0].dtype not in FLOATS:
        reader = next((f", which {node} reads," for node in nodes if found[0].name in node.inputs), "")
        raise AnchorheadError(f"the input {found[0].name!r}{reader} is of type {found[0].dtype}: floats are needed")
    return found[0]


def _shape(info: Info, tokens: int | None) -> tuple[int, ...]:
    if info.shape is None:
        raise AnchorheadError(
            f"the file does not say which shape its input {info.name!r} has: onnx.tools.update_model_dims sets it"
        )
    shape = list(info.shape)
    if len(shape) > 1 and shape[0] is None:
        shape[0] = 1
    if len(shape) > 2 and shape[1] is None and tokens is not None:
        shape[1] = tokens
    if None in shape:
        shown = ", ".join("free" if side is None else str(side) for side in info.shape)
        raise AnchorheadError(
            f"the input {info.name!r} has shape ({shown}): only the first axis, the batch, and with tokens= the second "
            "of three may be free; onnx.tools.update_model_dims sets the others"
        )
    return tuple(side for side in shape if side is not None)


def _run(tape: Tape, node: Node, model: Model, known: dict[str, Given]) -> None:
    """One node: what it makes is added to what is known."""
    try:
        inputs: list[Given | None] = []
        for name in node.inputs:
            if name and name not in known:
                if name not in model.constants:
                    raise AnchorheadError(f"it reads {name!r}, an output of a node of which only the first is made")
                known[name] = model.constants[name].array()
            inputs.append(known[name] if name else None)
        with np.errstate(all="ignore"):
            made = OPERATIONS[node.op](tape, node, inputs)
        _hold(tape, made, inputs)
    except AnchorheadError as error:
        raise _NodeRefused(f"{node} cannot be converted: {error}", node) from error
    for name, value in zip(node.outputs, made, strict=False):
        if name:
            known[name] = value if isinstance(value, Value) else np.asarray(value)


def _hold(tape: Tape, made: list[Given], inputs: list[Given | None]) -> None:
    """Counts what a node made anew; views, and functions of an input's own entries, take no room."""
    maps = {id(one.affine) for one in inputs if isinstance(one, Value)}
    for one in made:
        if isinstance(one, Value) and id(one.affine) not in maps:
            tape.work.hold(one.affine.numbers)
        elif isinstance(one, np.ndarray) and one.base is None:
            tape.work.hold(one.size)


def _network(sources: list[Source], needed: list[int], readout: Map, tokens: int | None) -> Mlp:
    """The layers: at each depth the sources of that depth, and unchanged those that deeper ones still read."""
    depth = max((sources[one].depth for one in needed), default=0)
    if depth > MAX_LAYERS:
        raise AnchorheadError(f"it has {depth:,} layers of activations: at most {MAX_LAYERS} are allowed")
    last = {one: _last_reader(sources, one, needed, readout, depth) for one in needed}
    held = [0]
    hidden: list[Hidden] = []
    for level in range(1, depth + 1):
        new = [one for one in needed if sources[one].depth == level]
        kept = [one for one in held if last.get(one, 0) > level]
        activations: list[Expression] = [IDENTITY] if kept else []
        which = [np.zeros(sum(sources[one].size for one in kept), int)]
        maps = [Map.identity(one, sources[one].size) for one in kept]
        for one in new:
            source = sources[one]
            if source.affine is None or source.which is None:
                raise AnchorheadError("a layer of the graph has no map")
            which.append(source.which + len(activations))
            activations += source.activations
            maps.append(source.affine)
        hidden.append(Hidden(_dense(maps, held, sources), tuple(activations), np.concatenate(which)))
        held = [*kept, *new]
    return Mlp(tuple(hidden), _dense([readout], held, sources), tokens)


def _reached(sources: list[Source], readout: Map) -> list[int]:
    """The sources on which the output depends, the input among them."""
    found, waiting = {0}, list(readout.terms)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            affine = sources[one].affine
            waiting += [] if affine is None else list(affine.terms)
    return sorted(found)


def _last_reader(sources: list[Source], one: int, needed: list[int], readout: Map, depth: int) -> int:
    """The depth of the deepest layer that reads a source; the readout comes after the last."""
    readers = [0, depth + 1] if one in readout.terms else [0]
    readers += [sources[other].depth for other in needed if (a := sources[other].affine) is not None and one in a.terms]
    return max(readers)


def _dense(maps: list[Map], held: list[int], sources: list[Source]) -> Affine:
    """Maps one below the other, as one matrix on the sources that are held, side by side."""
    rows, columns = sum(one.size for one in maps), sum(sources[one].size for one in held)
    if rows * columns > MAX_WEIGHTS or rows > MAX_SIZE:
        raise AnchorheadError(
            f"a layer maps {columns:,} numbers to {rows:,}: as a matrix it has {rows * columns:,} entries, at most "
            f"{MAX_WEIGHTS:,} are allowed"
        )
    blank = {one: sources[one].size for one in held}

    def beside(parts: list[dict[int, sparse.csr_array]]) -> np.ndarray:
        lines = []
        for one, terms in zip(maps, parts, strict=True):
            if set(terms) - blank.keys():
                raise AnchorheadError("a layer of the graph reads what is no longer there")
            lines.append(
                np.hstack([terms[s].toarray() if s in terms else np.zeros((one.size, n)) for s, n in blank.items()])
            )
        return np.vstack(lines)

    weight, bias = beside([one.terms for one in maps]), np.concatenate([one.bias for one in maps])
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise AnchorheadError("linear maps in a row multiply to numbers that are not finite")
    weight_error = beside([one.errors for one in maps]) if any(one.errors for one in maps) else None
    return Affine(weight, bias, weight_error, np.concatenate([one.of_bias() for one in maps]))
