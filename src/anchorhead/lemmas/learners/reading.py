"""How a learner's network is read: taken to its free numbers, built of them again, and compared.

A layout is two functions. `build` makes a network of the numbers that are free in it: sharpnesses, outputs, anchors,
what is kept of w. `read` takes these numbers from a stored network, builds the network that they make, and refuses one
that differs from it in anything but names. So all that is proven is proven of what `build` makes, whatever the numbers
are, and no matrix is described twice.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, cast

import numpy as np

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Dtype
from anchorhead.network import Attention, Network, Repeat

NAMES = ("features", "labels")
"""What a layer is called, which bears on nothing."""


def body_of(network: Network, times: int, count: int) -> list[Attention]:
    """The attentions of the one Repeat of a network, each with a skip, all with the features of its Embed."""
    repeats = [layer for layer in network.layers if isinstance(layer, Repeat)]
    if len(repeats) != 1 or repeats[0].times != times:
        refuse(f"it does not repeat a step {times} times")
    body = [layer for layer in repeats[0].layers if isinstance(layer, Attention)]
    width = network.embed.weight.shape[-2]
    skips = [layer.skip for layer in body if layer.skip is not None and layer.skip.weight.ndim == 2]
    if not len(body) == len(skips) == len(repeats[0].layers) == count:
        refuse(f"a step is not of {count} attentions, each with a skip")
    if any((layer.width, layer.outputs) != (width, width) for layer in body):
        refuse("the attentions of a step are not all of one width")
    return body


def require_width(network: Network, width: int) -> None:
    if network.embed.weight.shape[-2] != width:
        refuse(f"its tokens have {network.embed.weight.shape[-2]} features, not {width}")


def dtype_of(network: Network) -> Dtype:
    return cast(Dtype, network.dtype)


def skip_of(layer: Attention) -> np.ndarray:
    """The matrix of its skip."""
    return layer.skip.weight if layer.skip is not None else refuse("an attention has no skip")


def floats(array: np.ndarray) -> tuple[float, ...]:
    return tuple(float(one) for one in array)


def require_powers_of_two(sharpness: tuple[float, ...]) -> None:
    """Products with them are exact."""
    if not all(h > 0 and np.frexp(h)[0] == 0.5 for h in sharpness):
        refuse("a sharpness is no power of two")


def require_same(found: Network, expected: Network) -> None:
    """Refuses a network that is not the expected one, names left aside."""
    if (found.output, len(found.layers)) != (expected.output, len(expected.layers)):
        refuse(f"it does not put out its {expected.output} after {len(expected.layers)} layers")
    for number, pair in enumerate(zip(found.layers, expected.layers, strict=True)):
        _require_same(*pair, f"layer {number}")


def _require_same(found: Any, expected: Any, where: str) -> None:
    if type(found) is not type(expected):
        refuse(f"{where} is no {type(expected).__name__}")
    for name in (one.name for one in fields(expected) if one.name not in NAMES):
        a, b = getattr(found, name), getattr(expected, name)
        if isinstance(expected, Repeat) and name == "layers":
            for number, pair in enumerate(zip(a, b, strict=True)):
                _require_same(*pair, f"{where}.{number}")
        elif is_dataclass(b):
            _require_same(a, b, f"the {name} of {where}")
        elif not (np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b):
            refuse(f"the {name} of {where}, {type(expected).__name__}, is not that of the construction")


def refuse(why: str) -> NoReturn:
    raise CertificateError(f"the network is none of this kind of learner: {why}")
