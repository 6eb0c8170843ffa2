"""From a user's text to an expression, by a walk over Python's syntax tree that knows maths and nothing else.

Nothing of the text is ever evaluated or compiled. Before Python's own parser sees it, the text is cut into
tokens (names, numbers, + - * / ** ( ) [ ] , < <= > >=) and refused if it holds anything else, is too long or
nests too deep.

A number means its float64 value: 0.1 is 0.1000000000000000055511..., exactly; 1/10 is the exact tenth.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

from anchorhead.errors import AnchorheadError, NotAnExpression
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import NAMED, call

MAX_LENGTH = 2_000

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<number>(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|<=|>=|/(?!/)|[-+*()\[\],<>])",
    re.ASCII,
)
_HINTS = {
    "^": "write ** for powers",
    ".": "attributes are not allowed; write sin(x), not np.sin(x)",
    ":": "only expressions are allowed, no lambda, slice or assignment",
    "=": "only <, <=, > and >= compare, and arguments have no keywords",
    "!": "only <, <=, > and >= compare",
    "/": "write / for quotients; whole quotients are not allowed",
    "%": "write the remainder with other functions",
    "|": "write abs(x) for |x|",
    "×": "write * for products",
    "·": "write * for products",
    "π": "write pi",
    "√": "write sqrt(x)",
}
_WORDS = frozenset({"lambda", "if", "else", "for", "in", "and", "or", "not", "is", "await", "yield", "async"})
_RELATIONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def parse(text: str, variables: Iterable[str] = ("x",), lacks: str = "") -> Expression:
    """The expression that `text` writes in the given variables (`"x"`, or entries as `"x[0,1]"`).

    lacks  what has no such name, for the refusal of one that is not known: "on= has no interval for"
    """
    if not isinstance(text, str):
        raise AnchorheadError(f"an expression is a text such as 'sin(3*x)*exp(x)', not {type(text).__name__}")
    names = (variables,) if isinstance(variables, str) else tuple(variables)
    for name in names:
        build.variable(name)
        if name in NAMED or name in ("min", "max", "where", "pi", "e") or name in _WORDS:
            raise AnchorheadError(f"a variable cannot be called {name}: that name is taken; use another")
    return _Reader(text, names, lacks).read()


def names_in(text: str) -> tuple[str, ...]:
    """The names in an expression's text that are neither functions nor constants, each once: its variables."""
    found = [(match.group(), match.end()) for match in _TOKEN.finditer(text) if match.lastgroup == "name"]
    called = [word for word, end in found if text[end:].lstrip().startswith("(")]
    taken = {*NAMED, *called, "min", "max", "where", "pi", "e", *_WORDS}
    return tuple(dict.fromkeys(word for word, _ in found if word not in taken))


