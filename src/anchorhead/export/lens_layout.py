"""A network laid out for blocks that add to a residual stream and share one head size and one number of heads.

Every feature of every layer has a place in one stream: the Embed's features come first, and a layer writes what is new
into fresh places, which hold 0 until then. What a skip hands on unchanged stays where it is; where heads add to such a
feature, they add in place, as a transformer does. Every other linear map of a token (a skip that is no pick, a Linear
between attentions) is written by heads that see their own token alone: their one weight is exactly 1, so they compute
the map as it stands. No two maps are multiplied into one, and nothing large is added only to be taken away again.

The last Linear is the unembedding. A Linear that only moves features and adds constants to what the block before it
has just written needs no block: it goes into that block's bias. A Repeat is written out step by step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.export.lens_steps import steps
from anchorhead.network import Attention, Kind, Linear, Network
from anchorhead.network.liveness import Needed, askers

MAX_WEIGHTS = 2**27
"""A GiB in float64, for all blocks together."""


@dataclass(frozen=True)
class Sight:
    """Which tokens see which. The kinds in `asking` see what the layer lets them see; without one, each sees itself
    alone. The others see nothing."""

    asking: tuple[Kind, ...]
    layer: Attention | None = None

    def __str__(self) -> str:
        kinds = f"{', '.join(self.asking) or 'no'} tokens"
        if self.layer is None:
            return f"{kinds} see themselves"
        seen = f" the first {self.layer.points} registers" if self.layer.grid else ""
        return f"{kinds} ask{seen}" + (f", mask {self.layer.mask}" if self.layer.mask else "")


@dataclass(frozen=True, eq=False)
class Block:
    """One block, in the features of the layer that it comes from.

    reads      (features,) the place of each feature that enters
    attention  the layer, if it is one, whose heads write their outputs to `writes` (outputs,); -1: no head writes it
    own        (rows, features) the map that heads which see their own token write to `own_writes` (rows,)
    own_names  (rows,) what its rows are called
    bias       what is added at places, to every token
    fresh      the places that hold 0 before this block
    before, after   what the features are called that enter the layer and leave it
    """

    label: str
    reads: Int[np.ndarray, " features"]
    attention: Attention | None
    writes: Int[np.ndarray, " outputs"]
    sight: Sight
    own: Float[np.ndarray, "rows features"]
    own_writes: Int[np.ndarray, " rows"]
    own_names: tuple[str, ...]
    own_sight: Sight
    bias: dict[int, float]
    fresh: frozenset[int]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def heads(self) -> int:
        """How many heads the layer itself has."""
        return 0 if self.attention is None else self.attention.heads

    @property
    def size(self) -> int:
        """The head size that they need."""
        return 1 if self.attention is None else max(self.attention.query.shape[1], self.attention.value.shape[1])


@dataclass(frozen=True, eq=False)
class Readout:
    """What leaves: weight x + bias, (outputs,), of the features x at the places `reads`."""

    weight: Float[np.ndarray, "outputs features"]
    bias: Float[np.ndarray, " outputs"]
    reads: Int[np.ndarray, " features"]
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LensLayout:
    """All of it; `names` says what each place of the residual stream holds, and who writes it."""

    names: tuple[str, ...]
    blocks: tuple[Block, ...]
    readout: Readout

    @property
    def width(self) -> int:
        return len(self.names)

    @cached_property
    def head_size(self) -> int:
        """The largest that a layer needs, or that lets linear maps of tokens fit into heads that are there anyway."""
        most = max([1, *(block.heads for block in self.blocks)])
        own = (ceil(len(block.own) / max(1, most - block.heads)) for block in self.blocks)
        return max([1, *(block.size for block in self.blocks), *own])

    @cached_property
    def heads(self) -> int:
        return max([1, *(block.heads + ceil(len(block.own) / self.head_size) for block in self.blocks)])

    @property
    def weights(self) -> int:
        """How many numbers the blocks hold in all."""
        return 4 * max(1, len(self.blocks)) * self.heads * self.head_size * self.width


def lay_out(network: Network) -> LensLayout:
    """The network's features and heads, block by block; refused where a layer has no place in such a model."""
    builder = _Builder(network)
    last = network.layers[-1] if isinstance(network.layers[-1], Linear) else None
    for label, layer, needed in steps(network, without_last=last is not None):
        builder.add(label, layer, needed)
    names = tuple(builder.names)
    if len(names) == network.embed.inputs:
        # inputs and residual streams are told apart by the length of their last axis
        names = (*names, "unused")
    layout = LensLayout(names, tuple(builder.blocks), builder.readout(last))
    if layout.weights > MAX_WEIGHTS:
        raise AnchorheadError(
            f"{len(layout.blocks)} blocks of {layout.heads} heads of size {layout.head_size} over {layout.width} "
            f"features would hold {layout.weights:,} weights: at most {MAX_WEIGHTS:,}. Export a smaller network or "
            'fewer steps; to="torch" and to="onnx" have no such limit'
        )
    return layout


