"""One walk through a network: what is known of every feature, layer by layer, until the output meets the program's.

Linear maps carry forms. Softmaxes are lowered to readings, and each reading is explained by the first lemma that fits:
a copy or another constant softmax, a scalar head, else the interval that a mean of values always lies in. What nobody
reads later is only bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorhead.verify.claims import Claims, Explained, Pool, Unit
from anchorhead.verify.constant import constant_softmax
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.exact import Exact
from anchorhead.verify.forms import EXACT, Forms, Quantities, joined, mapped, summed
from anchorhead.verify.grammar import Attention, Embed, Linear, Network, Repeat, Softmax, Stream
from anchorhead.verify.needs import needs
from anchorhead.verify.readings import Reading, lowered, mixed, reading, seen
from anchorhead.verify.rounding import SLACK, Arithmetic, own_error, power_of_two

Tokens = dict[str, Forms]


@dataclass(frozen=True)
class Step:
    """One thing that was checked: where, by which lemma, what, and the largest error that it leaves."""

    where: str
    lemma: str
    what: str
    error: float


@dataclass(eq=False)
class Walk:
    """The walk through one network, for the quantities of one program."""

    network: Network
    exact: Exact
    model: Arithmetic
    pool: Pool
    limit: float = 0.0
    steps: list[Step] = field(default_factory=list)
    bases: dict[tuple, list[np.ndarray]] = field(default_factory=dict)

    @property
    def quantities(self) -> Quantities:
        return self.exact.quantities

    def run(self) -> Forms:
        """What is known of the tokens that are put out."""
        self.claims = Claims(self.exact, self.model, self.pool)
        embed = self.network.embed
        require(embed.tokens is not None, "a network of any number of tokens is not modelled by this walk")
        tokens = self._embedded(embed)
        layers = list(self.network.layers)
        stream = Stream(embed.positions, len(embed.registers), len(embed.states), embed.weight.shape[1])
        wanted = needs(layers, stream, self.network.output)
        place = 0
        while place < len(layers):
            where = f"layer {place + 1} ({type(layers[place]).__name__})"
            match layers[place : place + 3]:
                case [Linear() as before, Softmax() as softmax, Linear() as after]:
                    tokens = self._softmaxes(before, softmax, after, tokens, wanted[place + 3], where)
                    place += 3
                case [Linear() as linear, *_]:
                    tokens = self._linear(linear, tokens)
                    place += 1
                case [Attention() as attention, *_]:
                    tokens = self._attention(attention, tokens, wanted[place + 1], where, place + 1 == len(layers))
                    place += 1
                case [Softmax(), *_]:
                    tokens = {kind: _shares(forms) for kind, forms in tokens.items()}
                    place += 1
                case [Repeat() as repeat, *_]:
                    layers[place : place + 1] = list(repeat.layers) * repeat.times
                    require(len(layers) < 2_000, "a Repeat of more layers than are followed one by one")
                    wanted = needs(layers, stream, self.network.output)
        return tokens[self.network.output]

    def _embedded(self, embed: Embed) -> Tokens:
        inputs = self.exact.of(0)
        tokens, features = inputs.shape
        require((embed.tokens, embed.weight.shape[2]) == (tokens, features), "the program takes another input")
        # an input below the smallest normal number may be taken for 0
        x = Forms(inputs.ids, *inputs.arrays[:3], np.full((tokens, features), self.model.tiny))
        source = np.arange(tokens) if embed.source is None else embed.source
        count = len(source)
        bias = np.broadcast_to(embed.bias, (count, embed.bias.shape[1]))
        if len(embed.weight) == 1:
            found = mapped(embed.weight[0], bias, x.tokens(source), self.quantities, self.model)
        else:
            rows = [
                mapped(embed.weight[i], bias[i], x.tokens([int(p)]), self.quantities, self.model)
                for i, p in enumerate(source)
            ]
            found = joined(rows)
        extra = {"register": embed.registers, "state": embed.states}
        return {"input": found, **{kind: Forms.constants(rows) for kind, rows in extra.items() if len(rows)}}

    def _linear(self, layer: Linear, tokens: Tokens) -> Tokens:
        if not layer.across:
            weight = layer.on_features()
            return {k: mapped(weight, layer.bias, forms, self.quantities, self.model) for k, forms in tokens.items()}
        every = _every(tokens)
        if layer.mix is not None:
            each = mapped(layer.on_features(), None, every, self.quantities, self.model)
            turned = mapped(layer.mix, None, _turned(each), self.quantities, self.model)
            found = _turned(turned)
            if layer.bias is not None:
                eye = np.eye(layer.outputs)
                found = mapped(eye, layer.bias, found, self.quantities, self.model)
            return {"input": found}
        out, outputs = layer.weight.shape[:2]
        flat = every.reshaped(1, every.shape[0] * every.shape[1])
        bias = None if layer.bias is None else np.broadcast_to(layer.bias, (out, outputs)).reshape(1, -1)
        found = mapped(layer.weight.reshape(out * outputs, -1), bias, flat, self.quantities, self.model)
        return {"input": found.reshaped(out, outputs)}

    # attention

    def _attention(self, layer: Attention, tokens: Tokens, wanted: dict, where: str, last: bool) -> Tokens:
        stream = Stream(*(tokens[k].shape[0] if k in tokens else 0 for k in ("input", "register", "state")), 0)
        every = _every(tokens)
        keys = [mapped(weight, None, every, self.quantities, self.model) for weight in layer.key]
        values = [mapped(weight, None, every, self.quantities, self.model) for weight in layer.value]
        skip = np.zeros((layer.outputs, every.shape[1])) if layer.skip is None else layer.skip.on_features()
        bias = np.zeros(layer.outputs) if layer.bias is None else layer.bias
        result: Tokens = {}
        for kind, forms in tokens.items():
            needed = wanted.get(kind)
            asks = needed is not None and bool(needed[(layer.output != 0).any(axis=(0, 2))].any())
            kept = forms
            skip_bias = layer.skip.bias if layer.skip is not None else None
            if skip_bias is not None:
                kept = mapped(skip, skip_bias, forms, self.quantities, self.model)
            carry = skip if skip_bias is None else np.eye(layer.outputs)
            if not asks:
                result[kind] = self._bounded(layer, kept, carry, bias, values)
                continue
            rows = []
            asked = [self._asked(layer, forms, kind, place, stream, keys) for place in range(forms.shape[0])]
            reads = self._reads(layer, asked, values, where, kind, bias, last)
            for place, (weight, forms_read, size, terms) in enumerate(reads):
                own = kept.tokens([place])
                both = joined([forms_read, own], axis=1)
                sizes = np.concatenate([size, own.size(self.quantities)[0]])[None]
                counts = np.concatenate([terms, np.ones(own.shape[1])])
                matrix = np.concatenate([weight, carry], axis=1)
                rows.append(mapped(matrix, bias, both, self.quantities, self.model, sizes, counts))
            result[kind] = joined(rows)
        return result

    def _bounded(self, layer: Attention, kept: Forms, carry: np.ndarray, bias: np.ndarray, values: list[Forms]) -> Forms:
        """Of tokens whose answers nobody reads: what is carried, and means of values."""
        own = mapped(carry, bias, kept, self.quantities, self.model)
        largest = [value.size(self.quantities).max(axis=0) for value in values]
        reach = sum(np.abs(layer.output[h]) @ largest[min(h, len(largest) - 1)] for h in range(layer.heads))
        reach = reach * (1 + 1e-2)
        require(bool(np.isfinite(reach).all() and (reach < self.model.largest / 4).all()), "a sum may overflow")
        written = (layer.output != 0).any(axis=(0, 2))
        return Forms(own.ids, *own.arrays[:2], own.approximation + np.where(written, reach, 0.0), own.rounding)

    def _asked(
        self, layer: Attention, forms: Forms, kind: str, place: int, stream: Stream, keys: list[Forms]
    ) -> list[tuple[Reading | None, np.ndarray]]:
        """For each head the reading of one token, and the tokens that it sees."""
        heads, size, width = layer.query.shape
        visible = seen(layer, stream, kind, place)
        own = forms.tokens([place])
        queries = mapped(layer.query.reshape(heads * size, width), None, own, self.quantities, self.model)
        found: list[tuple[Reading | None, np.ndarray]] = []
        grid = layer.grid is not None and len(layer.grid) > 1
        cache: dict[int, Forms] = {}
        for h in range(heads):
            which = min(h, len(keys) - 1)
            cache.setdefault(which, keys[which].tokens(visible))
            query = queries.features(slice(h * size, (h + 1) * size))
            found.append((None if grid else lowered(query, cache[which], self.quantities, self.model), visible))
        return found

    def _reads(
        self,
        layer: Attention,
        asked: list[list[tuple[Reading | None, np.ndarray]]],
        values: list[Forms],
        where: str,
        kind: str,
        bias: np.ndarray,
        last: bool,
    ) -> list[tuple[np.ndarray, Forms, np.ndarray, np.ndarray]]:
        """For each token that asks: weights (outputs, reads), what is read (1, reads), sizes and numbers of terms."""
        units: list[tuple[int, np.ndarray, Unit]] = []
        reads: list[list[tuple[np.ndarray, Forms, float, float]]] = [[] for _ in asked]
        for i, heads in enumerate(asked):
            groups: dict[tuple, list[tuple[Reading, np.ndarray, np.ndarray]]] = {}
            for h, (one, visible) in enumerate(heads):
                value = values[min(h, len(values) - 1)]
                if one is None:
                    reads[i].append(self._anything(layer.output[h], value.tokens(visible), where))
                    continue
                own = value.tokens(visible[one.keys])
                if one.constant or len(one.keys) == 1:
                    form, size, terms = constant_softmax(one.logits, own, self.quantities, self.model)
                    reads[i] += [
                        (layer.output[h][:, c], form.features([c]), float(size[c]), terms) for c in range(own.shape[1])
                    ]
                    continue
                for c in range(own.shape[1]):
                    column = own.features([c])
                    if column.zero.all() or not layer.output[h][:, c].any():
                        continue
                    if not column.fixed.all():
                        reads[i].append(self._anything(layer.output[h][:, [c]], column, where))
                        continue
                    t = one.t
                    name = (t.ids.tobytes(), *(a.tobytes() for a in t.arrays), layer.output[h][:, c].tobytes())
                    part = _with_values(one, column.constant[:, 0], column.error[:, 0])
                    groups.setdefault(name, []).append((one, layer.output[h][:, c], part))
            for group in groups.values():
                parts = tuple(part for _, _, part in group)
                hints = self._hints(i, group[0][0].t, group[0][1], bias) if last else {}
                units.append((i, group[0][1], Unit(group[0][0], parts, hints, f"{where}, {kind} {i}", self._enough(group[0][1]))))
        explained = self._explained([unit for _, _, unit in units], where)
        merged = self._merged(units, explained)
        for i, weight, unit, found in merged:
            if found is None:
                low = min(float(part.values.min()) for part in unit.parts) * len(unit.parts)
                high = max(float(part.values.max()) for part in unit.parts) * len(unit.parts)
                reads[i].append(self._hull(weight, np.array([[min(low, 0.0)]]), np.array([[max(high, 0.0)]]), len(unit.parts)))
                self.steps.append(Step(where, "interval", f"{kind} {i}: no function of the program was found", np.inf))
            else:
                reads[i].append((weight, found.form, found.reach, float(len(unit.parts))))
        result = []
        for mine in reads:
            if not mine:
                result.append((np.zeros((layer.outputs, 1)), Forms.constants(np.zeros((1, 1))), np.zeros(1), np.ones(1)))
                continue
            weight = np.concatenate([np.reshape(one[0], (layer.outputs, -1)) for one in mine], axis=1)
            forms = joined([one[1] for one in mine], axis=1)
            size = np.concatenate([np.broadcast_to(one[2], one[1].shape[1]) for one in mine])
            terms = np.concatenate([np.broadcast_to(one[3], one[1].shape[1]) for one in mine])
            result.append((weight, forms, size, terms))
        return result

    def _enough(self, weight: np.ndarray) -> float:
        """The error of a single head that the stated bound allows."""
        return self.limit / float(np.abs(weight).max()) if self.limit else np.inf

    def _explained(self, units: list[Unit], where: str) -> list[Explained | None]:
        found = self.claims.explain(units)
        known = [one for one in found if one is not None]
        if known:
            worst = max(known, key=lambda one: one.error)
            self.steps.append(Step(where, "scalar head", f"{len(known)} heads; the worst: {worst.words}", worst.error))
        return found

    def _merged(self, units: list, explained: list) -> list:
        """Heads that are no function of the program each, but share a direction: taken together, and tried again."""
        result = [(i, weight, unit, found) for (i, weight, unit), found in zip(units, explained, strict=True) if found]
        rest: dict[tuple, list] = {}
        for (i, weight, unit), found in zip(units, explained, strict=True):
            if found is None:
                t = unit.reading.t
                rest.setdefault((i, weight.tobytes(), t.ids.tobytes(), t.coefficients.tobytes()), []).append(unit)
        joint: list[tuple[int, np.ndarray, Unit]] = []
        for (i, weight, *_), group in rest.items():
            joint.append((i, np.frombuffer(weight), _joint(group)))
        again = self._explained([unit for _, _, unit in joint], "heads together") if joint else []
        return result + [(i, weight, unit, found) for (i, weight, unit), found in zip(joint, again, strict=True)]

    def _hints(self, token: int, t: Forms, weight: np.ndarray, bias: np.ndarray) -> dict:
        """Where nothing follows: what alpha and beta would have to be for the output to be the program's."""
        target = self.exact.output
        if token >= target.shape[0] or target.shape[1] != len(weight):
            return {}
        hints: dict[int | None, list[tuple[float, float]]] = {}
        for o in np.flatnonzero(weight):
            for number, q in enumerate(target.ids):
                if target.coefficients[token, o, number]:
                    alpha = float(target.coefficients[token, o, number] / weight[o])
                    beta = float((target.constant[token, o] - bias[o]) / weight[o])
                    hints.setdefault(int(q), []).append((alpha, beta))
                    if q in t.ids:
                        own = float(t.coefficients[0, 0, list(t.ids).index(q)])
                        line = alpha / own if own else 0.0
                        hints.setdefault(None, []).append((line, beta - line * float(t.constant[0, 0])))
        return hints

    def _anything(self, weight: np.ndarray, values: Forms, where: str) -> tuple[np.ndarray, Forms, np.ndarray, float]:
        """A mean of values lies between the smallest and the largest of them, whatever the logits."""
        low, high = values.ends(self.quantities)
        self.steps.append(Step(where, "interval", "a softmax that no lemma explains", float((high - low).max())))
        return self._hull(weight, low.min(axis=0)[None], high.max(axis=0)[None], len(low))

    def _hull(
        self, weight: np.ndarray, low: np.ndarray, high: np.ndarray, terms: int
    ) -> tuple[np.ndarray, Forms, np.ndarray, float]:
        room = (4 * self.model.gamma(terms + 2) + 1e-12) * np.maximum(np.abs(low), np.abs(high)) + 8 * terms * self.model.tiny
        form = Forms.between(low - room, high + room)
        return weight, form, form.size(self.quantities)[0], 1.0

    # groups of features

    def _softmaxes(
        self, before: Linear, softmax: Softmax, after: Linear, tokens: Tokens, wanted: dict, where: str
    ) -> Tokens:
        """Linear, Softmax, Linear: each group is a head whose values are the last map's weights."""
        if before.across:
            require(before.mix is None, "a mix before a Softmax is not modelled")
            out, width = before.weight.shape[:2]
            x = _every(tokens)
            x = x.reshaped(1, x.shape[0] * x.shape[1])
            rows = before.weight.reshape(out, width, -1)
            bias = np.zeros((out, width)) if before.bias is None else np.broadcast_to(before.bias, (out, width))
            asking = {"input": [(x, rows[i], bias[i]) for i in range(out)]}
        else:
            dense = before.on_features()
            bias = np.zeros(len(dense)) if before.bias is None else before.bias
            asking = {k: [(f.tokens([i]), dense, bias) for i in range(f.shape[0])] for k, f in tokens.items()}
        readings = {
            kind: [self._groups(*one, softmax.groups) for one in rows] if kind == "input" else None
            for kind, rows in asking.items()
        }
        if not after.across:
            weight, bias = after.on_features(), after.bias
            result = {}
            for kind, rows in readings.items():
                if rows is None:
                    shares = _shares(Forms.constants(np.zeros((len(asking[kind]), sum(softmax.groups)))))
                    result[kind] = mapped(weight, bias, shares, self.quantities, self.model)
                else:
                    result[kind] = joined([
                        self._valued([(g, weight[:, s]) for g, s in row], len(weight), bias, f"{where}, token {i}", i)
                        for i, row in enumerate(rows)
                    ])  # fmt: skip
            return result
        require(after.mix is None and set(readings) == {"input"}, "a mix after a Softmax, or registers beside, is not modelled")
        out, outputs = after.weight.shape[:2]
        flat = after.weight.reshape(out * outputs, after.weight.shape[2], -1)
        pairs = [(g, flat[:, i, s]) for i, row in enumerate(readings["input"] or []) for g, s in row]
        bias = None if after.bias is None else np.broadcast_to(after.bias, (out, outputs)).reshape(-1)
        return {"input": self._valued(pairs, out * outputs, bias, where, None).reshaped(out, outputs)}

    def _groups(
        self, x: Forms, weight: np.ndarray, bias: np.ndarray, groups: Sequence[int]
    ) -> list[tuple[Reading | None, slice]]:
        """The reading of each group of logits W x + b of one token, and which features the group is."""
        found: list[tuple[Reading | None, slice]] = []
        first = 0
        zero, fixed = x.zero[0], x.fixed[0]
        for size in groups:
            own = slice(first, first + size)
            first += size
            touched = (weight[own] != 0).any(axis=0) & ~zero
            varying, still = np.flatnonzero(touched & ~fixed), np.flatnonzero(touched & fixed)
            if len(varying) > 1:
                logits = mapped(weight[own], bias[own], x, self.quantities, self.model)
                found.append((mixed(logits, self.quantities, self.model), own))
                continue
            products = weight[own][:, still] * x.constant[0, still]
            exact = power_of_two(weight[own][:, still]) | power_of_two(x.constant[0, still])
            wrong = np.abs(weight[own][:, still]) @ x.error[0, still] * SLACK
            sizes = np.abs(products).sum(axis=1) + np.abs(bias[own])
            exactly = np.where(exact, np.abs(products), 0.0).sum(axis=1) + np.abs(bias[own])
            terms = (products != 0).sum(axis=1) + (bias[own] != 0)
            own_wrong = np.where((terms <= 1) & exact.all(axis=1), 0.0, own_error(terms) * sizes)
            t = x.features([int(varying[0])]) if len(varying) else Forms.constants(np.zeros((1, 1)))
            slopes = weight[own][:, varying[0]] if len(varying) else np.zeros(size)
            offsets = products.sum(axis=1) + bias[own]
            one = reading(
                t, slopes, offsets, sizes, exactly, terms, wrong + own_wrong, np.zeros(size), self.quantities, self.model
            )
            found.append((one, own))
        return found

    def _valued(
        self, pairs: list, outputs: int, bias: np.ndarray | None, where: str, token: int | None
    ) -> Forms:
        """sum over groups of sum_k V_ok w_k + bias, (1, outputs), for pairs of a reading and V (outputs, features)."""
        units: list[tuple[np.ndarray, np.ndarray, Unit]] = []
        reads: list[tuple[np.ndarray, Forms, np.ndarray, np.ndarray]] = []
        extra = np.zeros(outputs)
        for one, values in pairs:
            if one is None:
                reads.append(self._interval_of(values))
                continue
            own = values[:, one.keys]
            if not own.any():
                continue
            if one.constant or len(one.keys) == 1:
                form, size, terms = constant_softmax(one.logits, Forms.constants(own.T), self.quantities, self.model)
                reads.append((np.eye(outputs), form, size, np.full(outputs, terms)))
                continue
            base = self._base(one, own[np.abs(own).max(axis=1).argmax()])
            ratios = own[:, base != 0] / base[base != 0]
            take = ratios.min(axis=1) / 2 + ratios.max(axis=1) / 2
            off = np.abs(own - take[:, None] * base).max(axis=1) + 4 * 2.0**-53 * np.abs(own).max(axis=1)
            part = _with_values(one, base, np.zeros(len(base)))
            hints = self._flat_hints(take, outputs, token)
            units.append((take, off, Unit(one, (part,), hints, where)))
        units = _same_t(units)
        found = self._explained([unit for _, _, unit in units], where)
        for (take, off, unit), one in zip(units, found, strict=True):
            if one is None:
                size = sum(float(np.abs(part.values).max()) for part in unit.parts)
                weight, form, sizes, terms = self._hull(take[:, None], np.array([[-size]]), np.array([[size]]), 1)
                reads.append((weight, form, sizes, np.array([terms])))
            else:
                reads.append((take[:, None], one.form, np.array([one.mass]), np.array([float(one.terms)])))
            extra += off * (1 + 1e-3)
        if not reads:
            return Forms.constants(np.zeros((1, outputs)) if bias is None else bias[None])
        weight = np.concatenate([one[0] for one in reads], axis=1)
        forms = joined([one[1] for one in reads], axis=1)
        size, terms = (np.concatenate([one[n] for one in reads]) for n in (2, 3))
        y = mapped(weight, bias, forms, self.quantities, self.model, size[None], terms)
        return Forms(y.ids, *y.arrays[:3], y.rounding + extra)

    def _base(self, one: Reading, values: np.ndarray) -> np.ndarray:
        """Values along which a group's are measured: those that the derivation names, or of a group before it with the
        same logits, if parallel."""
        known = self.bases.setdefault((one.logits.slopes.tobytes(), one.logits.offsets.tobytes()), [])
        for base in (*self.pool.values, *known):
            lead = int(np.abs(base).argmax())
            if len(base) == len(values) and np.abs(values * base[lead] - base * values[lead]).max() <= 1e-5 * abs(values[lead] * base[lead]):
                return base
        known.append(values)
        return values

    def _interval_of(self, values: np.ndarray) -> tuple[np.ndarray, Forms, np.ndarray, np.ndarray]:
        low, high = np.minimum(values.min(axis=1), 0.0), np.maximum(values.max(axis=1), 0.0)
        _, form, sizes, _ = self._hull(np.eye(len(low)), low[None], high[None], values.shape[1])
        return np.eye(len(low)), form, sizes, np.full(len(low), float(values.shape[1]))

    def _flat_hints(self, take: np.ndarray, outputs: int, token: int | None) -> dict:
        """What alpha would have to be for the outputs to be the program's, where these follow."""
        target = self.exact.output
        target = target.reshaped(1, target.shape[0] * target.shape[1]) if token is None else target.tokens([token])
        if target.shape[1] != outputs:
            return {}
        o = int(np.abs(take).argmax())
        return {
            int(q): [(float(target.coefficients[0, o, n] / take[o]), 0.0)]
            for n, q in enumerate(target.ids)
            if target.coefficients[0, o, n]
        }


