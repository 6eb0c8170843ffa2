"""What expressions in several variables are made of: neurons, and functions of a few variables for grids.

Each output is a sum of terms. A term is
  - a ridge, or a sum of ridges: neurons of one hidden layer (language.analysis.ridges);
  - max, min, abs of affine parts, nested: neurons of several layers (constructions.passes);
  - a smooth function of two variables: it goes to a grid, together with all terms, of any output, whose variables are
    among those of the grid; polynomials of low degree as well, since they cost a grid nothing;
  - anything else (a kink in a product, three variables or more): neurons of several layers, where functions of one
    variable, sums, products and quotients are all that it is made of; if not, a grid of at most four variables.

Anchors of a grid multiply from variable to variable, neurons add up: exp(sin(x*y) + z)/(1 + w**2) within 1e-6 takes a
grid of 12,480 anchors, or 19 heads of 2 to 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flint import arb, fmpq

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.ridges import PRECISION, Box, Structure, box_of, ridge_of, structure
from anchorhead.language.expressions import build
from anchorhead.language.expressions.build import ZERO, add, fraction, mul, neg
from anchorhead.language.expressions.complex_balls import resolve
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.expressions.normal_form import polynomial
from anchorhead.language.expressions.precision import precision
from anchorhead.language.expressions.simplify import simplified
from anchorhead.language.expressions.text import name_of
from anchorhead.language.targets.layered import ridge_network
from anchorhead.language.targets.mlp import Mlp

MAX_IN_A_GRID = 4
USUALLY_IN_A_GRID = 2
"""Smooth functions of more variables are taken apart, if they can be: that is smaller."""
LOW_DEGREE = 4
"""Polynomials up to this degree join a grid that has their variables."""
TermKind = Literal["constant", "affine", "ridge", "layers", "grid"]
Ends = tuple[Sequence[float], Sequence[float]]
_PIECEWISE_LINEAR = ("abs", "max", "min", "relu", "clip", "hardtanh", "relu6", "leaky_relu", "soft_threshold")


@dataclass(frozen=True, eq=False)
class Term:
    """A term of one output, and what it becomes; `grid` is the number of its grid."""

    output: int
    expression: Expression
    becomes: TermKind
    grid: int | None = None


@dataclass(frozen=True, eq=False)
class GridPart:
    """A function of a few variables for every output: `expressions` has 0 for those that have no share in it."""

    variables: tuple[str, ...]
    expressions: tuple[Expression, ...]

    @property
    def outputs(self) -> tuple[int, ...]:
        """The outputs that have a share in it."""
        return tuple(number for number, one in enumerate(self.expressions) if one is not ZERO)

    def __str__(self) -> str:
        return f"a grid of {', '.join(self.variables)}"


@dataclass(frozen=True, eq=False)
class Parts:
    """Outputs that are the sum of a network of neurons, if there is one, and of functions for grids."""

    variables: tuple[str, ...]
    network: Mlp | None
    grids: tuple[GridPart, ...]
    terms: tuple[Term, ...]

    def found(self) -> list[tuple[str, str]]:
        """What was found: each term in words, and what it becomes."""
        return [(str(term.expression), self._words(term)) for term in self.terms]

    def _words(self, term: Term) -> str:
        match term.becomes:
            case "constant":
                return "a constant"
            case "affine":
                return "a linear combination"
            case "ridge":
                return _ridge_words(structure(term.expression, self.variables))
            case "layers":
                return "neurons in layers"
            case _:
                return str(self.grids[term.grid or 0])


def _ridge_words(found: Structure) -> str:
    """A function of one variable, of one linear combination, or several of them."""
    several = [(ridge.weight != 0).sum() > 1 for ridge in found.ridges]
    what = "of one linear combination" if any(several) else "of one variable"
    return f"a function {what}" if len(several) == 1 else f"{len(several)} functions {what} each"


def parts_of(
    expressions: Sequence[Expression],
    variables: Sequence[str],
    tokens: int | None = None,
    ends: Ends | None = None,
    join: bool = True,
    in_a_grid: int = USUALLY_IN_A_GRID,
    centred: bool = False,
) -> Parts:
    """The expressions, one for each output, taken apart.

    ends  the lower and the upper ends of the variables: switches that they decide are no kinks, and factors of products
          are brought to one size
    join  terms whose variables are among those of a grid join it; else only terms of the same variables share one
    in_a_grid   smooth terms of so many variables go to a grid, even if they can be taken apart
    centred     factors of products are centred, where that pays
    """
    with precision(PRECISION):
        expressions, variables = tuple(expressions), tuple(variables)
        box = None if ends is None else box_of(variables, *ends)
        terms = [
            Term(output, term, _kind(term, variables, in_a_grid))
            for output, expression in enumerate(expressions)
            for term in summands(_resolved(simplified(expression), box))
        ]
        groups = _groups([term.expression.variables for term in terms if term.becomes == "grid"], variables, join)
        terms = [_placed(term, groups, join) for term in terms]
        grids = tuple(
            GridPart(group, tuple(_total(terms, output, number) for output in range(len(expressions))))
            for number, group in enumerate(groups)
        )
        network = _network(terms, expressions, variables, tokens, not grids, box, centred)
        return Parts(variables, network, grids, tuple(terms))


def _resolved(expression: Expression, box: Box | None) -> Expression:
    """The expression without the switches that the box decides, if it decides them all."""
    if box is None or not expression.has_switches:
        return expression
    balls = {name: arb(low).union(arb(high)) for name, (low, high) in box.items()}

    def simpler(node: Expression) -> Expression | None:
        if not node.has_switches:
            return None
        try:
            return resolve(node, balls)
        except AnchorheadError:
            return None

    return add(*(simpler(term) or term for term in summands(expression)))


def summands(expression: Expression) -> list[Expression]:
    """The terms that add up to an expression; equal ones are put together, and those that cancel left out.

    Products with a sum are multiplied out where that makes functions of fewer variables.
    """
    found: dict[Expression, list[fmpq]] = {}
    for factor, term in _scaled_terms(expression, fmpq(1)):
        found.setdefault(term, []).append(factor)
    kept = [one for term, factors in found.items() for one in _times(term, factors)]
    return kept or [ZERO]


def _times(term: Expression, factors: Sequence[fmpq]) -> list[Expression]:
    """The term times the sum of its factors; one by one where no floats can write the sum."""
    total = sum(factors, fmpq(0))
    if total == 0:
        return []
    if total in (1, -1):
        return [term if total == 1 else neg(term)]
    scale = fraction(total)
    return [mul(scale, term)] if scale is not None else [one for factor in factors for one in _times(term, [factor])]


def _scaled_terms(expression: Expression, factor: fmpq) -> list[tuple[fmpq, Expression]]:
    match expression.op, expression.args:
        case "add", args:
            return [pair for arg in args for pair in _scaled_terms(arg, factor)]
        case "neg", (arg,):
            return _scaled_terms(arg, -factor)
        case "mul", args if len(args) == 2 and args[0].op == "number":
            scaled = factor * fmpq(*float(args[0].data or 0).as_integer_ratio())
            if scaled == 0 or fraction(scaled) is not None:
                return _scaled_terms(args[1], scaled)
        case "mul", args:
            for place, arg in enumerate(args):
                products = [mul(*args[:place], term, *args[place + 1 :]) for term in summands(arg)]
                if _pays(products, expression):
                    return [pair for one in products for pair in _scaled_terms(one, factor)]
        case "div", (above, below) if not below.variables and below is not ZERO:
            terms = summands(above)
            if len(terms) > 1:
                return [pair for term in terms for pair in _scaled_terms(build.div(term, below), factor)]
    return [(factor, expression)]


def _pays(products: list[Expression], whole: Expression) -> bool:
    """Whether grids of fewer variables are gained by multiplying out."""
    most = min(USUALLY_IN_A_GRID, len(whole.variables) - 1)
    small = len(products) > 1 and all(len(one.variables) <= most for one in products)
    return small and bool(structure(whole, whole.variables).left_over)


def _kind(term: Expression, variables: tuple[str, ...], in_a_grid: int) -> TermKind:
    if not term.variables:
        return "constant"
    if term.affine() is not None:
        return "affine"
    if not structure(term, variables).left_over:
        return "ridge"
    linear = all(
        node.op in _PIECEWISE_LINEAR or not node.variables or node.affine() is not None or node.op in ("add", "neg")
        or (node.op == "mul" and sum(bool(arg.variables) for arg in node.args) == 1)
        or (node.op == "div" and not node.args[1].variables)
        for node in postorder(term)
    )  # fmt: skip
    if not linear and not term.has_switches and len(term.variables) <= in_a_grid:
        return "grid"
    if all(_is_taken_apart(node, variables) for node in postorder(term)):
        return "layers"
    if len(term.variables) <= MAX_IN_A_GRID:
        return "grid"
    raise AnchorheadError(
        f"{term} has {len(term.variables)} variables and would go to a head over a grid, which takes at most "
        f"{MAX_IN_A_GRID} variables: write it with functions of one variable, sums, products and quotients"
    )


def _is_taken_apart(node: Expression, variables: tuple[str, ...]) -> bool:
    """Whether passes make neurons of the node: a function of one part that varies, a sum, a product, a switch
    between parts, or a function of one linear combination."""
    if sum(bool(arg.variables) for arg in node.args) <= 1 or node.op in ("add", "mul", "div", "max", "min"):
        return True
    return ridge_of(node, variables) is not None


def _groups(sets: list[tuple[str, ...]], variables: tuple[str, ...], join: bool) -> list[tuple[str, ...]]:
    """The variables of each grid, in their order; with `join`, none among those of another."""
    distinct = [tuple(name for name in variables if name in names) for names in dict.fromkeys(sets)]
    if not join:
        return distinct
    return [one for one in distinct if not any(set(one) < set(other) for other in distinct)]


def _placed(term: Term, groups: list[tuple[str, ...]], join: bool) -> Term:
    """The term with its grid, if it has one: the smallest that holds its variables."""
    own = set(term.expression.variables)
    fits = [number for number, group in enumerate(groups) if own <= set(group)]
    joins = join and (term.becomes in ("constant", "affine") or _low_degree(term.expression))
    if not fits or not (term.becomes == "grid" or joins):
        return term
    return Term(term.output, term.expression, "grid", min(fits, key=lambda number: len(groups[number])))


def _low_degree(expression: Expression) -> bool:
    """Whether it is a polynomial of at most LOW_DEGREE."""
    monomials = [[(atom, power) for atom, power in one if atom.names] for one in polynomial(expression, {})]
    return all(
        all(atom.op == "variable" for atom, _ in one) and sum(power for _, power in one) <= LOW_DEGREE
        for one in monomials
    )


def _total(terms: Sequence[Term], output: int, grid: int) -> Expression:
    own = [term.expression for term in terms if term.output == output and term.grid == grid]
    return add(*own) if own else ZERO


def _network(
    terms: Sequence[Term],
    expressions: tuple[Expression, ...],
    variables: tuple[str, ...],
    tokens: int | None,
    needed: bool,
    box: Box | None,
    centred: bool,
) -> Mlp | None:
    """The neurons of all terms that go to no grid; None if there are no such terms, or some take several layers."""
    ridges: list[list[Expression]] = [[] for _ in expressions]
    for term in terms:
        if term.becomes == "layers":
            return None
        if term.becomes != "grid":
            ridges[term.output].append(term.expression)
    if not needed and not any(ridges):
        return None
    shown = [add(*own) if own else ZERO for own in ridges]
    structures = [structure(one, variables, box, centred) for one in shown]
    return ridge_network(structures, variables, tokens, name_of(expressions if needed else shown), box)


__all__ = ["GridPart", "Parts", "Term", "TermKind", "parts_of", "summands"]
