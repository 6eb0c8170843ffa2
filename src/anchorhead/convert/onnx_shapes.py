"""Operations of ONNX that move entries and compute none: each is what it does to the places of the entries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from anchorhead.convert.onnx_functions import whole, wholes
from anchorhead.convert.onnx_model import MAX_AXES, Node
from anchorhead.convert.onnx_values import Tape, Value, checked_size
from anchorhead.errors import AnchorheadError

Given = Value | np.ndarray
Inputs = list[Given | None]
Operation = Callable[[Tape, Node, Inputs], list[Given]]


def moved(tape: Tape, given: Given, move: Callable[[np.ndarray], np.ndarray], most: int | None = None) -> Given:
    """A value or a constant after a move, which is a function of arrays that computes no entries.

    most  how many entries it makes, where that may be more than there were
    """
    if most is not None:
        checked_size((most,))
    tape.work.spend(size_of(given) if most is None else most)
    try:
        if isinstance(given, np.ndarray):
            return np.asarray(move(given))
        return tape.picked(given, move(np.arange(given.affine.size).reshape(given.shape)))
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise AnchorheadError(f"it does not fit an array of shape {given.shape} ({error})") from error


def size_of(given: Given) -> int:
    return int(given.size) if isinstance(given, np.ndarray) else given.affine.size


def value(inputs: Inputs, place: int) -> Given:
    """An input that must be there."""
    given = inputs[place] if place < len(inputs) else None
    if given is None:
        raise AnchorheadError(f"its input {place} is missing")
    return given


def numbers(inputs: Inputs, place: int) -> list[int] | None:
    """A list of whole numbers that must be constant; None where it is left out."""
    given = inputs[place] if place < len(inputs) else None
    if given is None:
        return None
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "iu" or given.size > 1000:
        raise AnchorheadError(f"its input {place} is not a constant list of whole numbers")
    return [int(one) for one in given.ravel()]


def axes_of(node: Node, inputs: Inputs, place: int) -> list[int] | None:
    """Axes, an attribute in old files and an input in new ones."""
    listed = wholes(node, "axes")
    return list(listed) if listed is not None else numbers(inputs, place)


def reshape(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, shape = value(inputs, 0), numbers(inputs, 1)
    if shape is None:
        raise AnchorheadError("its shape is missing")
    if not whole(node, "allowzero", 0):
        if any(one == 0 and axis >= len(x.shape) for axis, one in enumerate(shape)):
            raise AnchorheadError(f"its shape {shape} copies an axis that an array of shape {x.shape} has not")
        shape = [x.shape[axis] if one == 0 else one for axis, one in enumerate(shape)]
    if min(shape, default=0) < -1:
        raise AnchorheadError(f"its shape is {shape}: sizes, 0 to copy one, -1 once for what is left")
    return [moved(tape, x, lambda a: a.reshape(shape))]


def flatten(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, axis = value(inputs, 0), whole(node, "axis", 1)
    if not -len(x.shape) <= axis <= len(x.shape):
        raise AnchorheadError(f"its axis is {axis}, of an array of shape {x.shape}")
    first = math.prod(x.shape[:axis]) if axis >= 0 else math.prod(x.shape[: len(x.shape) + axis])
    return [moved(tape, x, lambda a: a.reshape(first, -1))]


def transpose(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    perm = wholes(node, "perm")
    return [moved(tape, value(inputs, 0), lambda a: np.transpose(a, perm))]


def squeeze(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    axes = axes_of(node, inputs, 1)
    return [moved(tape, value(inputs, 0), lambda a: np.squeeze(a, None if axes is None else tuple(axes)))]


def unsqueeze(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    axes = axes_of(node, inputs, 1)
    if axes is None or len(axes) > MAX_AXES:
        raise AnchorheadError(f"its axes are {axes}: at least one is needed, and at most {MAX_AXES}")
    return [moved(tape, value(inputs, 0), lambda a: np.expand_dims(a, tuple(axes)))]


def expand(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, shape = value(inputs, 0), numbers(inputs, 1)
    if shape is None or any(one < 1 for one in shape) or len(shape) > MAX_AXES:
        raise AnchorheadError(f"its shape is {shape}: sizes of at least 1")
    try:
        whole_shape = np.broadcast_shapes(x.shape, tuple(shape))
    except ValueError as error:
        raise AnchorheadError(f"an array of shape {x.shape} cannot become {shape}") from error
    return [moved(tape, x, lambda a: np.broadcast_to(a, whole_shape), math.prod(whole_shape))]


def gather(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, index = value(inputs, 0), value(inputs, 1)
    axis = whole(node, "axis", 0)
    if not isinstance(index, np.ndarray) or index.dtype.kind not in "iu":
        raise AnchorheadError("its indices are not constant whole numbers: a lookup by the input is no linear map")
    if not -len(x.shape) <= axis < len(x.shape):
        raise AnchorheadError(f"its axis is {axis}, of an array of shape {x.shape}")
    most = size_of(x) // max(1, x.shape[axis]) * index.size
    return [moved(tape, x, lambda a: np.take(a, index, axis), most)]


def slice_(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x = value(inputs, 0)
    listed = [wholes(node, name) for name in ("starts", "ends", "axes")]
    if listed[0] is not None:
        starts, ends, axes, steps = (*listed, None)
    else:
        starts, ends, axes, steps = (numbers(inputs, place) for place in (1, 2, 3, 4))
    if starts is None or ends is None:
        raise AnchorheadError("its starts or ends are missing")
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or not all(steps):
        raise AnchorheadError(f"its starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit together")
    cut = [slice(None)] * len(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -len(x.shape) <= axis < len(x.shape):
            raise AnchorheadError(f"its axis is {axis}, of an array of shape {x.shape}")
        # backwards, an end before the first entry is written as a number below -size, which Python reads as None
        before = step < 0 and end < -x.shape[axis]
        cut[axis] = slice(start, None if before else end, step)
    return [moved(tape, x, lambda a: a[tuple(cut)])]


def split(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x, axis = value(inputs, 0), whole(node, "axis", 0)
    if not -len(x.shape) <= axis < len(x.shape):
        raise AnchorheadError(f"its axis is {axis}, of an array of shape {x.shape}")
    side, parts = x.shape[axis], len(node.outputs)
    listed = wholes(node, "split")
    sizes = list(listed) if listed is not None else numbers(inputs, 1)
    if sizes is None:
        each = -(-side // parts)
        sizes = [min(each, side - each * place) for place in range(parts)]
    if len(sizes) != parts or sum(sizes) != side or min(sizes) < 1:
        raise AnchorheadError(f"it splits {side} entries into {sizes} for {parts} outputs")
    ends = np.cumsum(sizes).tolist()
    return [
        moved(tape, x, lambda a, end=end, size=size: np.take(a, np.arange(end - size, end), axis))
        for end, size in zip(ends, sizes, strict=True)
    ]


def concat(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    parts = [value(inputs, place) for place in range(len(inputs))]
    axis = whole(node, "axis", 0)
    entries = sum(map(size_of, parts))
    checked_size((max(1, entries),))
    tape.work.spend(entries)
    try:
        if all(isinstance(part, np.ndarray) for part in parts):
            return [np.concatenate(parts, axis)]  # type: ignore[arg-type]
        held = [tape.constant(part) if isinstance(part, np.ndarray) else part for part in parts]
        starts = np.cumsum([0, *(part.affine.size for part in held)]).tolist()
        places = [start + np.arange(p.affine.size).reshape(p.shape) for start, p in zip(starts, held, strict=False)]
        whole_places = np.concatenate(places, axis)
    except (ValueError, IndexError, TypeError) as error:
        shapes = ", ".join(str(part.shape) for part in parts)
        raise AnchorheadError(f"arrays of shapes {shapes} cannot be joined along axis {axis} ({error})") from error
    return [tape.picked(tape.joined(held, (starts[-1],)), whole_places)]


def pad(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    x = value(inputs, 0)
    listed = wholes(node, "pads")
    pads = list(listed) if listed is not None else numbers(inputs, 1)
    mode = node.attributes.get("mode", "constant")
    filled = inputs[2] if len(inputs) > 2 and listed is None else np.array(node.attributes.get("value", 0.0))
    axes = numbers(inputs, 3) if listed is None else None
    axes = list(range(len(x.shape))) if axes is None else axes
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise AnchorheadError(f"its mode is {mode!r}: constant, reflect, edge or wrap")
    if mode == "constant" and filled is not None and (not isinstance(filled, np.ndarray) or filled.any()):
        raise AnchorheadError("it pads with other numbers than 0")
    if pads is None or len(pads) != 2 * len(axes) or min(pads, default=0) < 0 or max(pads, default=0) > 1_000_000:
        raise AnchorheadError(f"its pads are {pads}: two for each axis, none below 0")
    if any(not -len(x.shape) <= axis < len(x.shape) for axis in axes):
        raise AnchorheadError(f"its axes are {axes}, of an array of shape {x.shape}")
    ends = [[0, 0] for _ in x.shape]
    for place, axis in enumerate(axes):
        ends[axis] = [pads[place], pads[place + len(axes)]]
    most = math.prod(side + sum(end) for side, end in zip(x.shape, ends, strict=True))
    if mode != "constant":
        return [moved(tape, x, lambda a: np.pad(a, ends, mode=mode), most)]  # type: ignore[call-overload]
    blank = 0 if isinstance(x, np.ndarray) else -1
    return [moved(tape, x, lambda a: np.pad(a, ends, constant_values=blank), most)]


def shape_of(tape: Tape, node: Node, inputs: Inputs) -> list[Given]:
    shape = value(inputs, 0).shape
    end = node.attributes.get("end")
    return [np.array(shape[whole(node, "start", 0) : None if end is None else whole(node, "end", 0)], dtype=np.int64)]


SHAPES: dict[str, Operation] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Transpose": transpose,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Gather": gather,
    "Slice": slice_,
    "Split": split,
    "Concat": concat,
    "Pad": pad,
    "Shape": shape_of,
}