def _same_t(units: list) -> list:
    """Groups in the same t that are taken alike: parts of one unit."""
    found: dict[tuple, list] = {}
    for take, off, unit in units:
        t = unit.reading.t
        found.setdefault((t.ids.tobytes(), *(a.tobytes() for a in t.arrays), np.round(take, 12).tobytes()), []).append(
            (take, off, unit)
        )
    return [
        group[0] if len(group) == 1 else (
            group[0][0],
            sum(off for _, off, _ in group) + sum(np.abs(take - group[0][0]) for take, _, _ in group),
            Unit(group[0][2].reading, tuple(p for _, _, u in group for p in u.parts), group[0][2].hints, group[0][2].where),
        )
        for group in found.values()
    ]  # fmt: skip


def _joint(group: list[Unit]) -> Unit:
    """Units in t_1, t_2, ... that differ by constants, as one in t_1: the others' logits are shifted."""
    from dataclasses import replace

    first = group[0].reading
    if len(group) == 1:
        return group[0]
    low, high = first.ends
    parts = []
    for unit in group:
        own = unit.reading
        shift = float(own.t.constant[0, 0] - first.t.constant[0, 0])
        low, high = min(low, own.ends[0] - shift), max(high, own.ends[1] - shift)
        wrong = float((own.t.error + first.t.error)[0, 0]) + 4 * 2.0**-53 * abs(shift)
        for part in unit.parts:
            steep = np.abs(part.slopes)
            parts.append(
                replace(
                    part,
                    offsets=part.offsets + part.slopes * shift,
                    sizes=part.sizes + steep * abs(shift),
                    wrong=part.wrong + steep * wrong + own_error(2) * (np.abs(part.offsets) + steep * abs(shift)),
                )
            )
    return Unit(replace(first, ends=(low, high)), tuple(parts), group[0].hints, group[0].where, group[0].limit)


