"""The drawing of a circuit, at places in inches: lanes of tokens, bands of layers, words beside them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from anchorhead.decimals import counted, shortened
from anchorhead.network import Attention, Linear, Softmax
from anchorhead.network.stream import Kind, Stream
from anchorhead.plotting import style
from anchorhead.plotting.circuit_lanes import Lane, grouped, shares, starts
from anchorhead.plotting.circuit_view import Circuit, Stage, counts_of, features_words, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: dict[Kind, str] = {"input": style.BLUE, "register": style.ORANGE, "state": style.GREEN}
LANES, PITCH = 0.40, 2.0
"""Share of the width that the lanes of tokens have at most, and how far they are apart, in lines of words."""
FEW, LONGEST, SHORT = 6, 5, 2
"""Up to FEW heads of a layer have labels of up to LONGEST lines, more of them of SHORT ones."""
LEAST_DRAWN = 0.02
"""Smaller attention weights are no line."""


class Drawing:
    """Places in inches, from the top left corner; all sizes follow the words, which are `shrink` times smaller."""

    def __init__(self, circuit: Circuit, width: float, shrink: float) -> None:
        self.circuit, self.width = circuit, width
        self.size = style.points(11.5) / shrink  # of words
        self.unit = self.size / 72 * style.LINE  # from line to line, inches
        self.margin = 0.6 * self.unit
        self.left = self.margin + (1.4 if any(stage.repeats for stage in circuit.stages) else 0.4) * self.unit
        self.right = min(LANES * width, self.left + PITCH * self.unit * self._most_lanes())
        self.words_from = self.right + 1.4 * self.unit
        self.room = width - self.margin - self.words_from
        self.patterns = any(stage.patterns is not None for stage in circuit.stages)
        self.pattern_width = min(0.3 * self.room, 8 * self.unit) if self.patterns else 0.0
        network = circuit.network
        known = network.certificate
        bound = f", {known.kind} within {known.bound:.3g}" if known else ""
        heading = f"{counted(len(network.layers), 'layer')}, {counted(network.parameters, 'parameter')}{bound}"
        target = known.target if known else "a network without a certificate"
        inches = width - 2 * self.margin
        self.title = style.wrapped(shortened(target.replace("->", "→"), 160), inches, 1.1 * self.size, style.BOLD_SIGN)
        self.note = style.wrapped(f"{heading}, {network.dtype}; {legend(circuit, self.patterns)}", inches, self.size)
        self.texts = [self._words(stage) for stage in circuit.stages]
        self.height = (len(self.title) * 1.15 + len(self.note) + 1.8) * self.unit + sum(
            self._band(n) for n in range(len(self.texts))
        )

    def _most_lanes(self) -> float:
        """How many lanes there would be with room for all, the gaps between kinds included."""
        counts = [counts_of(stage.leaves, self.circuit.tokens) for stage in self.circuit.stages]
        return max(0.7 * len(one) + sum(3 if count is None else count for count in one.values()) for one in counts)

    def _words(self, stage: Stage) -> list[tuple[list[str], int | None]]:
        """What stands beside a stage: lines, and the number of the head whose pattern stands before them."""
        wrap = style.wrapped
        blocks: list[tuple[list[str], int | None]] = [(wrap(stage.name, self.room, self.size, style.BOLD_SIGN), None)]
        most = LONGEST if len(stage.heads) <= FEW else SHORT
        for head in stage.heads:
            indent = self.pattern_width + 0.6 * self.unit if stage.patterns is not None else 0.6 * self.unit
            lines = wrap(head.label, self.room - indent - self.unit, self.size)
            if len(lines) > most:
                lines = [*lines[: most - 1], lines[most - 1][:-2].rstrip() + "…"]
            blocks.append((lines, head.number))
        if not isinstance(stage.layer, Softmax):
            blocks.append((wrap(features_words(stage.leaves), self.room, 0.9 * self.size), None))
        return blocks

    def _band(self, number: int) -> float:
        """Inches from the top of one stage to that of the next."""
        stage, blocks = self.circuit.stages[number], self.texts[number]
        least = 1.5 if stage.patterns is not None else 1.0
        lines = sum(max(len(lines), least if head is not None else 0) for lines, head in blocks)
        if number == 0:
            return max(lines + 0.7, 1.8) * self.unit
        return (max(lines + 0.9, 3.6) + (1.6 if self._changes(number) else 0)) * self.unit

    def _changes(self, number: int) -> bool:
        """Whether other tokens leave the stage than entered it; the first makes them, after the last they come out."""
        stage = self.circuit.stages[number]
        tokens = self.circuit.tokens
        last = number == len(self.circuit.stages) - 1
        return number == 0 or last or counts_of(stage.enters, tokens) != counts_of(stage.leaves, tokens)

    def draw(self, axes: Axes, width: float, height: float) -> None:
        axes.set_autoscale_on(False)
        axes.set_xlim(0, width)
        axes.set_ylim(-height, 0)
        axes.set_axis_off()
        y = -self.margin
        y = self._text(axes, self.margin, y, self.title, bold=True, size=1.1 * self.size) - 0.15 * self.unit
        y = self._text(axes, self.margin, y, self.note, colour=style.grey()) - 0.9 * self.unit
        spans: dict[tuple[str, int], list[float]] = {}
        for number, stage in enumerate(self.circuit.stages):
            end = y - self._band(number)
            self._stage(axes, number, stage, y, end)
            for one in stage.repeats:
                spans.setdefault(one, [y, end])[1] = end
            y = end
        if self.circuit.left_out:
            words = f"{counted(self.circuit.left_out, 'layer')} before the last four left out"
            self._text(axes, self.margin, y, [words], colour=style.grey())
        for depth, ((_, times), (top, bottom)) in enumerate(spans.items()):
            self._bracket(axes, top, bottom, times, depth)

    def _stage(self, axes: Axes, number: int, stage: Stage, top: float, end: float) -> None:
        changes = self._changes(number)
        rail = end + (0.9 * self.unit if changes else 0)
        lanes = self._lanes(stage.enters)
        if number == 0:
            rail = top - 0.5 * self.unit
            for lane in lanes:
                self._wire(axes, lane, rail, end)
        elif isinstance(stage.layer, Attention):
            for lane in lanes if stage.layer.skip is not None else ():
                self._wire(axes, lane, top, rail)
            self._attention(axes, stage, lanes, top, rail)
        else:
            middle, after = (top + rail) / 2, self._lanes(stage.leaves)
            for lane in lanes:
                self._wire(axes, lane, top, middle)
            for lane in after:
                self._wire(axes, lane, middle, rail)
            across = isinstance(stage.layer, Linear) and stage.layer.across
            self._box(axes, max(lanes, after, key=len), middle, across, "σ" if isinstance(stage.layer, Softmax) else "")
        if changes:
            last = number == len(self.circuit.stages) - 1
            self._chips(axes, self._lanes(stage.leaves), rail, self.circuit.network.output if last else None)
            if not last and number:
                for lane in self._lanes(stage.leaves):
                    self._wire(axes, lane, rail, end)
        self._beside(axes, stage, self.texts[number], top)

    def _beside(self, axes: Axes, stage: Stage, blocks: list[tuple[list[str], int | None]], y: float) -> None:
        for place, (lines, head) in enumerate(blocks):
            if place == 0:
                y = self._text(axes, self.words_from, y, lines, bold=True)
            elif head is None:
                y = self._text(axes, self.words_from, y, lines, colour=style.grey(), size=0.9 * self.size)
            else:
                x, below = self.words_from + 0.3 * self.unit, y - max(len(lines), 1.5) * self.unit
                if stage.patterns is not None:
                    if 0 <= head < len(stage.patterns) and stage.patterns[head].size:
                        self._pattern(axes, stage, stage.patterns[head], x, y)
                    x += self.pattern_width + 0.5 * self.unit
                self._text(axes, x, y, ["•"])
                y = self._text(axes, x + 0.8 * self.unit, y, lines)
                y = min(y, below) if stage.patterns is not None else y

    def _text(
        self, axes: Axes, x: float, y: float, lines: Sequence[str], bold: bool = False, colour: str = "",
        size: float | None = None,
    ) -> float:  # fmt: skip
        """Writes lines from y on, and returns where the next ones go."""
        size = size or self.size
        for line in lines:
            axes.text(
                x, y, line, va="top", ha="left", fontsize=size, fontweight="bold" if bold else "normal",
                color=colour or style.ink(), parse_math=False,
            )  # fmt: skip
            y -= self.unit * size / self.size
        return y

    def _lanes(self, stream: Stream) -> list[Lane]:
        """Lanes at even distances, the kinds a little apart; many tokens of a kind share one in the middle."""
        counts = counts_of(stream, self.circuit.tokens)
        most = max(4, int((self.right - self.left) / (1.05 * self.unit)) // len(counts))
        groups = [lane for kind, count in counts.items() for lane in grouped(kind, count, most)]
        gaps = [0.7 * (one.kind != other.kind) for one, other in pairwise(groups)]
        total = len(groups) - 1 + sum(gaps)
        pitch = min(PITCH * self.unit, (self.right - self.left - self.unit) / max(total, 1))
        x, found = self.left + 0.5 * self.unit, []
        for lane, gap in zip(groups, [*gaps, 0.0], strict=True):
            found.append(Lane(lane.kind, lane.first, lane.last, lane.label, x))
            x += pitch * (1 + gap)
        return found

    def _chips(self, axes: Axes, lanes: list[Lane], y: float, output: Kind | None = None) -> None:
        for lane in lanes:
            shown = output in (None, lane.kind)
            if lane.last > lane.first or lane.last < 0:
                mark = "⋯"
                axes.text(lane.x, y, mark, ha="center", va="center", fontsize=self.size, color=COLOURS[lane.kind])
                continue
            axes.plot(
                lane.x, y, "o", markersize=1.25 * self.size, color=COLOURS[lane.kind],
                markerfacecolor=COLOURS[lane.kind] if shown else style.paper(), zorder=3,
                markeredgewidth=0.08 * self.size,
            )  # fmt: skip
            colour = "white" if shown else COLOURS[lane.kind]
            axes.text(
                lane.x, y, lane.label, ha="center", va="center_baseline", fontsize=0.68 * self.size, color=colour,
                fontweight="bold", zorder=4,
            )  # fmt: skip

    def _wire(self, axes: Axes, lane: Lane, top: float, bottom: float) -> None:
        dotted = lane.last != lane.first
        axes.plot(
            [lane.x, lane.x], [top, bottom], color=COLOURS[lane.kind], alpha=0.45, linewidth=0.11 * self.size,
            linestyle=":" if dotted else "-", zorder=1,
        )  # fmt: skip

    def _box(self, axes: Axes, lanes: list[Lane], y: float, across: bool, sign: str) -> None:
        """A map on every token, or one bar that mixes them."""
        from matplotlib.patches import Rectangle

        half, groups = 0.32 * self.unit, [[lane] for lane in lanes]
        for group in [lanes] if across else groups:
            start, end = group[0].x - half, group[-1].x + half
            look = {"facecolor": style.paper(), "edgecolor": style.grey(), "linewidth": 0.1 * self.size, "zorder": 3}
            axes.add_patch(Rectangle((start, y - half), end - start, 2 * half, **look))
            if sign:
                axes.text(
                    group[0].x, y, sign, ha="center", va="center_baseline", fontsize=0.7 * self.size, zorder=4,
                    color=style.ink(),
                )  # fmt: skip

    def _attention(self, axes: Axes, stage: Stage, lanes: list[Lane], top: float, bottom: float) -> None:
        """A line from each token that is seen, above, to each that asks, below: dark where a head gives much weight."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        weights = shares(stage, lanes, self.circuit.tokens)
        arrive = bottom + 0.55 * self.unit
        for (a, b), weight in weights.items():
            if weight < LEAST_DRAWN:
                continue
            start, end = (lanes[b].x, top), (lanes[a].x, arrive)
            bend = 0.5 * (top - arrive)
            path = Path([start, (start[0], top - bend), (end[0], arrive + bend), end], [1, 4, 4, 4])
            width = 0.1 * self.size * (0.6 + 1.6 * weight if stage.patterns is not None else 1.0)
            look = {"edgecolor": style.ink(), "alpha": 0.12 + 0.75 * weight, "linewidth": width}
            axes.add_patch(PathPatch(path, fill=False, zorder=2, **look))
        asking = [lane for lane in lanes if lane.kind in stage.asks]
        for lane in asking:
            axes.plot(lane.x, arrive, "v", color=style.ink(), markersize=0.5 * self.size, zorder=3)
            self._wire(axes, lane, arrive, bottom)

    def _pattern(self, axes: Axes, stage: Stage, weights: np.ndarray, x: float, y: float) -> None:
        """Rows: tokens that ask; columns: tokens that are seen; dark: much weight. Edges have the kinds' colours."""
        height, width, edge = 1.2 * self.unit, self.pattern_width, 0.22 * self.size
        extent = (x, x + width, y - height, y)
        look = {"cmap": style.weights_map(), "vmin": 0, "vmax": 1, "interpolation": "nearest"}
        axes.imshow(weights, aspect="auto", extent=extent, zorder=2, **look)
        counts = counts_of(stage.enters, self.circuit.tokens)
        rows, columns = (
            starts(counts, kinds, total) for kinds, total in zip((stage.asks, stage.sees), weights.shape, strict=True)
        )
        for kind, first, last in rows:
            ends = [y - height * first / len(weights), y - height * last / len(weights)]
            axes.plot([x, x], ends, color=COLOURS[kind], linewidth=edge, solid_capstyle="butt", zorder=3)
        for kind, first, last in columns:
            ends = [x + width * first / weights.shape[1], x + width * last / weights.shape[1]]
            axes.plot(ends, [y - height] * 2, color=COLOURS[kind], linewidth=edge, solid_capstyle="butt", zorder=3)

    def _bracket(self, axes: Axes, top: float, bottom: float, times: int, depth: int) -> None:
        x = self.margin + (0.35 + 0.45 * depth) * self.unit
        arm = 0.3 * self.unit
        inset = 0.25 * self.unit
        axes.plot(
            [x + arm, x, x, x + arm], [top - inset, top - inset, bottom + inset, bottom + inset], color=style.grey(),
            linewidth=0.1 * self.size,
        )  # fmt: skip
        axes.text(
            x - 0.1 * self.unit, (top + bottom) / 2, f"{times:,} times", rotation=90, ha="right", va="center",
            fontsize=0.85 * self.size, color=style.grey(),
        )  # fmt: skip
