"""Draws docs/images/trust.svg: what stands behind the word "proven", in four layers, with counts from the tables.

Proven by us: the heads that ship (heads.table, self_key_table, gate_table). Verified: the rows of the tests' table of
networks that are proven. Machine-checked: benchmarks/coq.csv. Exhausted: benchmarks/exhausted.csv. The drawing brings
its own background and has colours for dark pages.

    python -m tools.draw_trust
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anchorhead.heads.tables.gate_table import all_gates
from anchorhead.heads.tables.self_key_table import self_key_frontiers
from anchorhead.heads.tables.table import frontiers
from tests.networks import names
from tools import coq
from tools.draw_idea import STYLE, text
from tools.exhaust import table as exhausted

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "images" / "trust.svg"
EXHAUSTED = ROOT / "benchmarks" / "exhausted.csv"
WIDTH, TOP, STEP, HEIGHT = 990, 78, 84, 70


@dataclass(frozen=True)
class Layer:
    """A bar of the drawing: what is shown of what, how much of it there is, and what it shares with the rest."""

    title: str
    what: str
    counted: str
    shares: str
    trusts: str
    colour: str
    width: int


def layers() -> list[Layer]:
    shipped = [
        head for every in (frontiers(), self_key_frontiers(), all_gates()) for one in every for head in one.heads
    ]
    heads = [row for row in coq.read() if row.accepted]
    computed = sum(row.computed for row in heads)
    expressions = {case.function for case in coq.EXPRESSIONS}
    functions = {row.function for row in heads}
    composed = len(functions & expressions)
    tried = [row for row in exhausted.read(EXHAUSTED) if row.complete]
    single = len({row.key[:5] for row in tried})
    evaluations = sum(row.evaluations for row in tried)
    violations = sum(int(row.violations) for row in tried)
    return [
        Layer(
            "Proven by us",
            "every network, when it is built: approximation and rounding, for all inputs",
            f"{len(shipped):,} heads in the tables alone",
            "the prover: everything",
            "our code, Arb, numpy",
            "#0072B2",
            600,
        ),
        Layer(
            "Verified",
            "any saved file, from its weights and its program",
            f"{len(names('proven'))} networks of every construction in the tests",
            "nothing but the file",
            "the verifier, Arb, numpy",
            "#009E73",
            550,
        ),
        Layer(
            "Machine-checked by Coq",
            "heads as theorems, and the paper's theorems for all sizes",
            f"{len(heads)} heads of {len(functions) - composed} functions and {composed} expressions, "
            f"{computed} as they are computed",
            "nothing but the numbers",
            "Coq's kernel",
            "#E69F00",
            500,
        ),
        Layer(
            "Exhausted",
            "every float32 there is, through the heads that ship",
            f"{single} heads, {evaluations / 1e12:.2f} · 10¹² evaluations, {violations} violations",
            "no proof at all",
            "the machine that ran them",
            "#D55E00",
            450,
        ),
    ]


def drawing() -> str:
    """The whole file."""
    found = layers()
    height = TOP + STEP * len(found) + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Four layers behind a bound: proven by us, verified, machine-checked by Coq, exhausted</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="12"/>',
        text(28, 40, "What stands behind a bound", "bold"),
        text(28, 62, "Wide: says something about more networks. Further down: shares less with us.", "small"),
        text(650, 62, "shares with the rest", "small"),
        text(806, 62, "you trust", "small"),
    ]
    for number, layer in enumerate(found):
        y = TOP + STEP * number
        parts += [
            f'<rect class="box" x="28" y="{y}" width="{layer.width}" height="{HEIGHT}" rx="8"/>',
            f'<rect x="28" y="{y}" width="8" height="{HEIGHT}" rx="4" fill="{layer.colour}"/>',
            text(50, y + 24, layer.title, "bold"),
            text(50, y + 43, layer.what, "small"),
            text(50, y + 61, layer.counted, "small"),
            f'<path class="line" d="M{28 + layer.width} {y + 35} H640" stroke-dasharray="4 4" opacity="0.5"/>',
            text(650, y + 40, layer.shares, "small"),
            text(806, y + 40, layer.trusts, "small"),
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    TARGET.write_text(drawing())
    print(TARGET)


if __name__ == "__main__":
    main()
