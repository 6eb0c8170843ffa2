"""Checks a bound for truncated linear functions with Arb's balls, by a route of its own.

The weights are read as exact rationals (exact_form). The line of queries is cut at every crossing of neighbouring
anchors, at the target's corners and switches; on each region one anchor of each head is the heaviest, anchors whose
logit stays NEGLIGIBLE below it are bounded together, and the rest is enclosed by balls in the mean value form

    g(x) in g(c) + g'(X) (X - c),        g = heads - target,   X = [c - h, c + h],

bisecting until what the dtype can add still fits under the bound. Regions that are translates of each other, with
the same slopes, offsets and values relative to the heaviest anchor, are computed once.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import exp, expm1, inf

import numpy as np
from flint import arb

from anchorhead.certificate import Certificate
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network
from anchorhead.proof.arithmetic import arithmetic_of
from anchorhead.proof.ball_cells import UP, Cell, Region, ball, cell_bound, mean_at, window_of
from anchorhead.proof.exact_form import ExactAnchor, ExactHead, exact_form
from anchorhead.proof.overflow import require_room
from anchorhead.proof.ramp import THEOREMS, ramp_statement
from anchorhead.proof.statement import Statement
from anchorhead.targets.precision import precision
from anchorhead.targets.ramp import TruncatedLinear
from anchorhead.targets.record import TargetRecord

NEGLIGIBLE = 60
PRECISION = 80
MOST_CELLS = 2_000_000


def check_ramp(network: Network, record: TargetRecord, certificate: Certificate) -> Statement:
    """What follows, after the bound was found justified in balls; raises CertificateError if not."""
    target = TruncatedLinear.from_record(record)
    if target.w.shape != (network.embed.tokens, network.embed.inputs):
        raise CertificateError(f"the target takes {target.w.shape}, the network another shape")
    require_room(network, certificate.on.broadcast_to(target.w.shape))
    with precision(PRECISION):
        _Checker(network, target, certificate).run()
    return _stated(network, target, certificate)


def _stated(network: Network, target: TruncatedLinear, certificate: Certificate) -> Statement:
    """By the theorem whose anchors these are: of which one head and few anchors may leave a doubt."""
    refused = CertificateError("the network is that of no theorem")
    for theorem in THEOREMS:
        try:
            found = ramp_statement(network, target, certificate.on, theorem)
        except AnchorheadError as error:
            refused = CertificateError(f"the stored network does not prove its bound: {error}")
            continue
        if found.total <= certificate.bound and list(found.reference) == list(certificate.reference):
            return found
        refused = CertificateError(
            f"what follows by the {theorem} theorem is {found.total:.4g}, compared with {list(found.reference)}"
        )
    raise refused


class _Checker:
    def __init__(self, network: Network, target: TruncatedLinear, certificate: Certificate) -> None:
        self.target, self.certificate = target, certificate
        self.model = arithmetic_of(network.dtype)
        self.unit, self.tiny = Fraction(self.model.unit), Fraction(self.model.tiny)
        self.form = exact_form(network, self.unit)
        if self.form.outputs != target.outputs:
            raise CertificateError(f"the network has {self.form.outputs} outputs, the target {target.outputs}")
        for head in self.form.heads:
            crossings = head.crossings
            if any(b < a for a, b in pairwise(crossings)):
                raise CertificateError("the anchors of a head are out of order")
        box = certificate.on.broadcast_to(target.w.shape)
        self.spacing, self.middle = self._scale()
        self.query_error = self._query_error(box)
        self.queries = self._queries(box)
        self.limit = certificate.bound - self.query_error
        self.cells = 0

    def run(self) -> None:
        if self.limit <= 0:
            raise CertificateError(
                f"the bound {self.certificate.bound:.4g} is below the rounding of w·x + t alone, {self.query_error:.4g}"
            )
        known: dict[tuple, tuple[Fraction, list[Cell]]] = {}
        regions = sorted(self._regions(), key=lambda region: -region.log_error)
        for region in regions:
            name = (region.length, region.slope, tuple(window.key() for window in region.windows))
            if name in known:
                base, cells = known[name]
                moved = float(abs(region.base - base)) * UP
                if all(self._fits(cell, region, moved) for cell in cells):
                    continue
            known[name] = region.base, self._refine(region)

    # the scale of the query, and how far the computed query may be from it

    def _scale(self) -> tuple[Fraction, Fraction]:
        """spacing and middle with w . x + t = middle + spacing query, up to rounding: any choice is valid."""
        weights = np.array([[abs(float(a)) for a in row] for row in self.form.weight])
        token, entry = (int(i) for i in np.unravel_index(weights.argmax(), weights.shape))
        if weights[token, entry] > 0:
            spacing = Fraction(float(self.target.w[token, entry])) / self.form.weight[token][entry]
        else:
            head = self.form.heads[0]
            crossings = head.crossings
            values = [anchor.value for anchor in head.anchors if anchor.output >= 0]
            steps = sorted(b - a for a, b in pairwise(values))
            gaps = sorted(b - a for a, b in pairwise(crossings)) or [Fraction(1)]
            gap = gaps[len(gaps) // 2]
            spacing = steps[len(steps) // 2] / gap if steps and gap else Fraction(0)
        if spacing <= 0:
            raise CertificateError("the query does not grow with w·x + t")
        # a stored weight tells the spacing up to its rounding, which a large t multiplies: where the range is a whole
        # number of spacings, as both theorems have it, it tells both exactly
        low, high = Fraction(self.target.low), Fraction(self.target.high)
        cells = round((high - low) / spacing)
        if cells and abs((high - low) / spacing - cells) < Fraction(1, 1000):
            return (high - low) / cells, (low + high) / 2
        return spacing, Fraction(float(self.target.t[token])) - spacing * self.form.query_bias[token]

    def _query_error(self, box: Box) -> float:
        size = box.magnitude
        worst = Fraction(0)
        for i, (row, bias) in enumerate(zip(self.form.weight, self.form.query_bias, strict=True)):
            sizes = [Fraction(float(m)) for m in size[i]]
            stored = sum(
                (
                    abs(Fraction(float(w)) - self.spacing * a) * m
                    for w, a, m in zip(self.target.w[i], row, sizes, strict=True)
                ),
                abs(Fraction(float(self.target.t[i])) - self.middle - self.spacing * bias),
            )
            reach = sum((abs(a) * m for a, m in zip(row, sizes, strict=True)), Fraction(0))
            terms = sum(1 for a in row if a) + 1
            rounded = Fraction(float(self.model.gamma(terms))) * (reach + abs(bias)) + self.unit * reach
            underflow = (terms + 1 + sum(map(abs, row))) * self.tiny
            worst = max(worst, stored + self.spacing * (rounded + underflow))
        if worst > Fraction(float(np.finfo(np.float64).max)) / 2:
            raise CertificateError("w·x + t rounds by more than float64 can hold for inputs of the box")
        return float(worst) * UP

    def _queries(self, box: Box) -> tuple[Fraction, Fraction]:
        lows, highs = [], []
        for i, (row, bias) in enumerate(zip(self.form.weight, self.form.query_bias, strict=True)):
            ends = [[a * Fraction(float(end[i][j])) for end in (box.low, box.high)] for j, a in enumerate(row)]
            lows.append(bias + sum((min(pair) for pair in ends), Fraction(0)))
            highs.append(bias + sum((max(pair) for pair in ends), Fraction(0)))
        error = Fraction(self.query_error) / self.spacing
        return min(lows) - error, max(highs) + error

    # regions

    def _regions(self) -> list[Region]:
        return [self._region(start, end) for start, end in self._intervals()]

    def _intervals(self) -> list[tuple[Fraction, Fraction]]:
        low, high = self.queries
        cuts = {low, high}
        corners = [(Fraction(end) - self.middle) / self.spacing for end in (self.target.low, self.target.high)]
        switches = [(Fraction(float(s)) - self.middle) / self.spacing for s in self.target.switches]
        cuts |= {*corners, *switches}
        for head in self.form.heads:
            crossings = head.crossings
            cuts |= set(crossings)
            for sign, cross, first, second in (
                (-1, crossings[0], head.anchors[0], head.anchors[1]),
                (1, crossings[-1], head.anchors[-2], head.anchors[-1]),
            ):
                reach = Fraction(NEGLIGIBLE + 1) / (second.slope - first.slope)
                while low < cross + sign * reach < high:
                    cuts.add(cross + sign * reach)
                    reach *= 2
        excluded = self._excluded(switches)
        cuts |= {end for interval in excluded for end in interval}
        ordered = sorted(cut for cut in cuts if low <= cut <= high)
        starts = [start for start, _ in excluded]

        def claimed(start: Fraction, end: Fraction) -> bool:
            place = bisect_right(starts, start) - 1
            return place < 0 or not (excluded[place][0] <= start and end <= excluded[place][1])

        return [(a, b) for a, b in pairwise(ordered) if claimed(a, b)]

    def _excluded(self, switches: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
        """The queries that only inputs with an excluded pre-activation can give."""
        error = Fraction(self.query_error) / self.spacing
        intervals = []
        for low, high in sorted(self.certificate.excluded):
            start, end = ((Fraction(x) - self.middle) / self.spacing for x in (low, high))
            if not any(start < switch < end for switch in switches):
                raise CertificateError(f"the certificate leaves out ({low:g}, {high:g}), where nothing switches")
            if start + error < end - error:
                intervals.append((start + error, end - error))
        return intervals

    def _region(self, start: Fraction, end: Fraction) -> Region:
        middle = (start + end) / 2
        pre = self.middle + self.spacing * middle
        feature = int(self.target.features[bisect_right([float(s) for s in self.target.switches], float(pre))])
        inside = self.target.low < pre < self.target.high
        level = (
            self.middle + self.spacing * start
            if inside
            else Fraction(self.target.low if pre <= self.target.low else self.target.high)
        )
        region = Region(
            start,
            end - start,
            self.form.bias - level,
            self.spacing if inside else Fraction(0),
            [],
            0.0,
            0.0,
            0.0,
        )
        speakers, loudness = 0, 0.0
        for head in self.form.heads:
            speaks, loud = self._add_head(region, head, end, feature)
            speakers, loudness = speakers + speaks, loudness + loud
        summed = float(self.model.gamma(max(speakers - 1, 0) + int(self.form.scaled))) * loudness
        biased = self.model.unit * (loudness + summed + float(abs(self.form.bias))) if self.form.bias else 0.0
        region.extra = (region.extra + summed + biased) * UP
        return region

    def _add_head(self, region: Region, head: ExactHead, end: Fraction, feature: int) -> tuple[int, float]:
        """Adds a head to a region; returns whether it is heard there, and how loud it can be."""
        anchors, start = head.anchors, region.start
        ends = (start - head.origin, end - head.origin)
        heaviest = bisect_right(head.crossings, (start + end) / 2)
        top = anchors[heaviest]

        @cache
        def gap(k: int) -> tuple[Fraction, Fraction]:
            other = anchors[k]
            at = [(top.slope - other.slope) * q + top.offset - other.offset for q in ends]
            return min(at), max(at)

        seen = [heaviest]
        for direction in (-1, 1):
            k = heaviest + direction
            while 0 <= k < len(anchors) and gap(k)[0] < NEGLIGIBLE:
                seen.append(k)
                k += direction
        query = max(abs(q) for q in ends)
        spread = float(2 * head.largest("value")) * UP
        every = float(self._any_logit_error(head, query))
        nearest = min((float(gap(k)[0]) for k in (heaviest - 1, heaviest + 1) if 0 <= k < len(anchors)), default=inf)
        floor = nearest if len(seen) == 1 else float(NEGLIGIBLE)
        unseen = len(anchors) * exp(-floor)
        steep = float(anchors[-1].slope - anchors[0].slope)
        own = top.value if top.output == feature else Fraction(0)
        region.base += own
        region.foreign += 0.0 if top.output in (feature, -1) else float(abs(top.value)) * UP
        region.extra += unseen * spread * (1 + steep * float(region.length)) * UP
        region.extra += 3 * len(anchors) * exp(min(2 * every + 1 - floor * (1 - 1e-6), 700.0)) * spread
        stored = float(max(anchors[k].value_error for k in seen))
        terms = len(seen) * head.copies
        loud = float(max(abs(anchors[k].value) for k in seen)) * UP
        if len(seen) > 1:
            region.windows.append(window_of(head, seen, start, top, own, feature))
            gaps = float(max(gap(k)[1] for k in seen))
            delta = max(float(self._logit_error(anchors[k], top, ends, head.origin != 0)) for k in seen)
            log_error = delta + self.model.unit * (gaps + 2 * delta) + self.model.exp_error
            region.log_error = max(region.log_error, log_error * UP)
        growth = exp(min(2 * region.log_error, 700.0))
        gammas = float(self.model.gamma(terms + 1) + self.model.gamma(max(terms - 1, 0)))
        region.extra += growth * (gammas / (1 - gammas) * (loud + stored) + stored)
        region.extra += 4 * terms * self.model.tiny * (spread + 1 + self.form.loudest)
        return int(loud > 0), growth * (loud + stored)

    def _logit_error(
        self, anchor: ExactAnchor, top: ExactAnchor, ends: tuple[Fraction, Fraction], moved: bool
    ) -> Fraction:
        """How far the dtype's logit may be from the exact one, up to a shift that all anchors share.

        The product with the slope rounds, the sum with the offset rounds, and the key itself may be off; a rounding of
        the query (`moved`) shifts all logits, and counts by the slope's distance from the heaviest anchor's. Whatever
        is below the smallest normal number on the way may become 0.
        """
        query = max(abs(q) for q in ends)
        product = abs(anchor.slope) * query
        logit = max(abs(anchor.slope * q + anchor.offset) for q in ends)
        shift = abs(anchor.slope - top.slope) * query if moved else Fraction(0)
        rounded = self.unit * (product + logit + shift) + 4 * self.tiny * (1 + abs(anchor.slope))
        return (rounded + anchor.slope_error * query + anchor.offset_error) * Fraction(1_000_001, 1_000_000)

    def _any_logit_error(self, head: ExactHead, query: Fraction) -> Fraction:
        """The same for any anchor of a head."""
        product, offset = head.largest("slope") * query, head.largest("offset")
        rounded = (
            self.unit * (4 * product + offset) + head.largest("slope_error") * query + head.largest("offset_error")
        )
        return (rounded + 4 * self.tiny * (1 + head.largest("slope"))) * Fraction(1_000_001, 1_000_000)

    # cells

    def _fits(self, cell: Cell, region: Region, moved: float = 0.0) -> bool:
        """Whether the bound holds on a cell, with all that the dtype may add."""
        factor = expm1(min(region.log_error, 700.0)) * exp(min(region.log_error, 700.0))
        own = cell.error + moved + factor * cell.spread + region.extra
        other = (cell.foreign + region.foreign) * exp(min(2 * region.log_error, 700.0)) + region.extra
        return max(own, other) * UP <= self.limit

    def _refine(self, region: Region) -> list[Cell]:
        accepted: list[Cell] = []
        pending = [(arb(0), ball(region.length))]
        base, slope = ball(region.base), ball(region.slope)
        windows = [tuple([ball(x) for x in part] for part in window.key()) for window in region.windows]
        while pending:
            left, right = pending.pop()
            centre, half = (left + right).mid() / 2, ((right - left) / 2).upper() * arb(1.0000001)
            self.cells += 1
            cell = cell_bound(windows, base, slope, centre, half)
            if self._fits(cell, region):
                accepted.append(cell)
            elif self._hopeless(windows, base, slope, centre, half) or self.cells > MOST_CELLS:
                self._refuse(region, centre, cell)
            else:
                pending += [(left, centre), (centre, right)]
        return accepted

    def _hopeless(self, windows: list, base: arb, slope: arb, centre: arb, half: arb) -> bool:
        """Whether the error at the centre alone is beyond what is left of the bound, or the cell too narrow to cut."""
        value = base - slope * centre + sum((mean_at(window, centre) for window in windows), arb(0))
        return float(abs(value).lower()) > self.limit or float(half.upper()) < 1e-9

    def _refuse(self, region: Region, centre: arb, cell: Cell) -> None:
        s = float(self.middle + self.spacing * region.start) + float(self.spacing) * float(centre.mid())
        raise CertificateError(
            f"the bound {self.certificate.bound:.4g} is not justified: at w·x + t = {s:.8g} the error may be "
            f"{cell.error + self.query_error + region.extra:.4g}"
        )
