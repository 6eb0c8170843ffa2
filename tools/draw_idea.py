"""Draws docs/images/idea.svg: how a query, keys, values and softmax make a function of one variable.

Every number in the drawing is computed: five anchors L_k on [-1, 1] with c = 2, logits 2 beta L_k s - beta L_k^2, their
softmax at s = 0.3, and the same along s. The drawing brings its own background and has colours for dark pages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

TARGET = Path("docs/images/idea.svg")
ANCHORS, SHARPNESS, QUERY = np.linspace(-1, 1, 5), 2 / 0.5**2, 0.3
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
STYLE = """
  .card { fill: #ffffff; stroke: #c8c8c8 } .box { fill: #f3f5f7; stroke: #8a8f98 }
  text { fill: #1b1f24; font: 15px sans-serif } .small { font-size: 13px; fill: #57606a } .bold { font-weight: bold }
  .line { stroke: #57606a; fill: none } .target { stroke: #c4c8ce; stroke-width: 7; fill: none }
  .head { stroke: #1b1f24; stroke-width: 2.2; fill: none }
  @media (prefers-color-scheme: dark) {
    .card { fill: #161b22; stroke: #3d444d } .box { fill: #21262d; stroke: #7d8590 }
    text { fill: #e6edf3 } .small { fill: #9da7b3 } .line { stroke: #9da7b3 } .target { stroke: #484f58 }
    .head { stroke: #e6edf3 }
  }
"""


def weights(s: np.ndarray) -> np.ndarray:
    """softmax_k(2 beta L_k s - beta L_k^2), a row for every s."""
    logits = 2 * SHARPNESS * np.multiply.outer(s, ANCHORS) - SHARPNESS * ANCHORS**2
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{content}</text>'


def curve(xs: np.ndarray, ys: np.ndarray, kind: str, colour: str = "") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    style = f' stroke="{colour}" stroke-width="2.2" fill="none"' if colour else ""
    return f'<polyline class="{kind}"{style} points="{points}"/>'


def one_query() -> list[str]:
    """Left: a query, five anchors with key, weight and value, and what comes out."""
    found = weights(np.array([QUERY]))[0]
    parts = [
        text(28, 40, "One query", "bold"),
        '<rect class="box" x="28" y="120" width="104" height="104" rx="8"/>',
        text(80, 152, "query", "bold", "middle"),
        text(80, 178, "[s, 1]", "", "middle"),
        text(80, 204, f"s = {QUERY:g}", "small", "middle"),
        text(80, 246, "s = w·x + t", "small", "middle"),
        text(252, 64, "key [α, γ]", "small", "middle"),
        text(392, 64, "weight = softmax(α s + γ)", "small", "middle"),
        text(522, 64, "value", "small", "middle"),
    ]
    for k, (place, weight, colour) in enumerate(zip(ANCHORS, found, COLOURS, strict=True)):
        y = 94 + 42 * k
        slope, offset = 2 * SHARPNESS * place, -SHARPNESS * place**2
        parts += [
            f'<path class="line" d="M134 172 L186 {y - 5}" opacity="{0.25 + 0.75 * weight:.2f}"/>',
            f'<rect class="box" x="188" y="{y - 22}" width="128" height="32" rx="6"/>',
            f'<circle cx="204" cy="{y - 6}" r="6" fill="{colour}"/>',
            text(262, y, f"[{slope:g}, {offset + 0.0:g}]".replace("-", "−"), "", "middle"),
            f'<rect x="330" y="{y - 18}" width="{max(1.5, 120 * weight):.1f}" height="24" rx="3" fill="{colour}"/>',
            text(336 + max(1.5, 120 * weight), y, f"{weight:.3f}", "small"),
            text(522, y, f"{place:g}".replace("-", "−"), "", "middle"),
        ]
    parts += [
        text(28, 316, f"output = Σ weight · value = {found @ ANCHORS:.3f}", "bold"),
        text(28, 338, "An anchor is one key with its value. Softmax picks the anchors nearest to s.", "small"),
    ]
    return parts


def all_queries() -> list[str]:
    """Right: the same head for every s. Weights hand over from anchor to anchor, and the output is a function."""
    s = np.linspace(-1.6, 1.6, 241)
    table = weights(s)
    xs = 610 + (s + 1.6) * 110
    parts = [text(610, 40, "Every query", "bold"), text(962, 64, "output", "small", "end")]
    parts += [
        curve(xs, 130 - 52 * np.clip(s, -1, 1), "target"),
        curve(xs, 130 - 52 * table @ ANCHORS, "head"),
        '<path class="line" d="M610 200 H962 M610 290 H962" opacity="0.5"/>',
        text(962, 214, "weights", "small", "end"),
    ]
    parts += [curve(xs, 290 - 64 * table[:, k], "", colour) for k, colour in enumerate(COLOURS)]
    at = 610 + (QUERY + 1.6) * 110
    parts += [
        f'<path class="line" d="M{at:g} 76 V290" stroke-dasharray="4 4"/>',
        text(at, 306, "s = 0.3", "small", "middle"),
        text(610, 338, "Thick: s cut off at −1 and 1. Thin: the head, within 0.06 of it.", "small"),
    ]
    return parts


def main() -> None:
    s = np.linspace(-5, 5, 100001)
    error = np.abs(weights(s) @ ANCHORS - np.clip(s, -1, 1)).max()
    if not error < 0.06:
        raise SystemExit(f"the drawing says within 0.06, and it is {error:.3f}")
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 990 360" role="img">',
        "<title>A query meets the keys of five anchors; softmax weighs their values, and the sum is the output</title>",
        f"<style>{STYLE}</style>",
        '<rect class="card" x="1" y="1" width="988" height="358" rx="12"/>',
        *one_query(),
        '<path class="line" d="M584 30 V340" opacity="0.4"/>',
        *all_queries(),
        "</svg>",
    ]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
