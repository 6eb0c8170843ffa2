"""The body of a learner's Repeat, read from its stored weights: which heads score, link, collect and shrink.

A step is a few attentions, each of which changes some features and keeps all others of every token as they are:

    score     rows of the prompt ask two tokens of values 1 and -1 whose logits differ by h z (lemmas.learners.score)
    link      rows ask anchors with their score, or points of a grid with score and label: readings in one number
              (proof.arithmetic.readings). Rows of sign -1 find the mirror image, -phi(-s)
    collect   who carries w asks the rows, and adds what it reads to w: a signed pair average (lemmas.learners.average)
    shrink    who carries w asks anchors with each of its entries (lemmas.learners.threshold)

Without score and link, what is collected are residuals. All other tokens must be out of reach of whoever asks, and
whatever rounds before it is asked, shown or kept is not known, so what is read here is what the network computes.
Features that a step changes count as anything when it begins, but for w and v where they are carried, and in registers
where they are 0: these must then read nothing but zeros, so that all holds at every step, by induction.

Who carries w: the state, which begins with 0; or two registers, of w and -w, that begin with what a row shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.heads.atom import Dtype
from anchorhead.lemmas.learners.anchors import Anchors, constants_of, loud, read_links
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.reading import (
    Shown,
    attentions,
    changed,
    dtype_of,
    features_of_v,
    of_head,
    outputs_of,
    picked,
    refuse,
    require,
    skip_of,
)
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.threshold import Clip
from anchorhead.lemmas.learners.tokens import Held, Logits, Tokens, ends
from anchorhead.lemmas.learners.update import Update
from anchorhead.network import Attention, Linear, Network
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import Refusal, of_attention
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.arithmetic.silence import out_of_reach


@dataclass(frozen=True, eq=False)
class Body:
    """The parts of a step. links: what stands for each, none where residuals are collected; most: |score| up to which
    all that is not meant is out of reach."""

    scoring: Scoring | None
    links: tuple[Anchors, ...]
    most: float
    collect: Average


def read_body(network: Network, shown: Shown, times: int, weights: int, shrinks: int, moves: bool) -> Body:
    """The step of a network, if it is one; CertificateError otherwise.

    weights   how many entries w has; shrinks: how many of them a threshold shrinks; moves: whether there is momentum
    """
    reader = _Reader(network, shown, times, weights, shrinks, moves)
    while True:
        before = reader.zero
        try:
            found = reader.step()
        except Refusal as why:
            refuse(str(why))
        if np.array_equal(before, reader.zero):
            return found


class _Reader:
    """now: what tokens hold before a layer. zero: the registers whose w and v are 0."""

    def __init__(self, network: Network, shown: Shown, times: int, weights: int, shrinks: int, moves: bool) -> None:
        self.shown, self.shrinks = shown, shrinks
        self.dtype: Dtype = dtype_of(network)
        self.arithmetic, embed = arithmetic_of(network.dtype), network.embed
        self.first, self.body, last = attentions(network, times)
        self.w = picked(last.value[0] if isinstance(last, Attention) else last.on_features(), "w")
        require(len(self.w) == weights, "what it reads in the end is not w")
        require(len(self.body) - bool(shrinks) in (1, 3), "a step is not of one attention, or of three")
        self.update = self.body[-1 - bool(shrinks)]
        self.v = features_of_v(self.update, self.w, moves)
        alone = embed.weight.ndim == 2 and embed.bias.ndim == 1 and embed.tokens is None
        require(alone and embed.inputs == shown.columns, "its tokens are not the rows of a prompt, one each")
        self.signs = (1.0, -1.0) if shown.starts else (1.0,)
        self._require_output(network, last)
        width = len(embed.weight)
        entries = Held(shown.entries(), np.zeros((len(shown.common), shown.columns + 1)))
        self.now = Tokens(
            entries.mapped(np.concatenate([embed.weight, embed.bias[:, None]], axis=1)),
            Held.constants(embed.registers, width, 1 + 2 * weights if shown.starts else 1),
            Held.constants(embed.states, width, 1 + 2 * weights),
        )
        require(len(self.now.states) == 1, "it has not one state")
        self.zero = self._begin()
        self.begun = self.now

    def _require_output(self, network: Network, last: Linear | Attention) -> None:
        """What is put out is what the state carries, or what it reads of the first register, all that it sees."""
        require(network.output == "state", "it does not put out its state")
        if isinstance(last, Linear):
            require(last.bias is None and not last.across and len(self.signs) == 1, "what is put out is not w")
            return
        alone = last.grid == (1,) and last.heads == 1 and last.skip is last.bias is None and len(self.signs) == 2
        require(alone and np.array_equal(last.output[0], np.eye(len(self.w))), "what is put out is not w")

    def _begin(self) -> Bool[np.ndarray, " registers"]:
        """Requires that w and v begin where they should, and tells in which registers they are 0."""
        slots, now = [*self.w, *self.v], self.now
        zero = np.logical_not(now.registers.size[:, slots].any(axis=1))
        if not self.shown.starts:
            require(not self.first and not now.states.size[:, slots].any(), "w does not begin with 0")
            return zero
        why = "w does not begin with what a row shows"
        require(len(self.first) == 1 and len(zero) >= 2 and zero[:2].all(), why)
        (layer,) = self.first
        plain = layer.mask is layer.grid is None and np.array_equal(skip_of(layer), np.eye(layer.width))
        require(plain and changed(layer) == sorted(self.w) and outputs_of(layer, self.w, ()) == (1.0,), why)
        values = now.rows.mapped(layer.value[0])
        for register, start in zip((0, 1), self.shown.starts, strict=True):
            low, high = self._ends(layer, 0, 1, slice(register, register + 1))
            alone = out_of_reach(np.delete(high[0], start), low[0, start]).all()
            shows = np.array_equal(values.number[start], self._entries(self.shown.values)[start])
            require(alone and shows and not values.loose[start].any(), why)
        return np.zeros(len(zero), bool)

    def _ends(
        self, layer: Attention, head: int, group: int, tokens: slice | np.ndarray
    ) -> tuple[Float[np.ndarray, "asks keys"], Float[np.ndarray, "asks keys"]]:
        """Between what the logits are that some tokens of a group meet: of rows, registers, states."""
        asking = self.now.groups[group].tokens(tokens).mapped(layer.query[head], scaled=True)
        keys = [one.mapped(of_head(layer.key, head)) for one in self.now.seen(layer, group)]
        found = [ends(asking, key, self.arithmetic) for key in keys]
        low, high = (np.concatenate(arrays, axis=1) for arrays in zip(*found, strict=True))
        return low, high

    def _entries(self, columns: tuple[int, ...]) -> Float[np.ndarray, "kinds columns quantities"]:
        return self.shown.entries()[:, list(columns)]

    def step(self) -> Body:
        now, weights = self.begun, len(self.w)
        live = sorted({f for layer in self.body for f in changed(layer)})
        rows, registers, states = (one.loosened(slice(None), live, np.inf) for one in now.groups)
        quantities = np.eye(1 + 2 * weights)
        for k, slot in enumerate([*self.w, *self.v]):
            registers = registers.holding(self.zero, slot, np.zeros(registers.number.shape[2]))
            if len(self.signs) == 1:
                states = states.holding(0, slot, quantities[1 + k])
            else:
                registers = registers.holding([0, 1], slot, np.outer(self.signs, quantities[1 + k]))
        self.now, scoring, links, most = Tokens(rows, registers, states), None, (), np.inf
        if len(self.body) - bool(self.shrinks) == 3:
            scoring = self._score(self.body[0])
            links, most = self._links(self.body[1])
        collect = self._collect(scoring is not None)
        self._keep_zeros(self.update)
        if self.shrinks:
            collect = Average(collect.sharpness, collect.outputs, collect.update, self._clip(self.body[-1]))
            self._keep_zeros(self.body[-1])
        return Body(scoring, links, most, collect)

    def _written(self, layer: Attention, taken: int | None) -> int:
        """The one feature that a layer changes; rows keep nothing there, or less an entry."""
        found = changed(layer)
        require(len(found) == 1 and layer.output.shape[2] == 1, "a layer does not write one number to every row")
        kept = self.now.rows.mapped(skip_of(layer)[found])
        right = np.zeros_like(kept.number[:, 0]) if taken is None else -self._entries((taken,))[:, 0]
        good = not kept.loose.any() and np.array_equal(kept.number[:, 0], right)
        require(good and found[0] not in (*self.w, *self.v), "a row keeps something of a score or link, or loses more")
        return found[0]

    def _after(self, layer: Attention, feature: int, quantity: int) -> None:
        """On to the next layer: examples hold a quantity there, all others something of the size of what is read."""
        groups = []
        for number, group in enumerate(self.now.groups):
            seen, size = self.now.seen(layer, number), group.mapped(skip_of(layer)[[feature]]).size[:, 0]
            for head in range(layer.heads):
                shown = [one.mapped(of_head(layer.value, head)).size.max(initial=0.0) for one in seen]
                size = size + abs(float(layer.output[head, feature, 0])) * max(shown)
            groups.append(group.loosened(slice(None), feature, (1 + 2.0**-8) * size))
        rows, registers, states = groups
        rows = rows.holding(list(self.shown.examples), feature, np.eye(self.shown.quantities)[quantity])
        self.now = Tokens(rows, registers, states)

    def _score(self, layer: Attention) -> Scoring:
        """Rows see two tokens, of 1 and -1; one has the logit 0 or minus that of the other, so one has at least 0."""
        feature, shown, weights = self._written(layer, self.shown.taken[0]), self.shown, len(self.w)
        require(layer.mask != "self+registers", "rows see themselves")
        x, label = self._entries(shown.x), self._entries((shown.label,))[:, 0]
        require(not len(self.now.seen(layer, 0)[0]), "rows see rows")
        sharpness: list[float] = []
        for head in range(layer.heads):
            for kind in shown.examples:
                logits, values = self._near(layer, head, kind)
                require(sorted(values) == [-1.0, 1.0], "a score is not read of two tokens, 1 and -1")
                up, down = logits[int(np.argmax(values))], logits[int(np.argmin(values))]
                expected = np.zeros_like(up)
                expected[:, 1 : 1 + weights] = x[kind].T
                if shown.residual:
                    expected[:, 0] = -label[kind]
                h = _multiple(up - down, expected)
                against = not down.any() or (np.array_equal(down, -up) and layer.grid == (2,))
                require(against and np.array_equal(up - down, h * expected), "logits of a score differ by no h w . x")
                sharpness.append(h)
        self._after(layer, feature, shown.score)
        outputs = tuple(map(float, layer.output[:, feature, 0]))
        return Scoring(_sharp(sharpness, layer.heads), outputs, shown.residual, shown.taken[0] is not None)

    def _near(self, layer: Attention, head: int, kind: int) -> tuple[list[np.ndarray], list[float]]:
        """Of the tokens that rows of a kind see within reach of the logit 0: their logits, and the constants that they
        show."""
        _, high = self._ends(layer, head, 0, slice(kind, kind + 1))
        seen, query = (
            self.now.seen(layer, 0),
            self.now.rows.tokens(slice(kind, kind + 1)).mapped(layer.query[head], scaled=True),
        )
        far = np.split(out_of_reach(high[0], 0.0), np.cumsum([len(group) for group in seen])[:-1])
        found, shown, size = [], [], 1 + 2 * len(self.w)
        for group, away in zip(seen, far, strict=True):
            near = group.tokens(np.flatnonzero(~away))
            logits = Logits.between(query, near.mapped(of_head(layer.key, head)))
            value = near.mapped(of_head(layer.value, head))
            known = not (logits.loose.any() or value.loose.any() or value.varies.any())
            few = logits.terms.max(initial=0) <= len(self.w) + 2
            require(known and few, "logits or values of a score are not known")
            found += [np.pad(one, ((0, 0), (0, size - one.shape[1]))) for one in logits.of]
            shown += value.constant[:, 0].tolist()
        return found, shown

    def _links(self, layer: Attention) -> tuple[tuple[Anchors, ...], float]:
        """What stands for every link, and |score| up to which all that is not meant is out of reach."""
        feature = self._written(layer, self.shown.taken[1])
        require(layer.grid is not None or layer.mask == "registers+states", "rows see rows")
        rows = self.now.rows.tokens(np.array(self.shown.examples))
        found = read_links(layer, rows, self.now.seen(layer, 0), feature, self.shown, self.dtype)
        self._after(layer, feature, self.shown.link)
        return found

    def _collect(self, linked: bool) -> Average:
        """Logits of rows are h times links, or residuals, times the sign of w; all else is out of reach of -1."""
        layer, shown, weights, examples = self.update, self.shown, len(self.w), list(self.shown.examples)
        require(changed(layer) == sorted([*self.w, *self.v]) and layer.mask is layer.grid is None, "w is not updated")
        x, label = self._entries(shown.x)[examples], self._entries((shown.label,))[examples, 0]
        expected = np.zeros((len(examples), 1 + 2 * weights, shown.quantities))
        if linked:
            expected[:, 0, shown.link] = 1.0
        else:
            require(shown.residual, "residuals are collected")
            expected[:, 1 : 1 + weights], expected[:, 0] = x, -label
        group = 1 if len(self.signs) == 2 else 2
        sharpness: list[float] = []
        for head in range(layer.heads):
            keys, values = (self.now.rows.mapped(of_head(one, head)) for one in (layer.key, layer.value))
            shows = np.array_equal(values.number[examples], self._entries(shown.values)[examples])
            require(shows and not values.loose[examples].any(), "what is averaged are not the examples")
            for carrier, sign in enumerate(self.signs):
                here = slice(carrier, carrier + 1)
                logits = Logits.between(
                    self.now.groups[group].tokens(here).mapped(layer.query[head], scaled=True), keys
                )
                h = sign * _multiple(logits.of[0], expected[0])
                right = np.array_equal(logits.of[examples], sign * h * expected) and not logits.loose[examples].any()
                require(
                    right and logits.terms[examples].max() <= weights + 2, "examples are not asked for h times links"
                )
                _, high = self._ends(layer, head, group, here)
                require(
                    out_of_reach(np.delete(high[0], examples), -1.0).all(), "a token that is no example is in reach"
                )
                sharpness.append(h)
        outputs = outputs_of(layer, self.w, self.v)
        return Average(_sharp(sharpness, layer.heads), outputs, Update.read(skip_of(layer), self.w, self.v))

    def _clip(self, layer: Attention) -> Clip:
        """Every entry that is shrunk asks the same anchors, and is less by what it reads."""
        now, w, state = self.now, self.w, self.now.states
        shrunk = sorted(w[: self.shrinks])
        kept = np.array_equal(skip_of(layer), np.eye(layer.width)) and layer.mask == "self+registers"
        require(kept and changed(layer) == sorted([*shrunk, *self.v[: self.shrinks]]), "w is not shrunk")
        require(len(self.signs) == 1, "two registers are shrunk")
        sources = Sources(-np.ones(state.number.shape[2] - 1), np.ones(state.number.shape[2] - 1))
        seen = state.forms(), now.registers.forms()
        readings = of_attention(layer, state.forms(), seen, sources, self.arithmetic)
        found: list[np.ndarray] = []
        for head in range(layer.heads):
            keys, t = readings.keys[int(readings.kinds[head])], readings.t.features(slice(head, head + 1))
            j = int(np.abs(t.coefficients[0, 0]).argmax())
            right, written = np.eye(t.coefficients.shape[2])[j], np.zeros((layer.width, 1))
            written[[w[j], *self.v[j : j + 1]] if j < self.shrinks else []] = -1.0
            once = np.array_equal(t.coefficients[0, 0], right) and not (t.constant.any() or t.error.any())
            require(once and np.array_equal(layer.output[head], written), "a head does not shrink one entry of w")
            own = loud(keys)
            good = keys.plain[own].all() and 0 not in own
            require(good, "anchors of the threshold round, or are not registers")
            found.append(np.stack([keys.slopes[own], keys.offsets[own], constants_of(keys, own)], axis=1))
        heads = layer.output[:, shrunk].any(axis=2).sum(axis=0)
        alike = len(found) == self.shrinks and all(np.array_equal(one, found[0]) for one in found)
        require(alike and (heads == 1).all(), "entries of w are not shrunk alike")
        return Clip.of(found[0].astype(self.dtype))

    def _keep_zeros(self, layer: Attention) -> None:
        """Registers whose w and v are 0 keep that if all tokens within their reach show zeros."""
        candidates = np.flatnonzero(self.zero)
        keeps = np.ones(len(candidates), bool)
        for head in range(layer.heads):
            query = self.now.registers.tokens(candidates).mapped(layer.query[head], scaled=True)
            _, first, which = np.unique(
                np.concatenate([query.constant, query.size], axis=1), axis=0, return_index=True, return_inverse=True
            )
            low, high = self._ends(layer, head, 1, candidates[first])
            seen = self.now.seen(layer, 1)
            shown = [(one.mapped(of_head(layer.value, head)).size > 0).any(axis=1) for one in seen]
            always = np.arange(low.shape[1]) >= len(seen[0])  # rows of a kind may be none at all
            level = np.where(always, low, -np.inf).max(axis=1, initial=-np.inf)
            heard = ~out_of_reach(high, level[:, None]) & np.concatenate(shown)
            keeps &= np.logical_not(heard.any(axis=1))[which.reshape(-1)]
        rows = skip_of(layer)[[*self.w, *self.v]]
        require(not np.delete(rows, [*self.w, *self.v], axis=1).any(), "w and v keep more than themselves")
        zero = self.zero.copy()
        zero[candidates[~keeps]] = False
        self.zero = zero


def _multiple(found: np.ndarray, expected: np.ndarray) -> float:
    """How many times it may be what is expected."""
    place = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    return float(found[place] / expected[place])


def _sharp(sharpness: list[float], heads: int) -> tuple[float, ...]:
    """The sharpness of each head, the same for all that ask: powers of two, products with which are exact."""
    every = np.array(sharpness).reshape(heads, -1)
    alike = (every == every[:, :1]).all() and (every > 0).all()
    require(alike and exact_factor(every).all(), "a sharpness is no power of two, or not the same for all that ask")
    return tuple(map(float, every[:, 0]))