class _Reader:
    def __init__(self, text: str, variables: tuple[str, ...], lacks: str = "") -> None:
        self.text, self.lacks = text, lacks
        self.variables = {_entry(name): name for name in variables}

    def error(self, message: str, place: int) -> NotAnExpression:
        shown = self.text if len(self.text) <= 80 else f"{self.text[:77]}..."
        return NotAnExpression(f"column {place + 1} of {shown!r}: {message}", place + 1)

    def read(self) -> Expression:
        self.check_tokens()
        try:
            tree = ast.parse(re.sub(r"\s", " ", self.text).strip(), mode="eval")
        except SyntaxError as error:
            end = len(self.text.strip())
            raise self.error(
                f"this is not an expression ({error.msg})", self.indent + (error.offset or end + 1) - 1
            ) from None
        except (RecursionError, MemoryError, ValueError):
            raise self.error("this is nested too deep or too long for an expression; split it up", 0) from None
        result = self.walk(tree.body, 0)
        try:
            return build.check_size(result)
        except AnchorheadError as error:
            raise self.error(str(error), 0) from None

    def check_tokens(self) -> None:
        text = self.text
        if len(text) > MAX_LENGTH:
            raise self.error(
                f"a text of {len(text):,} characters: at most {MAX_LENGTH:,} are allowed; split it up",
                MAX_LENGTH,
            )
        if not text.strip():
            raise self.error("the text is empty: write an expression such as sin(3*x)*exp(x)", 0)
        self.indent = len(text) - len(text.lstrip())
        place = nested = signs = powers = 0
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None:
                sign = text[place]
                hint = _HINTS.get(sign, "names, numbers, + - * / ** ( ) [ ] , < <= > >= are allowed")
                raise self.error(f"{sign!r} is not allowed here: {hint}", place)
            word, kind = token.group(), token.lastgroup or "number"
            if kind == "number":
                after = text[token.end() : token.end() + 1]
                if after == "." or after == "_" or after.isalnum():
                    raise self.error(f"{word}{after} is not a number; write products with *", place)
                if not math.isfinite(float(word)):
                    raise self.error(f"{word[:20]} is not finite: numbers up to about 1.8e308 are allowed", place)
            if kind == "name" and word in _WORDS:
                raise self.error(f"{word!r} is not maths: for cases write where(x < 0, a, b)", place)
            # signs in a row, and powers of powers, nest without brackets
            signs = signs + 1 if word in "+-" else signs if kind == "space" else 0
            powers = 0 if word in (",", "(", ")") else powers + (word == "**")
            nested += (word in "([") - (word in ")]") if kind == "sign" else 0
            if max(nested, signs, powers) > build.MAX_DEPTH:
                raise self.error(f"this is nested more than {build.MAX_DEPTH} deep; split it up", place)
            place = token.end()

    def walk(self, node: ast.expr, depth: int) -> Expression:
        if depth > build.MAX_DEPTH + 10:  # + 10: a sign that leaves no node
            raise self.error(f"this is nested more than {build.MAX_DEPTH} deep; split it up", self.place(node))
        try:
            return self.expression(node, depth)
        except NotAnExpression:
            raise
        except AnchorheadError as error:
            raise self.error(str(error), self.place(node)) from None

    def place(self, node: ast.AST) -> int:
        return self.indent + getattr(node, "col_offset", 0)

    def expression(self, node: ast.expr, depth: int) -> Expression:
        match node:
            case ast.BinOp():
                return self.chain(node, depth)
            case ast.Constant(value=bool() | None):
                raise self.error(f"{node.value} is not a number", self.place(node))
            case ast.Constant(value=int() | float() as value):
                return build.number(float(value))
            case ast.Name(id=name):
                return self.name(name, node)
            case ast.UnaryOp(op=ast.USub()):
                return build.neg(self.walk(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.walk(node.operand, depth + 1)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(name, node, depth)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Compare():
                raise self.error("a comparison belongs into where(a < b, value if so, value if not)", self.place(node))
            case ast.Tuple():
                raise self.error("a comma outside a function's arguments: give one expression", self.place(node))
            case _:
                raise self.error(f"{type(node).__name__} is not maths: {_allowed()}", self.place(node))

    def chain(self, node: ast.BinOp, depth: int) -> Expression:
        """a + b*c - ...: down the left side in a loop, as long sums nest there."""
        steps: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            steps.append(left)
            left = left.left
        value = self.walk(left, depth + 1)
        for step in reversed(steps):
            right = self.walk(step.right, depth + 1)
            match step.op:
                case ast.Add():
                    value = build.add(value, right)
                case ast.Sub():
                    value = build.sub(value, right)
                case ast.Mult():
                    value = build.mul(value, right)
                case ast.Div():
                    value = build.div(value, right)
                case ast.Pow():
                    try:
                        value = build.power(value, right)
                    except AnchorheadError as error:
                        raise self.error(str(error), self.place(step.right)) from None
                case _:
                    raise self.error("only + - * / ** combine expressions", self.place(step))
        return value

    def name(self, name: str, node: ast.expr) -> Expression:
        if (name,) in self.variables:
            return build.variable(name)
        if name == "pi":
            return build.PI
        if name == "e":
            return build.E
        if name in NAMED:
            raise self.error(f"{name} is a function: write {NAMED[name].signature}", self.place(node))
        known = ", ".join(list(self.variables.values())[:12]) or "none"
        message = f"{name} is not known here: {meant(name)}the variables are {known}, the constants pi and e"
        raise self.error(message + self.lacking(name), self.place(node))

    def subscript(self, node: ast.Subscript) -> Expression:
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        whole = all(isinstance(entry, ast.Constant) and type(entry.value) is int for entry in index)
        if not isinstance(node.value, ast.Name) or not whole or not index:
            raise self.error("an index is made of whole numbers, as in x[0] or x[0,1]", self.place(node))
        entry = (node.value.id, *(str(getattr(entry, "value", "")) for entry in index))
        if entry not in self.variables:
            known = ", ".join(list(self.variables.values())[:12]) or "none"
            name = f"{entry[0]}[{','.join(entry[1:])}]"[:60]
            message = f"{name} is not known here: the variables are {known}{self.lacking(name)}"
            raise self.error(message, self.place(node))
        return build.variable(self.variables[entry])

    def lacking(self, name: str) -> str:
        return f"; {self.lacks} {name}" if self.lacks else ""

    def call(self, name: str, node: ast.Call, depth: int) -> Expression:
        if name == "where":
            return self.where(node, depth)
        if name not in NAMED and name not in ("min", "max"):
            raise self.error(f"{name} is not a function here: {meant(name)}{_allowed()}", self.place(node))
        args = tuple(self.walk(arg, depth + 1) for arg in node.args)
        return build.make(name, args) if name in ("min", "max") else call(name, args)

    def where(self, node: ast.Call, depth: int) -> Expression:
        match node.args:
            case [ast.Compare(left=left, ops=[op], comparators=[right]), then, other] if type(op) in _RELATIONS:
                parts = [self.walk(part, depth + 1) for part in (left, right, then, other)]
                return build.where(_RELATIONS[type(op)], *parts)
            case _:
                raise self.error("where takes one comparison and two values: where(x < 0, a, b)", self.place(node))


def _entry(name: str) -> tuple[str, ...]:
    """("x", "0", "1") for "x[0,1]"."""
    head, _, index = name.rstrip("]").partition("[")
    return (head, *index.split(",")) if index else (head,)


def meant(name: str) -> str:
    """A question after the function that has a name like this one, if there is any."""
    close = get_close_matches(name, [*NAMED, "min", "max", "where"], n=1)
    return f"did you mean {close[0]}? " if close else ""


def _allowed() -> str:
    return f"allowed are + - * / **, pi, e, min, max, where and {', '.join(NAMED)}"
