"""Makes the small networks that the playground opens: `python -m tools.make_play_examples`.

Each is written to src/anchorhead/play/examples, with a list of their titles and of the calls that make them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import anchorhead as ah
from anchorhead import incontext
from anchorhead.disk import write_atomically
from anchorhead.network import Network

FOLDER = Path("src/anchorhead/play/examples")
BOX = {"x": (-1, 1), "y": (-1, 1)}
PRODUCT = """net = ah.approximate(
    [["x[0,0]*x[1,0]"], ["max(x[0,0], x[1,0])"]], tokens=2, features=1, on=(0, 1), within=1e-3
)"""
LEARNER = """net = incontext.gradient_descent(
    steps=20, rate=0.5, features=1, intercept=True, on=(-1, 1), labels=(-1, 1)
)"""
LOGISTIC = 'net = incontext.gradient_descent("logistic", steps=60, rate=1.0, features=1, intercept=True, on=(-1, 1))'
EXAMPLES: dict[str, tuple[str, str, Callable[[], Network]]] = {
    "gelu": (
        "GELU as one head",
        'net = ah.head("gelu", on=(-10, 10), within=1e-4).network',
        lambda: ah.head("gelu", on=(-10, 10), within=1e-4).network,
    ),
    "truncated-line": (
        "A truncated line by three heads",
        "net = ah.truncated_linear(np.ones((6, 1)), np.zeros(6), -1, 1, heads=3, on=(-2, 2))",
        lambda: ah.truncated_linear(np.ones((6, 1)), np.zeros(6), -1, 1, heads=3, on=(-2, 2)),
    ),
    "two-variables": (
        "A function of two variables on a grid",
        'net = ah.approximate("sin(3*x)*cos(2*y) + exp(x*y)", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-2)',
        lambda: ah.approximate("sin(3*x)*cos(2*y) + exp(x*y)", on=BOX, within=1e-2),
    ),
    "product-and-maximum": (
        "Two tokens: their product and their maximum",
        PRODUCT,
        lambda: ah.approximate(
            [["x[0,0]*x[1,0]"], ["max(x[0,0], x[1,0])"]], tokens=2, features=1, on=(0, 1), within=1e-3
        ),
    ),
    "learner": (
        "A learner: gradient descent in context",
        LEARNER,
        lambda: incontext.gradient_descent(steps=20, rate=0.5, features=1, intercept=True, on=(-1, 1), labels=(-1, 1)),
    ),
    "logistic-learner": (
        "A learner: logistic regression in context",
        LOGISTIC,
        lambda: incontext.gradient_descent("logistic", steps=60, rate=1.0, features=1, intercept=True, on=(-1, 1)),
    ),
}
"""By name: a title, the call in words, the call."""


def main() -> None:
    for name, (_, _, make) in EXAMPLES.items():
        make().save(FOLDER / f"{name}.safetensors")
    listed = [{"name": name, "title": title, "code": code} for name, (title, code, _) in EXAMPLES.items()]
    write_atomically(FOLDER / "examples.json", (json.dumps(listed, indent=2) + "\n").encode())
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.stat().st_size:6,} bytes  {file.name}")


if __name__ == "__main__":
    main()
