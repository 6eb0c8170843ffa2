"""Attention as a torch module: what a token that asks reads from the tokens that it sees, in blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anchorhead.errors import AnchorheadError
from anchorhead.network.attention import Attention
from anchorhead.network.liveness import Needed, askers, kept_as_they_are, seen
from anchorhead.network.modules.picks import Picks, picks
from anchorhead.network.modules.tokens import LinearModule, Tokens, joined, parameter, softmax_of_few
from anchorhead.network.stream import Kind, Stream

Columns = dict[Kind, tuple[Tensor, Tensor]]
"""For a kind of token what it holds, and the columns of it that are shown."""


class AttentionModule(nn.Module):
    """See Attention. With `budget`, the most numbers that the logits of one block may hold, blocks of heads
    and of tokens are worked through one after the other; without, all at once."""

    def __init__(self, layer: Attention, needed: Needed, stream: Stream) -> None:
        super().__init__()
        self.query, self.key = parameter(layer.query), parameter(layer.key)
        self.value, self.out = parameter(layer.value), parameter(layer.output)
        self.bias = parameter(layer.bias)
        self.skip = None if layer.skip is None else LinearModule(layer.skip, tuple(needed))
        self.mask, self.grid, self.kinds = layer.mask, layer.grid, tuple(needed)
        self.points = layer.points
        self.asking = askers(layer, needed)
        self.seen = seen(layer, self.asking, stream)
        self.visible: dict[Kind, tuple[Kind, ...]] = {
            kind: tuple(one for one in self.seen if layer.sees(kind, one)) for kind in self.asking
        }
        self.stream = stream
        self.budget: int | None = None
        self.kept = kept_as_they_are(layer, needed)
        self.shortcuts: dict[str, Picks | None] = {}
        self.written: slice | None = None
        self.shown: Tensor | None = None

    def take_shortcuts(self) -> None:
        """From now on, picks are no products, and few that ask many are spared the many's keys and values."""
        for name in ("query", "key", "value"):
            self.shortcuts[name] = picks(getattr(self, name).detach().flatten(0, 1))
        self.written = _in_a_row((self.out.detach() != 0).any(-1).any(0))
        read = (self.key.detach() != 0).any(0).any(0) | (self.value.detach() != 0).any(0).any(0)
        self.shown = torch.nonzero(read).flatten()

    def forward(self, tokens: Tokens, record: list[Tensor] | None = None, before: Columns | None = None) -> Tokens:
        """before   where it folds: what it was shown in the step before, and what it is shown in this one"""
        folds = record is None and self._folds
        before = {} if before is None else before
        shown = () if folds else self.seen
        keys: Tokens = {kind: self._heads(tokens[kind], "key") for kind in shown}
        values: Tokens = {kind: self._heads(tokens[kind], "value") for kind in shown}
        result: Tokens = {}
        maps: list[Tensor] = []
        for kind in self.kinds:
            x = tokens[kind]
            if self.shortcuts and kind in self.kept:
                result[kind] = x
                continue
            y = None if self.skip is None else self.skip.on(x)
            if kind in self.asking:
                if folds:
                    read = self._folded(x, tokens, before)
                else:
                    read = self._read(kind, x, keys, values, None if record is None else maps)
                y = self._added(y, read)
            elif y is None:
                y = x.new_zeros(*x.shape[:-1], self.out.shape[1])
            result[kind] = y if self.bias is None else y + self.bias
        if record is not None:
            record.append(joined(maps) if maps else self.out.new_zeros(len(self.query), 0, 0))
        return result

    @property
    def _folds(self) -> bool:
        """Whether only states ask, every token is seen, and keys and values are the same exact picks for all heads.

        Of keys by factors of at least 1, of values by 1: queries and means times these lose nothing to underflow.
        """
        key, value = self.shortcuts.get("key"), self.shortcuts.get("value")
        exact = (
            key is not None and key.exact and key.grows and value is not None and value.exact and value.scale is None
        )
        shared = len(self.key) == len(self.value) == 1
        return exact and shared and self.asking == ("state",) and self.mask is None and self.grid is None

    def _folded(self, x: Tensor, tokens: Tokens, before: Columns) -> Tensor:
        """The same sums in another order: (K^T q) . x instead of q . (K x), and V (sum w x) instead of sum w (V x).

        Of x only the features that keys or values show, column by column: see `_columns`.
        """
        key, value = self.shortcuts["key"], self.shortcuts["value"]
        if key is None or value is None or self.shown is None:
            raise AnchorheadError("an Attention without shortcuts cannot be folded")
        asked = key.back(self._heads(x, "query"), x.shape[-1]).index_select(-1, self.shown)
        columns = [self._columns(seen, tokens[seen], before) for seen in self.seen]
        weights = torch.softmax(joined([_rows_by(asked, one) for one in columns], -1), -1)
        split = weights.split([one.shape[-1] for one in columns], -1)
        read = reduce(torch.add, (_rows_by(w, one.mT) for w, one in zip(split, columns, strict=True)))
        wide = read.new_zeros(*read.shape[:-1], x.shape[-1]).index_copy(-1, self.shown, read)
        return self._written(value(wide), slice(None))

    def _columns(self, kind: Kind, x: Tensor, before: Columns) -> Tensor:
        """(..., features that are shown, tokens) of a kind of token; found once for steps that leave it as it is."""
        known = before.get(kind)
        if known is None or known[0] is not x:
            shown = x if self.shown is None else x.index_select(-1, self.shown)
            known = before[kind] = x, shown.mT.contiguous()
        return known[1]

    def _heads(self, x: Tensor, name: str, heads: slice = slice(None)) -> Tensor:
        """The queries, keys or values of tokens, (..., tokens, features) to (..., heads, tokens, size)."""
        weight = getattr(self, name)
        short = self.shortcuts.get(name)
        if short is None or heads != slice(None):
            return _heads(x, weight[heads])
        return short(x).unflatten(-1, weight.shape[:2]).transpose(-3, -2)

    def logits(self, tokens: int) -> int:
        """How many logits one element of the batch has when `tokens` tokens enter the network."""
        count = self.stream.count(tokens)
        return len(self.query) * sum(count[kind] * self._sees(kind, count) for kind in self.asking)

    def recorded(self, tokens: int) -> int:
        """How many attention weights one element of the batch has, with those that are 0 by the mask."""
        count = self.stream.count(tokens)
        return len(self.query) * sum(count[k] for k in self.asking) * sum(count[k] for k in self.seen)

    def _sees(self, kind: Kind, count: Mapping[Kind, int]) -> int:
        """How many tokens one token of a kind sees, when there are so many of each."""
        if self.grid is not None:
            return self.points
        if self.mask == "self+registers" and kind != "register":
            return 1 + count.get("register", 0)
        return sum(count[seen] for seen in self.visible[kind])

    def _read(self, kind: Kind, x: Tensor, keys: Tokens, values: Tokens, maps: list[Tensor] | None) -> Tensor:
        if self.budget is None or maps is not None:
            return self._block(kind, x, keys, values, slice(None), slice(None), maps)
        batches = [x.shape[0]] if x.dim() == 3 else []
        batches += [key.shape[0] for key in keys.values() if key.dim() == 4]
        row = max([1, *batches]) * self._sees(kind, {seen: key.shape[-2] for seen, key in keys.items()})
        heads, count = len(self.query), x.shape[-2]
        few_tokens = max(1, min(count, self.budget // row))
        few_heads = max(1, min(heads, self.budget // (row * few_tokens)))
        parts = []
        for token in range(0, count, few_tokens):
            ask = slice(token, token + few_tokens)
            part = self._block(kind, x, keys, values, slice(few_heads), ask, None)
            for head in range(few_heads, heads, few_heads):
                part = part + self._block(kind, x, keys, values, slice(head, head + few_heads), ask, None)
            parts.append(part)
        return parts[0] if len(parts) == 1 else torch.cat(parts, -2)

    def _block(
        self,
        kind: Kind,
        x: Tensor,
        keys: Tokens,
        values: Tokens,
        heads: slice,
        ask: slice,
        maps: list[Tensor] | None,
    ) -> Tensor:
        """The sum over a block of heads at a block of tokens of one kind."""
        queries = self._heads(x[..., ask, :], "query", heads)
        keys = {kind: _some_heads(key, heads) for kind, key in keys.items()}
        values = {kind: _some_heads(value, heads) for kind, value in values.items()}
        if self.grid is not None:
            weights = self._grid_weights(queries, keys["register"])
            read = _product(weights, values["register"][..., : self.points, :])
            if maps is not None:
                weights = F.pad(weights, (0, keys["register"].shape[-2] - self.points))
        elif self.mask == "self+registers" and kind != "register":
            weights, read = self._self_and_registers(kind, queries, keys, values, ask)
            if maps is not None:
                own = torch.diag_embed(weights[..., 0])
                weights = self._on_all_seen({kind: own, "register": weights[..., 1:]}, keys)
        else:
            weights, read = self._all_visible(kind, queries, keys, values, ask)
            if maps is not None:
                split = weights.split([keys[seen].shape[-2] for seen in self.visible[kind]], -1)
                weights = self._on_all_seen(dict(zip(self.visible[kind], split, strict=True)), keys)
        if maps is not None:
            maps.append(weights)
        return self._written(read, heads)

    def _written(self, read: Tensor, heads: slice) -> Tensor:
        """What a block of heads writes of what it reads, of a few features where it writes no others."""
        out = self.out[heads] if self.written is None else self.out[heads, self.written]
        return torch.einsum("...htv,hov->...to", read, out)

    def _added(self, kept: Tensor | None, read: Tensor) -> Tensor:
        """What the skip hands on and what is read, where that may be a few features alone."""
        if self.written is None:
            return read if kept is None else kept + read
        features = self.out.shape[1]
        if kept is None or kept.dim() < read.dim():
            wide = F.pad(read, (self.written.start, features - self.written.stop))
            return wide if kept is None else kept + wide
        y = kept.clone()
        y[..., self.written] += read
        return y

    def _all_visible(
        self, kind: Kind, queries: Tensor, keys: Tokens, values: Tokens, ask: slice
    ) -> tuple[Tensor, Tensor]:
        """The weights of all tokens that a kind of token sees, and what is read."""
        visible = self.visible[kind]
        shared = all(tensor.shape[-3] == 1 for seen in visible for tensor in (keys[seen], values[seen]))
        if shared and kind == "input" and self.mask is None:
            # many ask and few numbers make a key: joining keys is cheaper than joining logits
            every_key, every_value = (joined([t[seen] for seen in visible]) for t in (keys, values))
            weights = self._softmax(_product(queries, every_key.mT))
            return weights, _product(weights, every_value)
        logits = [self._masked(kind, seen, _product(queries, keys[seen].mT), ask) for seen in visible]
        weights = self._softmax(joined(logits, -1))
        split = weights.split([keys[seen].shape[-2] for seen in visible], -1)
        parts = (_product(part, values[seen]) for part, seen in zip(split, visible, strict=True))
        return weights, reduce(torch.add, parts)

    def _softmax(self, logits: Tensor) -> Tensor:
        return softmax_of_few(logits) if self.shortcuts else torch.softmax(logits, -1)

    def _masked(self, kind: Kind, seen: Kind, logits: Tensor, ask: slice) -> Tensor:
        if self.mask != "causal" or (kind, seen) != ("input", "input"):
            return logits
        later = logits.new_full(logits.shape[-2:], -torch.inf).triu(1 + (ask.start or 0))
        return logits + later

    def _self_and_registers(
        self, kind: Kind, queries: Tensor, keys: Tokens, values: Tokens, ask: slice
    ) -> tuple[Tensor, Tensor]:
        """The weights of (the token itself, the registers), and what is read."""
        own_key, own_value = keys[kind][..., ask, :], values[kind][..., ask, :]
        own = torch.matmul(queries.unsqueeze(-2), own_key.unsqueeze(-1)).squeeze(-1)
        shared = [_product(queries, keys["register"].mT)] if "register" in keys else []
        weights = self._softmax(joined([own, *shared], -1))
        read = torch.matmul(weights[..., :1].unsqueeze(-1), own_value.unsqueeze(-2)).squeeze(-2)
        if "register" in keys:
            read = read + _product(weights[..., 1:], values["register"])
        return weights, read

    def _grid_weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        sides = self.grid or ()
        size = queries.shape[-1] // len(sides)
        logits = queries.new_zeros(*queries.shape[:-1], 1)
        for axis, side in enumerate(sides):
            stride = math.prod(sides[axis + 1 :])
            along = keys[..., 0 : side * stride : stride, axis * size : (axis + 1) * size]
            part = _product(queries[..., axis * size : (axis + 1) * size], along.mT)
            logits = (logits.unsqueeze(-1) + part.unsqueeze(-2)).flatten(-2)
        return torch.softmax(logits, -1)

    def _on_all_seen(self, parts: Tokens, keys: Tokens) -> Tensor:
        """The weights with zeros for the tokens that the mask keeps out, so that all maps have one width."""
        like = parts[next(iter(parts))]
        blank = {seen: like.new_zeros(*like.shape[:-1], keys[seen].shape[-2]) for seen in self.seen}
        return torch.cat([parts.get(seen, blank[seen]) for seen in self.seen], -1)


def _in_a_row(used: Tensor) -> slice | None:
    """The features that are used, if they are few and stand in a row."""
    places = torch.nonzero(used).flatten().tolist()
    if not places or places[-1] - places[0] + 1 != len(places) or 4 * len(places) > len(used):
        return None
    return slice(places[0], places[-1] + 1)


def _heads(x: Tensor, weight: Tensor) -> Tensor:
    """(..., tokens, features) by (heads, size, features) to (..., heads, tokens, size)."""
    return F.linear(x, weight.flatten(0, 1)).unflatten(-1, weight.shape[:2]).transpose(-3, -2)


def _some_heads(x: Tensor, heads: slice) -> Tensor:
    """A block of heads of (..., heads, tokens, size); what all heads share is returned whole."""
    return x if x.shape[-3] == 1 else x[..., heads, :, :]


def _product(left: Tensor, right: Tensor) -> Tensor:
    """(..., heads, rows, size) by (..., heads or 1, size, columns), without copies of what is shared."""
    heads, rows, _ = left.shape[-3:]
    if right.shape[-3] == 1:
        return torch.matmul(left.flatten(-3, -2), right.squeeze(-3)).unflatten(-2, (heads, rows))
    if left.dim() == 4 and right.dim() == 3:
        folded = left.transpose(0, 1).flatten(1, 2)
        return torch.bmm(folded, right).unflatten(1, (left.shape[0], rows)).transpose(0, 1)
    return torch.matmul(left, right)


def _rows_by(left: Tensor, right: Tensor) -> Tensor:
    """(..., heads, rows, size) by (..., size, columns) to (..., heads, rows, columns)."""
    rows, matrix = left.reshape(-1, left.shape[-1]), right.reshape(-1, *right.shape[-2:])
    if len(matrix) == 1:  # a product of two matrices takes less time than a batch of one
        batch = left.shape[:-3] or right.shape[:-2]
        return torch.mm(rows, matrix[0]).reshape(*batch, *left.shape[-3:-1], right.shape[-1])
    return _product(left, right.unsqueeze(-3))
