"""Convolutions and average pooling as the linear maps that they are: sparse matrices on a flat picture."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from anchorhead.convert.onnx_functions import whole, wholes
from anchorhead.convert.onnx_maps import Matrix, Work
from anchorhead.convert.onnx_model import Node
from anchorhead.errors import AnchorheadError

MAX_SIDE = 1_000_000


def convolution(
    node: Node, shape: tuple[int, ...], weight: Float[np.ndarray, "..."], work: Work
) -> tuple[Matrix, tuple[int, ...]]:
    """The matrix of a convolution of one picture (channels, ...) by weight (out, channels / groups, ...), and the shape
    (out, ...) of what it makes."""
    groups = whole(node, "group", 1)
    channels, outputs = shape[0], weight.shape[0]
    axes = len(shape) - 1
    if weight.ndim != axes + 2 or groups < 1 or outputs % groups or channels != groups * weight.shape[1]:
        raise AnchorheadError(
            f"weights of shape {weight.shape} in {groups} groups do not fit a picture of shape {shape}"
        )
    kernel = wholes(node, "kernel_shape") or weight.shape[2:]
    if kernel != weight.shape[2:]:
        raise AnchorheadError(f"its kernel_shape is {kernel}, but its weights have shape {weight.shape}")
    places, made = _windows(node, shape, kernel, work, outputs // groups)
    count, size = math.prod(made), weight.shape[1] * math.prod(kernel)
    columns = places.reshape(groups, weight.shape[1], count, -1).swapaxes(1, 2).reshape(groups, 1, count, size)
    rows = weight.reshape(groups, outputs // groups, 1, size)
    data, columns = np.broadcast_arrays(rows, columns)
    return _filled(data, columns, math.prod(shape)), (outputs, *made)


def pooling(
    node: Node, shape: tuple[int, ...], work: Work
) -> tuple[Matrix, tuple[int, ...], Int[np.ndarray, " outputs"]]:
    """The matrix that sums the windows of one picture, the shape of what it makes, and how many entries each has."""
    kernel = wholes(node, "kernel_shape")
    if kernel is None or len(kernel) != len(shape) - 1:
        raise AnchorheadError(f"its kernel_shape is {kernel}: one size for each axis of a picture of shape {shape}")
    if whole(node, "ceil_mode", 0):
        raise AnchorheadError("its ceil_mode is 1, where averages at the edge are taken over fewer entries: only 0")
    places, made = _windows(node, shape, kernel, work, 1)
    everything = whole(node, "count_include_pad", 0)
    inside = np.full(places.shape[:2], math.prod(kernel)) if everything else (places >= 0).sum(-1)
    if not inside.all():
        raise AnchorheadError("a window of it lies outside of the picture")
    return _filled(np.ones(places.shape), places, math.prod(shape)), (shape[0], *made), inside.ravel()


def _filled(data: np.ndarray, columns: Int[np.ndarray, "..."], size: int) -> Matrix:
    """Rows of so many entries each; what falls on -1, the padding, is left out."""
    width = data.shape[-1]
    data, columns = data.reshape(-1), columns.reshape(-1)
    rows = np.repeat(np.arange(len(data) // width), width)
    kept = columns >= 0
    return Matrix((data[kept], (rows[kept], columns[kept])), shape=(len(data) // width, size))


def _windows(
    node: Node, shape: tuple[int, ...], kernel: tuple[int, ...], work: Work, copies: int
) -> tuple[Int[np.ndarray, "channels count spots"], tuple[int, ...]]:
    """Which entries of the flat picture each window holds, -1 for padding; and how many windows there are."""
    sides, axes = shape[1:], len(shape) - 1
    strides, dilations = (wholes(node, name) or (1,) * axes for name in ("strides", "dilations"))
    if not axes or not all(len(one) == axes and min(one) >= 1 for one in (kernel, strides, dilations)):
        raise AnchorheadError(
            f"kernel {kernel}, strides {strides} and dilations {dilations} do not fit a picture of shape {shape}"
        )
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after = _padding(node, sides, reach, strides)
    padded = [b + s + a for b, s, a in zip(before, sides, after, strict=True)]
    made = tuple((p - r) // s + 1 for p, r, s in zip(padded, reach, strides, strict=True))
    if any(side > MAX_SIDE for side in padded) or min(made) < 1:
        raise AnchorheadError(f"windows of {tuple(reach)} do not fit a picture of shape {shape} with its padding")
    entries = shape[0] * math.prod(made) * math.prod(kernel) * copies
    work.spend(shape[0] * math.prod(padded) + 4 * entries, max(entries, math.prod(padded) * shape[0]))
    picture = np.arange(math.prod(shape)).reshape(shape)
    picture = np.pad(picture, [(0, 0), *zip(before, after, strict=True)], constant_values=-1)
    view = np.lib.stride_tricks.sliding_window_view(picture, reach, axis=tuple(range(1, axes + 1)))
    steps = (slice(None), *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))
    return view[steps].reshape(shape[0], math.prod(made), math.prod(kernel)), made


def _padding(
    node: Node, sides: tuple[int, ...], reach: list[int], strides: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    auto, pads = node.attributes.get("auto_pad", "NOTSET"), wholes(node, "pads")
    axes = len(sides)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max(0, (-(-n // s) - 1) * s + r - n) for n, r, s in zip(sides, reach, strides, strict=True)]
        less, more = [one // 2 for one in total], [one - one // 2 for one in total]
        return (less, more) if auto == "SAME_UPPER" else (more, less)
    if auto not in ("NOTSET", "VALID"):
        raise AnchorheadError(f"its auto_pad is {auto!r}: NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if pads is None or auto == "VALID":
        return [0] * axes, [0] * axes
    if len(pads) != 2 * axes or min(pads) < 0 or max(pads) > MAX_SIDE:
        raise AnchorheadError(f"its pads are {pads}: two for each axis, none below 0")
    return list(pads[:axes]), list(pads[axes:])
