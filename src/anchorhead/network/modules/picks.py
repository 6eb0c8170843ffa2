"""Shortcuts that change no result: a matrix with at most one entry in a row picks features instead of multiplying.

Used when a network is called, not in its bare module, where every weight must stay a weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Place = slice | Tensor


@dataclass(frozen=True)
class Picks:
    """y_i = scale_i x_place(i), what a matrix with at most one entry in each row does to features.

    exact     every scale is 0 or a power of two and no feature is picked twice: products with it round nothing
    grows     every scale is 0 or at least 1 in size
    changed   where few features do not stay as they are: those, and then what becomes of each of them
    """

    place: Place
    scale: Tensor | None
    exact: bool
    grows: bool
    changed: tuple[Tensor, Tensor, Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.changed is not None:
            rows, place, scale = self.changed
            y = x.clone()
            y[..., rows] = x.index_select(-1, place) * scale
            return y
        y = x[..., self.place] if isinstance(self.place, slice) else x.index_select(-1, self.place)
        return y if self.scale is None else y * self.scale

    def back(self, y: Tensor, width: int) -> Tensor:
        """The transposed map: features to where they were picked, scaled, zeros elsewhere."""
        y = y if self.scale is None else y * self.scale
        x = y.new_zeros(*y.shape[:-1], width)
        if isinstance(self.place, slice):
            x[..., self.place] = y
            return x
        return x.index_copy(-1, self.place, y)


def picks(weight: Tensor) -> Picks | None:
    """The picks that a matrix (rows, features) makes; None if a row has more than one entry."""
    used = weight != 0
    if bool((used.sum(-1) > 1).any()):
        return None
    index = used.to(torch.int8).argmax(-1)
    scale = weight.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    mantissa = torch.frexp(scale.abs())[0]
    distinct = len(torch.unique(index)) == len(index)
    exact = distinct and bool(((mantissa == 0.5) | (scale == 0)).all())
    grows = bool(((scale.abs() >= 1) | (scale == 0)).all())
    first, count = int(index[0]), len(index)
    in_a_row = bool((index == torch.arange(first, first + count, device=index.device)).all())
    place = slice(first, first + count) if in_a_row else index
    return Picks(place, None if bool((scale == 1).all()) else scale, exact, grows, _changed(weight, index, scale))


def _changed(weight: Tensor, index: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """Where at most a quarter of the rows differ from the identity's, but some do."""
    count, features = weight.shape
    if count != features:
        return None
    rows = torch.nonzero((index != torch.arange(count, device=index.device)) | (scale != 1)).flatten()
    return (rows, index[rows], scale[rows]) if 0 < 4 * len(rows) <= count else None