class _Builder:
    def __init__(self, network: Network) -> None:
        self.dtype, self.embed = network.dtype, network.embed
        self.features = network.streams[0].features
        self.names = [f"embed: {name}" for name in self.features]
        self.now = np.arange(len(self.names))
        """The place of each feature of the stream."""
        self.blocks: list[Block] = []

    def add(self, label: str, layer: Attention | Linear, needed: Needed) -> None:
        attention = layer if isinstance(layer, Attention) else None
        if attention is not None:
            self._check_grid(label, attention)
        weight, bias, written = self._affine(layer)
        picks, source = _picks(weight)
        uses = np.bincount(self.now[source[picks]], minlength=len(self.names))
        sole = picks & (uses[self.now[source]] == 1)
        names = layer.features or ()
        if attention is None and self._absorbed(picks, sole, source, bias):
            self.now, self.features = self.now[source], names
            return
        changed = written | (bias != 0)
        stay = picks & (sole | ~changed)
        fresh = np.flatnonzero(~stay)
        places = np.where(stay, self.now[source], 0)
        places[fresh] = len(self.names) + np.arange(len(fresh))
        own = np.flatnonzero(~stay & (weight != 0).any(axis=1))
        if attention is not None or changed.any() or len(own):
            self.names += [f"block {len(self.blocks)}: {names[i]}" for i in fresh]
            block = Block(
                label=label,
                reads=self.now,
                attention=attention,
                writes=np.where(written, places, -1),
                sight=Sight(() if attention is None else askers(attention, needed), attention),
                own=weight[own],
                own_writes=places[own],
                own_names=tuple(names[i] for i in own),
                own_sight=Sight(tuple(needed)),
                bias={int(places[i]): float(bias[i]) for i in np.flatnonzero(bias)},
                fresh=frozenset(places[fresh].tolist()),
                before=self.features,
                after=names,
            )
            self.blocks.append(block)
        else:
            self.names += [f"always 0: {names[i]}" for i in fresh]
        self.now, self.features = places, names

    def readout(self, last: Linear | None) -> Readout:
        if last is None:
            eye = np.eye(len(self.now), dtype=self.dtype)
            return Readout(eye, np.zeros(len(self.now), self.dtype), self.now, self.features)
        bias = np.zeros(last.outputs, self.dtype) if last.bias is None else last.bias
        return Readout(last.on_features(), bias, self.now, last.features or ())

    def _affine(
        self, layer: Attention | Linear
    ) -> tuple[Float[np.ndarray, "outputs features"], Float[np.ndarray, " outputs"], Bool[np.ndarray, " outputs"]]:
        """What the layer adds to its heads, W x + b, and which outputs its heads write."""
        bias = np.zeros(layer.outputs, self.dtype)
        if isinstance(layer, Linear):
            return layer.on_features(), bias if layer.bias is None else layer.bias, np.zeros(layer.outputs, bool)
        for one in (layer.bias, None if layer.skip is None else layer.skip.bias):
            bias = bias if one is None else bias + one
        nothing = np.zeros((layer.outputs, layer.width), self.dtype)
        weight = nothing if layer.skip is None else layer.skip.on_features()
        return weight, bias, (layer.output != 0).any(axis=(0, 2))

    def _absorbed(self, picks: np.ndarray, sole: np.ndarray, source: np.ndarray, bias: np.ndarray) -> bool:
        """Whether a Linear only moves features; its constants then go into the bias of the block that has just written
        these features, and was the first to do so."""
        moved = np.flatnonzero(bias)
        places = [int(place) for place in self.now[source[moved]]]
        if not picks.all() or not sole[moved].all():
            return False
        if not places:
            return True
        if not self.blocks or any(p not in self.blocks[-1].fresh or p in self.blocks[-1].bias for p in places):
            return False
        self.blocks[-1].bias.update(zip(places, bias[moved].tolist(), strict=True))
        return True

    def _check_grid(self, label: str, layer: Attention) -> None:
        """A grid's keys are read along its axes alone; here every register shows its own, which must be the same."""
        sides = layer.grid or ()
        if len(sides) < 2 or self.embed.registers is None:
            return
        used = np.flatnonzero((layer.key != 0).any(axis=(0, 1)))
        if (self.now[used] >= len(self.embed.features or ())).any() or self._rewritten(self.now[used]):
            raise AnchorheadError(
                f"{label}: the keys of its grid are no constants of the registers, so single tokens cannot show them"
            )
        shown = self.embed.registers[: layer.points][:, self.now[used]]
        keys = np.einsum("hsf,rf->hrs", layer.key[..., used], shown)
        size = keys.shape[-1] // len(sides)
        for axis, index in enumerate(np.indices(sides).reshape(len(sides), -1)):
            block = keys[..., axis * size : (axis + 1) * size]
            if (block != block[:, index * int(np.prod(sides[axis + 1 :]))]).any():
                raise AnchorheadError(
                    f"{label}: registers do not carry the keys of their points along axis {axis} of the grid, so "
                    "single tokens cannot show them"
                )

    def _rewritten(self, places: np.ndarray) -> bool:
        """Whether a block has added anything at one of these places."""
        touched = {place for block in self.blocks for place in (*block.writes.tolist(), *block.bias)}
        return not touched.isdisjoint(places.tolist())


def _picks(weight: Float[np.ndarray, "outputs features"]) -> tuple[np.ndarray, np.ndarray]:
    """Which outputs are one feature unchanged, and which feature that is."""
    source = np.abs(weight).argmax(axis=1)
    alone = (weight != 0).sum(axis=1) == 1
    return alone & (weight[np.arange(len(weight)), source] == 1), source
