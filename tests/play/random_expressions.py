"""Random texts in x, for the two parsers to agree on."""

from __future__ import annotations

import random

from anchorhead.language.targets import NAMED

_ANYWHERE = [name for name, one in NAMED.items() if name not in ("log", "log1p", "sqrt", "reciprocal", "clip", "tan")]
_SIGNS = [*"+-*/()<>=,.0123456789xe ^[]", "**", "sin", "where(", "pi", "max(", "if", "\t"]


def expression(rng: random.Random, depth: int = 4) -> str:
    """A text that means something wherever x is a real number, mostly."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["x", "x", "pi", "e", f"{rng.uniform(0, 3):.3g}", str(rng.randint(0, 4)), ".5", "2e-1"])

    def one() -> str:
        return expression(rng, depth - 1)

    forms = [
        lambda: f"{one()} + {one()}",
        lambda: f"{one()} - {one()}",
        lambda: f"{one()}*{one()}",
        lambda: f"{one()}/(1 + square({one()}))",
        lambda: f"-{one()}",
        lambda: f"+({one()})",
        lambda: f"({one()})**{rng.randint(0, 3)}",
        lambda: f"{one()}**2",
        lambda: f"2**-tanh({one()})",
        lambda: f"(1 + abs({one()}))**-0.5",
        lambda: f"max({one()}, {one()}, {one()})",
        lambda: f"min({one()},{one()})",
        lambda: f"where({one()} {rng.choice(['<', '<=', '>', '>='])} {one()}, {one()}, {one()})",
        lambda: f"{rng.choice(_ANYWHERE)}(sin({one()}))",
        lambda: f"{rng.choice(_ANYWHERE)}({one()})",
        lambda: f"log(1 + abs({one()}))",
        lambda: f"sqrt(abs({one()}))",
        lambda: f"clip({one()}, -1, {rng.randint(0, 3)})",
        lambda: f"elu({one()}, {rng.uniform(0.1, 2):.3g})",
    ]
    return rng.choice(forms)()


def mutated(rng: random.Random, text: str) -> str:
    """A text with a few things put in, left out or said twice."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + rng.choice(_SIGNS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + 1 :]
        else:
            text = text[:at] + text[max(0, at - 2) :]
    return text
