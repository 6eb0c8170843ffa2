"""What is known of a converted model: a line for each layer, proofs, and what the whole changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchorhead.as_html import block, table
from anchorhead.certificate import EVALUATIONS, Certificate
from anchorhead.decimals import counted, round_up
from anchorhead.disk import path_of, require_model_folder, write_atomically

REPORT = "attention_only_report.json"


@dataclass(frozen=True)
class LayerReport:
    """One feed-forward sublayer as attention.

    name        of the transformer layer
    neurons     of the feed-forward sublayer; as many heads, twice as many if it is gated
    activation  what stood there
    anchors     of a head: registers, and the token itself
    low, high   every input of the norm in front gives pre-activations between these
    relative    the heads' error is at most this times max(1, |s|) (gated: times max(1, |g|) |u|)
    certificate of the layer's output: |computed - exact feed-forward|, for every input of the norm in front, whichever
                of certificate.evaluations its heads are computed by: "plain", "direct", "powers" (paths of `attend.py`)
    measured    the largest such error on `samples` inputs
    before      numbers stored for the feed-forward sublayer
    after       numbers stored for the attention layer
    """

    name: str
    neurons: int
    heads: int
    activation: str
    anchors: int
    low: float
    high: float
    relative: float
    certificate: Certificate
    measured: float
    samples: int
    before: int
    after: int

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "certificate": self.certificate.to_json()}


@dataclass(frozen=True)
class Change:
    """How far the whole model's outputs moved, measured.

    inputs    in words
    output    which of the model's outputs
    largest   change of an entry
    scale     largest entry of the original's output
    cosine    the least, between an original and a converted vector of the last axis
    """

    inputs: str
    output: str
    largest: float
    scale: float
    cosine: float

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        return (
            f"{self.output} on {self.inputs}: an entry changes by at most {self.largest:.2g} (the largest entry is "
            f"{self.scale:.3g}), least cosine {self.cosine:.9f}"
        )


@dataclass(frozen=True)
class AttentionOnlyReport:
    """What `attention_only` made of a model: `print(report)` is a table.

    model       the original's class
    dtype       in which the model computes
    within      asked for: the error of each activation relative to max(1, |s|)
    kind        "proven", or "measured" for dtypes that are not certified
    left_alone  activations outside of feed-forward sublayers (poolers, prediction heads), which stay as they are
    changes     end to end, measured

    `report.save(folder)` puts it beside the model that was saved there, where `ah.check(folder)` reads what is stated.
    """

    model: str
    dtype: str
    within: float
    kind: str
    layers: tuple[LayerReport, ...]
    left_alone: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def evaluations(self) -> tuple[str, ...]:
        """The ways to compute heads that the certificates of all layers cover; each names its own."""
        stated = [layer.certificate.evaluations for layer in self.layers]
        return tuple(one for one in EVALUATIONS if all(one in some for some in stated))

    @property
    def before(self) -> int:
        return sum(layer.before for layer in self.layers)

    @property
    def after(self) -> int:
        return sum(layer.after for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for json.dumps."""
        return {
            **vars(self),
            "layers": [layer.to_json() for layer in self.layers],
            "left_alone": list(self.left_alone),
            "changes": [change.to_json() for change in self.changes],
        }

    def save(self, folder: str | Path) -> None:
        """Writes the report into the folder that model.save_pretrained(folder) wrote: ah.check(folder) reads it there.

        What it states is checked against the weights in the folder: of a model that was trained on, or of another, it
        does not follow.
        """
        where = path_of(folder)
        require_model_folder(where)
        write_atomically(where / REPORT, (json.dumps(self.to_json(), indent=1) + "\n").encode())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Column heads, and a row a layer."""
        heads = ["layer", "neurons", "anchors", "range", "activation", "output", "measured", "numbers"]
        rows = [
            [
                layer.name,
                f"{layer.neurons:,} {layer.activation}",
                f"{layer.anchors}" + (" in 2 heads" if layer.heads > layer.neurons else ""),
                f"[{layer.low:.3g}, {layer.high:.3g}]",
                f"{round_up(layer.relative, 2):.1e}",
                _outputs(layer.certificate),
                f"{layer.measured:.1e}",
                f"{layer.before:,} + {layer.after - layer.before:,}",
            ]
            for layer in self.layers
        ]
        return heads, rows

    def __str__(self) -> str:
        heads, rows = self.table()
        title, *below = self._lines()
        return "\n".join([title, *_aligned([heads, *rows]), *below])

    def _repr_html_(self) -> str:
        title, *below = self._lines()
        return block(title, table(*self.table()), *below, kind=self.kind)

    def _lines(self) -> list[str]:
        """A title, and what to know of the table."""
        replaced = counted(len(self.layers), "feed-forward sublayer")
        relative = "max(1, |g|) |u|" if any(layer.heads > layer.neurons for layer in self.layers) else "max(1, |s|)"
        where = (
            "for every input of the norm in front: by the heads, and with the rounding of the linear maps"
            if self.kind == "proven"
            else "on samples"
        )
        lines = [
            f"{self.model} as attention only, in {self.dtype}: {replaced} replaced",
            f"activation: proven error of a head relative to {relative}, rounding included (asked: {self.within:.2g})",
            f"output: {self.kind} error of a layer's largest output entry, {where}",
            f"evaluations that this holds for: {', '.join(self.evaluations)}",
            *(f"measured: {change}" for change in self.changes),
        ]
        if self.left_alone:
            lines.append(f"outside of feed-forward sublayers, and as they were: {', '.join(self.left_alone)}")
        return lines


def _outputs(certificate: Certificate) -> str:
    """The bound; where it is proven, what the heads alone add to it before it."""
    bound = f"{round_up(certificate.bound, 2):.1e}"
    heads = certificate.term("error", of="heads")
    return bound if heads is None else f"{round_up(heads.amount, 2):.1e}, {bound}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