def _with_values(one: Reading, values: np.ndarray, errors: np.ndarray):  # noqa: ANN202
    from dataclasses import replace

    return replace(one.logits, values=values, value_error=errors)


def _every(tokens: Tokens) -> Forms:
    return joined([tokens[kind] for kind in ("input", "register", "state") if kind in tokens])


def _turned(forms: Forms) -> Forms:
    """Tokens and features exchanged."""
    return Forms(forms.ids, *(np.swapaxes(array, 0, 1) for array in forms.arrays))


def _shares(forms: Forms) -> Forms:
    """Of what leaves a softmax: numbers from 0 to 1."""
    low = np.zeros(forms.shape)
    return Forms.between(low, low + 1 + 1e-3)


def compared(found: Forms, exact: Exact) -> Forms:
    """found - the program's output, whose coefficients should cancel."""
    target = exact.output
    if found.shape != target.shape:
        raise NotVerified(f"the network puts out {found.shape} (tokens, features), the program {target.shape}")
    best = None
    for one, other in ((found, target), (exact.expanded(found), exact.expanded(target))):
        minus = Forms(other.ids, -other.coefficients, -other.constant, other.approximation, other.rounding)
        difference = summed([one, minus], exact.quantities)
        if best is None or _worst(difference, exact) < _worst(best, exact):
            best = difference
    return best


def _worst(difference: Forms, exact: Exact) -> float:
    return float(difference.size(exact.quantities).max())
