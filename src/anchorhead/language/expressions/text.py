"""An expression written as text that parses back to the same tree."""

from __future__ import annotations

from collections.abc import Sequence

from anchorhead.language.expressions.expression import Expression, postorder

# how tightly a text binds: a sum, a product, a sign, a power, an atom
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


def text(root: Expression) -> str:
    done: dict[Expression, tuple[str, int]] = {}
    for node in postorder(root):
        done[node] = _write(node, done)
    return done[root][0]


def short_text(function: Expression) -> str:
    """ "gelu" for gelu(x); else the text."""
    words = str(function)
    bare = len(function.variables) == 1 and words == f"{function.op}({function.variables[0]})"
    return function.op if bare else words


def name_of(expressions: Sequence[Expression]) -> str:
    """Several expressions as a text."""
    name = ", ".join(str(expression) for expression in expressions)
    return name if len(expressions) == 1 else f"[{name}]"


def _write(node: Expression, done: dict[Expression, tuple[str, int]]) -> tuple[str, int]:
    def at(arg: Expression, tightness: int) -> str:
        words, binds = done[arg]
        return words if binds >= tightness else f"({words})"

    args = node.args
    match node.op:
        case "number":
            value = float(node.data or 0)
            words = repr(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
            return words, _SIGN if value < 0 else _ATOM
        case "variable":
            return str(node.data), _ATOM
        case "pi" | "e":
            return node.op, _ATOM
        case "add":
            words = at(args[0], _SUM)
            for arg in args[1:]:
                if arg.op == "neg":
                    words += f" - {at(arg.args[0], _PRODUCT)}"
                elif done[arg][0].startswith("-") and arg.op == "number":
                    words += f" - {done[arg][0][1:]}"
                else:
                    words += f" + {_unsigned(arg, done)}"
            return words, _SUM
        case "mul":
            return "*".join([at(args[0], _PRODUCT), *(_tight(arg, done) for arg in args[1:])]), _PRODUCT
        case "neg":
            return f"-{at(args[0], _POWER)}", _SIGN
        case "div":
            return f"{at(args[0], _PRODUCT)}/{_tight(args[1], done)}", _PRODUCT
        case "integer_power":
            return f"{at(args[0], _ATOM)}**{node.data}", _POWER
        case "power":
            return f"{at(args[0], _ATOM)}**{at(args[1], _ATOM)}", _POWER
        case "where":
            a, b, then, other = (done[arg][0] for arg in args)
            return f"where({a} {node.data} {b}, {then}, {other})", _ATOM
        case _:
            from anchorhead.language.expressions.named import shown_args

            return f"{node.op}({', '.join(done[arg][0] for arg in shown_args(node))})", _ATOM


def _unsigned(arg: Expression, done: dict[Expression, tuple[str, int]]) -> str:
    """A term that follows a +, in brackets if it is a sum or begins with a sign."""
    words, binds = done[arg]
    return words if binds >= _PRODUCT and not words.startswith("-") else f"({words})"


def _tight(arg: Expression, done: dict[Expression, tuple[str, int]]) -> str:
    """A factor that follows a * or /, in brackets unless it is a power or an atom."""
    words, binds = done[arg]
    return words if binds >= _POWER else f"({words})"
