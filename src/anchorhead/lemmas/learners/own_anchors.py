"""Anchors of each example: registers that carry w ask those of their own, and weigh what they read alike.

Token (i, k) holds anchor k of the head for the link phi as it meets example i: slope_k x_i, offset_k, value_k x_i. A
register for each example carries w and asks: its logits

    slope_k (w . x_i) + offset_k          (for phi(s - y): slope_k (w . x_i - y_i) + offset_k)

are those of the head at the score s_i, so it reads phi(s_i) x_i. A logit also adds up *gates*, products of constants
that are 0 for the anchors that a register means, and at most -reach for all other tokens, whatever else their logits
are. A second attention weighs all registers alike, with logits that are exactly 0, and w takes the mean. For
phi(s) - y one more part stands for -y, a line in y; for g(s, y) anchors are points of a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype, Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.loop import StepError
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.reading import (
    attentions,
    changed,
    features_of_v,
    outputs_of,
    picked,
    refuse,
    require,
    skip_of,
)
from anchorhead.lemmas.learners.update import Update
from anchorhead.network import Attention, Embed, Linear, Network
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor

AT_ONCE = 2**22
"""Logits that are looked at together."""


@dataclass(frozen=True, eq=False)
class Piece:
    """One softmax: slopes of the score and of the label, offsets, two that add up, and values, (p,) each."""

    of_score: np.ndarray
    of_label: np.ndarray
    offsets: np.ndarray
    offsets_y: np.ndarray
    values: np.ndarray

    @classmethod
    def of_head(cls, part: Part, score: float, label: float, sign: float = 1.0) -> Piece:
        """A head on one argument, score times s + label times y, with its values multiplied by a sign."""
        slopes, offsets, values = part.astype(np.float64)
        return cls(score * slopes, label * slopes, offsets, np.zeros(len(slopes)), sign * values[:, 0])

    @classmethod
    def of_grid(cls, atom: GridAtom) -> Piece:
        """A grid over s and y."""
        (along_s, at_s), (along_y, at_y) = atom.axes
        pairs = [np.meshgrid(one, two, indexing="ij") for one, two in ((along_s, along_y), (at_s, at_y))]
        (of_score, of_label), (offsets, offsets_y) = ([np.ravel(array) for array in pair] for pair in pairs)
        return cls(of_score, of_label, offsets, offsets_y, atom.values.reshape(-1))

    def __len__(self) -> int:
        return len(self.values)

    def on_argument(self) -> Part:
        """The same as a head on one argument: s, y, or s - y."""
        if self.offsets_y.any():
            refuse("a head on one argument has offsets along two axes")
        slopes = self.of_score if self.of_score.any() else self.of_label
        order = np.argsort(slopes, kind="stable")
        return Part(slopes[order], self.offsets[order], self.values[order][:, None])

    def on_grid(self, dtype: Dtype) -> GridAtom:
        """The same as a grid over s and y; refuses where it is none."""
        p = len(np.unique(self.of_score))
        if len(self.values) % p:
            refuse("the anchors of its link are no grid")
        score, label = (
            [array.reshape(p, -1) for array in pair]
            for pair in ((self.of_score, self.offsets), (self.of_label, self.offsets_y))
        )
        if any((a != a[:, :1]).any() for a in score) or any((a != a[:1]).any() for a in label):
            refuse("the anchors of its link are no grid")
        axes = [(score[0][:, 0], score[1][:, 0]), (label[0][0], label[1][0])]
        return GridAtom.of(axes, np.zeros(2), self.values.reshape(p, -1, 1), np.zeros(1), dtype)


@dataclass(frozen=True, eq=False)
class SequenceStep:
    """What a step does to every register.

    pieces     the softmaxes; what they read adds up to the push
    reach      by how much the logits of other examples, other parts and registers are lowered
    output     by which the mean push is multiplied: minus the rate
    update     what is kept of w and v
    products   of how many a logit is the sum, at most; terms: of how many where the anchor is meant
    """

    pieces: tuple[Piece, ...]
    reach: float
    output: float
    update: Update
    products: int = 0
    terms: int = 0

    @cached_property
    def steepest(self) -> float:
        return max(float(np.abs([piece.of_score, piece.of_label]).max()) for piece in self.pieces)

    @cached_property
    def highest(self) -> float:
        """The largest |offset|."""
        return max(float((np.abs(piece.offsets) + np.abs(piece.offsets_y)).max()) for piece in self.pieces)

    @cached_property
    def largest(self) -> float:
        """The largest |value|, parts added up."""
        return sum(float(np.abs(piece.values).max()) for piece in self.pieces)

    def error(self, target: Descent, at: Moments, model: Arithmetic) -> StepError:
        """How far a step is from the exact one from the same w and v, links being known up to what `at` says.

        Registers add the same exact number to what each of them carries, so they stray by what rounding adds alone.
        """
        rate, off = abs(self.output), _off(self.output, target.rate)
        tiny = 1e3 * at.examples * model.tiny * (1 + self.largest) * (1 + at.x.max())
        tiny = tiny * (1 + self.steepest) * (1 + at.w.sum())
        read = at.xe + tiny
        push = at.xr + read
        uneven = math.expm1(2 * model.exp_error + float(model.gamma(2 * at.examples + 2))) * push
        sums_w, sums_v, _ = self.update.summed(rate * (push + uneven), len(self.pieces), at.w, at.v, model)
        wrong_w, wrong_v = self.update.wrong(target, at.w, at.v)
        once, shared = rate * uneven + tiny, rate * read + off * push
        of_w = length_of(shared + once + sums_w + wrong_w)
        apart_w, of_v, apart_v = 2 * length_of(once + sums_w), 0.0, 0.0
        if target.momentum:
            of_v, apart_v = length_of(shared + once + sums_v + wrong_v), 2 * length_of(once + sums_v)
        return StepError(of_w, of_v, of_w, (apart_w, apart_v))


@lru_cache(maxsize=64)
def _off(output: float, rate: float) -> float:
    """|stored - exact| of what multiplies the mean push."""
    return float(abs(Fraction(output) + Fraction(rate)))


def read_sequence(network: Network, target: Descent, columns: tuple[int, ...]) -> SequenceStep:
    """The step, if the network is one of these for this target; CertificateError otherwise.

    columns   those of a row of the prompt that w multiplies
    """
    first, body, last = attentions(network, target.steps)
    right = not first and len(body) == 2 and isinstance(last, Linear) and network.output == "register"
    require(right and not target.threshold, "a step in a sequence is link and mean, without a threshold")
    link, mean = body
    w = picked(last.on_features(), "w") if isinstance(last, Linear) and last.bias is None and not last.across else []
    v, push = features_of_v(mean, w, bool(target.momentum)), changed(link)
    require(len(w) == target.weights and mean.heads == 1, "w is not put out")
    alike = not (mean.query.any() and mean.key.any()) and mean.mask == "self+registers" and mean.grid is None
    pushes = picked(mean.value[0], "what examples push")
    require(alike and sorted(pushes) == push and not {*push} & {*w, *v}, "pushes are not weighed alike")
    require(not skip_of(link)[push].any(), "pushes are not those of one step")
    require(outputs_of(link, pushes, ()) == (1.0,) * link.heads, "what is read is not what an example pushes")
    anchors = _Anchors(network.embed, link, target, columns, w, [*w, *v, *push])
    pieces, reach = anchors.pieces()
    update = Update.read(skip_of(mean), w, v)
    (output,) = outputs_of(mean, w, v)
    return SequenceStep(pieces, reach, output, update, link.query.shape[1], anchors.terms)


class _Anchors:
    """The tokens of a sequence as the registers see them.

    Every entry of a query is an entry of w (`asks` says which), or a constant of each register; every entry of a key is
    a feature. Of entries with constants those are *offsets* that are 1 in every register and head, others are gates.
    """

    def __init__(
        self, embed: Embed, link: Attention, target: Descent, columns: tuple[int, ...], w: list[int], live: list[int]
    ) -> None:
        n, registers = target.examples, embed.registers
        plain = embed.states is None and registers is not None and embed.weight.ndim == 3 and embed.bias.ndim == 2
        if not plain or embed.source is None or registers is None or link.mask is not None or link.grid is not None:
            refuse("its Embed does not lay out anchors of every example")
        require(embed.tokens == 2 * n and len(registers) == n and embed.source.max() < n, "it is for other examples")
        require(len(link.key) == len(link.value) == 1, "parts of a link have keys or values of their own")
        self.source, self.parts, self.n = embed.source, link.heads, n
        self.keys, values = picked(link.key[0], "a key"), picked(link.value[0], "a value")
        require(not {*self.keys, *values} & {*live} and not registers[:, live].any(), "keys, or where w begins, change")
        weight, self.constants = (np.asarray(one, np.float64) for one in (embed.weight, embed.bias[:, self.keys]))
        self.registers = np.asarray(registers, np.float64)
        require(not embed.bias[:, values].any(), "values of anchors are not multiples of the example")
        self.values = _multiples(weight[:, values], columns)
        self._read_queries(link, w, live)
        along = weight[:, self.keys]
        self.of_score = _multiples(along[:, self.asks], columns)
        require(not self.constants[:, self.asks].any(), "what w is multiplied by is not a multiple of the example")
        others = np.delete(along, self.asks, axis=1)
        self.of_label = others[:, :, target.features + 1].sum(axis=1)
        labelled = np.flatnonzero(others.any(axis=(0, 2)))
        label = np.delete(np.arange(len(self.keys)), self.asks)[labelled]
        alone = len(label) <= 1 and not np.delete(others, target.features + 1, axis=2).any()
        require(
            alone and self.offset[label].all() and not self.constants[:, label].any(), "labels are not asked for once"
        )
        self.gates = ~self.offset
        self.gates[self.asks] = False
        self.offset &= self.constants.any(axis=0)
        self.terms = int(len(self.asks) + len(label) + self.offset.sum())

    def _read_queries(self, link: Attention, w: list[int], live: list[int]) -> None:
        query = np.asarray(link.query, np.float64)
        entries, self.asks = query.any(axis=(0, 2)), []
        for j in w:
            (found,) = np.nonzero((query[:, :, j] != 0).any(axis=0))
            require(len(found) == 1 and (query[:, found, j] == 1).all(), "registers do not ask with w as it is")
            self.asks.append(int(found[0]))
        others = np.delete(query, w, axis=2)[:, self.asks].any() or query[:, :, [f for f in live if f not in w]].any()
        require(len(set(self.asks)) == len(w) and not others, "registers ask with more than w and constants")
        self.fixed = np.einsum("hef,rf->hre", query, self.registers)
        touched = np.einsum("hef,rf->hre", query != 0, self.registers != 0)
        exact = (touched <= 1).all() and exact_factor(query).all()
        require(exact, "constants with which registers ask are rounded")
        self.offset = (self.fixed == 1).all(axis=(0, 1)) & entries

    def pieces(self) -> tuple[tuple[Piece, ...], float]:
        """The softmaxes that every register meets, the same for all of them, and the reach."""
        gates = self.gates
        held = self.constants[:, gates], self.registers[:, self.keys]
        require(not np.delete(held[1], np.flatnonzero(gates), axis=1).any(), "registers are anchors")
        shut = np.concatenate([held[0], held[1][:, gates]])
        require((self.fixed[:, :, gates] <= 0).all() and (shut >= 0).all(), "gates do not lower logits")
        anchors = self._numbers()
        first: dict[int, np.ndarray] = {}
        served, met, reach = np.full(self.n, -1), 0, math.inf
        for start in range(0, self.n, max(AT_ONCE // len(shut), 1)):
            for part in range(self.parts):
                block = self.fixed[part, start : start + max(AT_ONCE // len(shut), 1)][:, gates] @ shut.T
                reach = min(reach, -float(block[block < 0].max(initial=-math.inf)))
                for register, row in enumerate(block, start):
                    own = np.flatnonzero(row == 0)
                    require(len(own) and own[-1] < len(self.source), "a part of a link has no anchors")
                    example, mine = int(self.source[own[0]]), anchors[:, own]
                    fits = (self.source[own] == example).all() and served[register] in (-1, example)
                    known = first.setdefault(part, mine)
                    require(fits and np.array_equal(mine, known), "examples have different anchors")
                    served[register], met = example, met + len(own)
        require(sorted(served) == list(range(self.n)), "there is not one register for each example")
        require(met == len(self.source), "there are anchors that nobody means")
        return tuple(Piece(*first[part]) for part in range(self.parts)), reach

    def _numbers(self) -> Float[np.ndarray, "5 tokens"]:
        """Slopes of the score and of the label, offsets, two that add up, and values."""
        offsets = self.constants[:, self.offset]
        require(offsets.shape[1] <= 2, "an anchor has more than two offsets")
        both = np.pad(offsets, ((0, 0), (0, 2 - offsets.shape[1])))
        return np.stack([self.of_score, self.of_label, *both.T, self.values])


def _multiples(weight: Float[np.ndarray, "tokens entries inputs"], columns: tuple[int, ...]) -> np.ndarray:
    """The numbers by which tokens multiply these columns of a row, entry by entry."""
    found = weight[:, 0, columns[0]]
    right = np.zeros(weight.shape[1:])
    require(len(columns) == len(right), "an anchor does not hold every entry of its example")
    right[range(len(columns)), list(columns)] = 1.0
    require(np.array_equal(weight, found[:, None, None] * right), "an anchor holds no multiple of its example")
    return found
