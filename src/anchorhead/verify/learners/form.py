"""Which form a link has: seen by how its expression is put together.

    residual   g(s, y) = phi(s - y)      labelled   g(s, y) = phi(s) - y      margin   g(s, y) = y phi(y s), y = 1, -1
    both       g(s, y) = phi(s, y)

phi is g with x in the place of s - y (or y s) wherever these stand in a sum (or product), and without what the whole
adds (or is multiplied by); there must be no other s and y in it. For a margin, examples are shown as y a, and then
mean a g(w . a, y) = mean (y a) phi(w . (y a)).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression

JOINED = {"residual": ("add", "s", "-y"), "margin": ("mul", "s", "y")}
"""By form, what stands for x: a sum or a product of these."""
WHOLE = {"labelled": ("add", "-y"), "margin": ("mul", "y")}
"""By form, what the whole is a sum or a product with."""
MAX_BITS = 2**15
Line = tuple[Fraction, Fraction]
Node = tuple[str, Any, tuple[int, ...]]


def phi_of(g: Expression, form: str, y: str = "y") -> Expression | None:
    """phi, where g has this form in s and y."""
    nodes: list[Node] = [("variable", "x", ())]
    where: list[int] = []
    called: list[str | None] = []
    for place, (op, data, args) in enumerate(g.nodes):
        rest, minus = list(args), "-y" if op == "neg" and called[args[0]] == "y" else None
        called.append({"s": "s", y: "y"}.get(data) if op == "variable" else minus)
        whole, joined = WHOLE.get(form, ("",)), JOINED.get(form, ("",))
        if place == len(g.nodes) - 1 and form in WHOLE and (op != whole[0] or not _without(rest, called, whole[1:])):
            return None
        found = [0] if op == joined[0] and _without(rest, called, joined[1:]) else []
        found += [where[one] for one in rest]
        if called[-1] == "s" and form in ("labelled", "both"):
            found = [0]
        if len(found) == 1 and (len(args) > 1 or called[-1] == "s"):
            where.append(found[0])
            continue
        nodes.append((op, data, tuple(found)))
        where.append(len(nodes) - 1)
    phi = Expression.of(tuple(nodes)).part(where[-1])
    return phi if set(phi.variables) <= {"x", *(["y"] if form == "both" else [])} else None


def _without(args: list[int], called: Sequence[str | None], names: Sequence[str]) -> bool:
    """Takes arguments off that are called so, one for each name, if they are all there."""
    found = [next((one for one in args if called[one] == name), None) for name in names]
    for one in found if None not in found else ():
        args.remove(one)  # type: ignore[arg-type]
    return None not in found


def by_flag(g: Expression, flags: Sequence[str]) -> list[Expression]:
    """The link of rows that have one of the flags, for each: g is a sum of products of a flag and a link, less b."""
    op, _, terms = g.nodes[-1]
    less = g.part(terms[-1]).nodes if op == "add" and len(terms) == 1 + len(flags) else ()
    require(less == (("variable", "b", ()), ("neg", None, (0,))), "a link is not a sum of those of flags, less b")
    found = []
    for flag, term in zip(flags, terms, strict=False):
        kind, _, (first, *rest) = g.nodes[term] if g.nodes[term][2] else ("", None, (term,))
        good = kind == "mul" and bool(rest) and g.nodes[first] == ("variable", flag, ())
        require(good, "a link is not a product with its flag")
        product = ("mul", None, tuple(rest)) if len(rest) > 1 else g.nodes[rest[0]]
        found.append(Expression.of((*g.nodes[:term], product)).part(-1))
    return found


def line_of(phi: Expression) -> Line | None:
    """Slope and constant, where phi is seen to be a line in x that rises."""
    found: list[Line | None] = []
    for op, data, places in phi.nodes:
        known = [found[place] for place in places]
        made = _line(op, data, [one for one in known if one is not None]) if None not in known else None
        bits = [value.numerator.bit_length() + value.denominator.bit_length() for value in made or ()]
        found.append(made if max(bits, default=0) < MAX_BITS else None)
    line = found[-1]
    return line if line is not None and line[0] > 0 else None


def _line(op: str, data: object, known: list[Line]) -> Line | None:
    match op:
        case "number" if isinstance(data, float):
            return Fraction(0), Fraction(data)
        case "variable" if data == "x":
            return Fraction(1), Fraction(0)
        case "neg":
            return -known[0][0], -known[0][1]
        case "add":
            return sum((a for a, _ in known), Fraction(0)), sum((b for _, b in known), Fraction(0))
        case "mul" if sum(a != 0 for a, _ in known) <= 1:
            steep = prod((a or b for a, b in known), start=Fraction(1)) if any(a for a, _ in known) else Fraction(0)
            return steep, prod((b for _, b in known), start=Fraction(1))
        case "div" if not known[1][0] and known[1][1]:
            return known[0][0] / known[1][1], known[0][1] / known[1][1]
    return None
