"""One segment of an interval: every switch of its expressions resolved, or a place where it must be cut.

Switches (abs, min, max, where) are resolved from the inside out. The argument u of a switch (a - b for max(a,
b)) is analytic where its own switches are resolved; between its zeros its sign is that at the midpoint.
Nothing of a branch that is not taken is looked at. On the way, divisors must not vanish, logarithms need
positive and roots nonnegative arguments on the closed segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flint import arb

from anchorhead.errors import AnchorheadError, NotDefined
from anchorhead.language.analysis.zeros import Budget, hull, sign, zeros
from anchorhead.language.expressions.build import ONE, ZERO, add, integer_power, make, neg
from anchorhead.language.expressions.calculus import difference, plus, times
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.positive import surely_positive

_GENERIC = (0.2371832, 0.6180339, 0.8713271)


@dataclass
class Segment:
    left: arb
    right: arb
    signs: dict[Expression, int] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()
    singular: list[arb] = field(default_factory=list)

    @property
    def hull(self) -> arb:
        return self.left.union(self.right)

    @property
    def middle(self) -> arb:
        return ((self.left.mid() + self.right.mid()) / 2).mid()


class Cut(Exception):
    """The argument u of a switch has zeros inside the segment."""

    def __init__(self, u: Expression, at: list[arb]) -> None:
        self.u, self.at = u, at


class Resolver:
    """Every expression of one segment without its switches; raises Cut where one changes inside."""

    def __init__(self, name: str, segment: Segment, budget: Budget) -> None:
        self.name, self.segment, self.budget = name, segment, budget
        self.done: dict[Expression, Expression] = {}

    def resolve(self, root: Expression) -> Expression:
        stack = [root]
        while stack:
            node = stack[-1]
            needed = node.args
            if node.op == "where" and node not in self.done:  # the comparison first, then the branch it takes
                needed = node.args[:2]
                if all(arg in self.done for arg in needed):
                    needed = (*needed, self.branch(node))
            waiting = [arg for arg in reversed(needed) if arg not in self.done]
            if waiting and node not in self.done:
                stack.extend(waiting)
                continue
            if node not in self.done:
                self.done[node] = self.done[needed[-1]] if node.op == "where" else self.build(node)
            stack.pop()
        return self.done[root]

    def branch(self, node: Expression) -> Expression:
        a, b, then, other = node.args
        order = self.sign(difference(self.done[a], self.done[b]))
        return then if order < 0 or (order == 0 and node.data == "<=") else other

    def build(self, node: Expression) -> Expression:
        args = tuple(self.done[arg] for arg in node.args)
        match node.op:
            case "add":
                return plus(*args)
            case "mul":
                return times(*args)
            case "abs":
                return args[0] if self.sign(args[0]) >= 0 else neg(args[0])
            case "min" | "max":
                best = args[0]
                for arg in args[1:]:
                    order = self.sign(difference(best, arg))
                    best = best if (order >= 0) == (node.op == "max") else arg
                return best
            case "div":
                self.need_clear(args[1], node, "its divisor is 0")
                if args[0] is ZERO:
                    return ZERO
            case "integer_power" if int(node.data or 0) < 0:
                self.need_clear(args[0], node, "its base is 0")
            case "log":
                self.need_positive(args[0], node)
            case "log1p":
                self.need_positive(add(ONE, args[0]), node)
            case "sqrt" if args[0].op == "integer_power" and int(args[0].data or 1) % 2 == 0:
                return self.root_of_square(args[0].args[0], int(args[0].data or 0) // 2)
            case "sqrt":
                self.need_nonnegative(args[0], node)
            case "power" if args[0].variables:
                if args[1].ball({}) > 0:
                    self.need_nonnegative(args[0], node)
                else:
                    self.need_positive(args[0], node)
        return node if args == node.args else make(node.op, args, node.data)

    def root_of_square(self, base: Expression, half: int) -> Expression:
        """sqrt(base**(2 half)) = |base**half|, which stays analytic on either side of a zero of the base."""
        if half < 0:
            self.need_clear(base, base, "it is 0 under a root")
        root = base if half == 1 else integer_power(base, half)
        return neg(root) if half % 2 and self.sign(base) < 0 else root

    def sign(self, u: Expression) -> int:
        """The sign of u inside the segment (0: it vanishes throughout); raises Cut if it may vanish there."""
        if u in self.segment.signs:
            return self.segment.signs[u]
        quick = 1 if surely_positive(u) else sign(u.ball({self.name: self.segment.hull}))
        if quick is None:
            form = u.affine()
            quick = 0 if form is not None and not form[0] and form[1].is_zero() else self.search(u)
        self.segment.signs[u] = quick
        return quick

    def search(self, u: Expression) -> int:
        segment, inside = self.segment, []
        width = segment.right.mid() - segment.left.mid()
        points = [segment.left.mid() + width * fraction for fraction in _GENERIC]
        if all(u.ball({self.name: point}).contains(0) for point in points):
            raise undecided(u, self.name, segment.middle)
        for zero in self.zeros(u):
            if zero.overlaps(segment.left):
                segment.left = hull(segment.left, zero)
            elif zero.overlaps(segment.right):
                segment.right = hull(segment.right, zero)
            elif zero > segment.left and zero < segment.right:
                inside.append(zero)
        if inside:
            raise Cut(u, inside)
        decided = sign(u.ball({self.name: segment.middle}))
        if decided is None:
            raise undecided(u, self.name, segment.middle)
        return decided

    def zeros(self, u: Expression) -> list[arb]:
        if not u.variables:
            raise undecided(u, self.name, self.segment.middle)
        low, high = self.segment.left.lower(), self.segment.right.upper()
        return zeros(u, self.name, low, high, self.budget)

    def need_clear(self, u: Expression, node: Expression, why: str) -> None:
        if not surely_positive(u) and not sign(u.ball({self.name: self.segment.hull})):
            places = self.zeros(u) if u.variables else [self.segment.left]
            if places:
                raise self.undefined(node, places[0], why)

    def need_positive(self, u: Expression, node: Expression) -> None:
        self.need_clear(u, node, "its argument is 0")
        if self.sign(u) < 0:
            raise self.negative(node)

    def need_nonnegative(self, u: Expression, node: Expression) -> None:
        if not u.variables and u.ball({}) >= 0:
            return
        if self.sign(u) < 0:
            raise self.negative(node)
        for end in (self.segment.left, self.segment.right):
            if u.ball({self.name: end}).contains(0):
                self.segment.singular.append(end)

    def negative(self, node: Expression) -> NotDefined:
        left, right = place(self.segment.left), place(self.segment.right)
        return NotDefined(
            f"{short(node)} is not defined from {self.name} = {left} to {right}, "
            "where its argument is negative; choose a domain that keeps clear of it"
        )

    def undefined(self, node: Expression, at: arb, why: str) -> NotDefined:
        return NotDefined(
            f"{short(node)} is not defined at {self.name} = {place(at)}, where {why}; "
            "choose a domain that keeps clear of it"
        )


def undecided(u: Expression, name: str, at: arb) -> AnchorheadError:
    return AnchorheadError(
        f"the sign of {short(u)}, on which a switch depends, cannot be decided near {name} = {place(at)}: "
        "simplify the expression (is it 0 there?)"
    )


def short(node: Expression) -> str:
    """Its text, cut for a message."""
    words = str(node)
    return words if len(words) <= 60 else f"{words[:57]}..."


def place(at: arb) -> str:
    """A point, for a message."""
    return f"{float(at.mid()):.12g}"
