"""Where the neurons behind a normalisation lie, for every input of it: its image, and what linear maps make of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from anchorhead.conditions import NormImage
from anchorhead.convert.attention_only.families import Map
from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import Arithmetic
from anchorhead.lemmas.activations import Numbers
from anchorhead.proof.arithmetic.affine_forms import Diagonal, mapped
from anchorhead.proof.arithmetic.norm_image import ROOM, NormSources

SLACK = 1e-3
LAST_STEPS = 4
"""The product with the scale and the sum with the shift round by so many units, generously."""
ROWS = 2048
"""How many rows of a matrix are taken to float64 at a time."""


@dataclass(frozen=True, eq=False)
class Range(Numbers):
    """Pre-activations s = W z + b for every z that the norm can put out: low <= computed s <= high for all of them."""

    low: float
    high: float


def asked_of_heads(low: float, high: float) -> tuple[float, float]:
    """Where heads are to hold: a little beyond what pre-activations reach, whose ends other sums find again."""
    room = ROOM * max(-low, high)
    return low - room, high + room


def norm_of(module: nn.Module, gain: float, width: int, arithmetic: Arithmetic) -> NormImage:
    """All that a LayerNorm can put out, or transformers' RMSNorm that multiplies by gain + weight."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    scale = torch.ones(width, dtype=torch.float64) if weight is None else weight.detach().cpu().double() + gain
    shift = torch.zeros(width, dtype=torch.float64) if bias is None else bias.detach().cpu().double()
    kind = parametrize.type_before_parametrizations(module)
    centred = kind is nn.LayerNorm
    known = centred or (kind.__module__.startswith("transformers.models.") and kind.__name__.endswith("RMSNorm"))
    over = getattr(module, "normalized_shape", (width,))
    if not known or scale.shape != (width,) or tuple(over) != (width,):
        raise AnchorheadError(
            f"in front of a feed-forward sublayer stands a {kind.__name__} of {tuple(scale.shape)}, no LayerNorm or "
            f"RMSNorm of {width} features: the range of its neurons is not known"
        )
    added = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    if not isinstance(added, int | float) or not 0 <= added < float("inf"):
        raise AnchorheadError(
            f"the {kind.__name__} in front of a feed-forward sublayer adds eps={added!r} to the variance: only from 0 "
            "on is its output never longer than sqrt(features), from which the range of the neurons follows"
        )
    rows = (tuple(vector.tolist()) for vector in (scale, shift))
    return NormImage("LayerNorm" if centred else "RMSNorm", *rows, slack=SLACK, rounding=LAST_STEPS * arithmetic.unit)


def range_of(linear: Map, sources: NormSources, arithmetic: Arithmetic) -> Range:
    """The range of a linear map behind a norm, some rows after others: large maps take more room than there is."""
    z, low, high = Diagonal.given(sources.count, arithmetic), [], []
    error = []
    for weight, bias in rows_of(linear):
        s = mapped(weight, bias, z, sources, arithmetic)
        least, most = s.ends(sources)
        low.append(least[0])
        high.append(most[0])
        error.append(s.error[0])
    ends, wrong = (np.concatenate(low), np.concatenate(high)), np.concatenate(error)
    bias = np.zeros(len(wrong)) if linear.bias is None else _double(linear.bias)
    length = sources.lengths((weight for weight, _ in rows_of(linear)), bias) + float(np.linalg.norm(wrong))
    magnitude = np.maximum(*map(np.abs, ends)) * (1 + ROOM)
    return Range(magnitude, wrong, length * (1 + ROOM), float(ends[0].min()), float(ends[1].max()))


def rows_of(linear: Map) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Some rows of weight and bias after others, in float64, which holds them exactly."""
    for start in range(0, len(linear.weight), ROWS):
        rows = slice(start, start + ROWS)
        yield _double(linear.weight[rows]), None if linear.bias is None else _double(linear.bias[rows])


def _double(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
