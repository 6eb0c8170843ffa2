"""What the parser takes, what it refuses and where, and that text and JSON read back to the same tree."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.errors import AnchorheadError, NotAnExpression
from anchorhead.language.expressions import build
from anchorhead.language.targets import NAMED, Expression, parse

REFUSED = [
    ("9**9**9", 4),
    ("x**65", 4),
    ("x**x", 4),
    ("x**1e300", 4),
    ("2**(x**99)", 8),
    ("x.real", 2),
    ("np.sin(x)", 3),
    ("__import__('os')", 12),
    ("__import__(x)", 1),
    ("eval(x)", 1),
    ("y + x", 1),
    ("x + y", 5),
    ("  x + y", 7),
    ("x +", 4),
    ("(x", 1),
    ("[x for x in x]", 4),
    ("[x, x]", 1),
    ("x if x else x", 3),
    ("lambda: 1", 1),
    ("(x := 3)", 4),
    ("x == 1", 3),
    ("x < 1", 1),
    ("where(x, 1, 2)", 1),
    ("where(0 < x < 1, 1, 2)", 1),
    ("sin(x=1)", 6),
    ("max(*x)", 5),
    ("'a'", 1),
    ("x; x", 2),
    ("x # x", 3),
    ("x @ x", 3),
    ("x // x", 3),
    ("x % x", 3),
    ("x ^ 2", 3),
    ("x and x", 3),
    ("not x", 1),
    ("1j*x", 1),
    ("0x10", 1),
    ("1_000", 1),
    ("2x", 1),
    ("1.2.3", 1),
    ("1e999", 1),
    ("9" * 400, 1),
    ("True", 1),
    ("x[0]", 1),
    ("x(2)", 1),
    ("1(2)", 1),
    ("x, x", 1),
    ("()", 1),
    ("", 1),
    ("   ", 1),
    ("sin", 1),
    ("sin()", 1),
    ("sin(x, x)", 1),
    ("clip(x, 0)", 1),
    ("hardtanh(x, 1, -1)", 1),
    ("leaky_relu(x, x)", 1),
    ("celu(x, 0)", 1),
    ("min()", 1),
    ("π*x", 1),
    ("ｘ", 1),
    ("x\\\n+1", 2),
    ("-" * 60 + "x", 51),
    ("(" * 60 + "x" + ")" * 60, 51),
    ("+".join(["x"] * 1001), 2001),
    ("x**" * 60 + "x", 152),
]


@pytest.mark.parametrize(("text", "column"), REFUSED)
def test_what_is_not_maths_is_refused_with_its_column(text: str, column: int) -> None:
    with pytest.raises(NotAnExpression, match=rf"^column {column} of ") as found:
        parse(text)
    assert found.value.column == column


def test_a_refusal_without_a_place_gets_one_however_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a place is known is not told by how the words begin."""

    def refuse(*args: Expression) -> Expression:
        raise AnchorheadError("column inches are not maths")

    monkeypatch.setattr(build, "neg", refuse)
    with pytest.raises(NotAnExpression, match=r"^column 5 of '2 \* -x': column inches are not maths") as found:
        parse("2 * -x")
    assert found.value.column == 5


@pytest.mark.parametrize("text", ["sin(" * 50 + "x" + ")" * 50, "exp(-(" * 25 + "x" + "))" * 25])
def test_nesting_is_capped(text: str) -> None:
    assert parse(text).op in ("sin", "exp")
    with pytest.raises(AnchorheadError, match="nested"):
        parse(f"sin({text})")


def test_a_misspelt_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(AnchorheadError, match="did you mean gelu"):
        parse("gellu(x)")
    with pytest.raises(AnchorheadError, match="did you mean gelu"):
        parse("gellu")


SAME = [
    ("x - 1", "x + -1"),
    ("where(x > 0, x, 0)", "where(0 < x, x, 0)"),
    ("leaky_relu(x)", "leaky_relu(x, 0.01)"),
    ("x**(1 + 1)", "x**2"),
    ("(x + 1) + 2", "x + 1 + 2"),
    (" x\n* x ", "x*x"),
    ("+x", "x"),
    ("- -x", "x"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_structure_is_one_tree(one: str, other: str) -> None:
    assert parse(one) == parse(other)
    assert hash(parse(one)) == hash(parse(other))


@pytest.mark.parametrize(
    ("one", "other"), [("x + (x + 1)", "x + x + 1"), ("x*2", "2*x"), ("-x**2", "(-x)**2"), ("x", "y")]
)
def test_other_structures_are_other_trees(one: str, other: str) -> None:
    assert parse(one, ("x", "y")) != parse(other, ("x", "y"))


def test_several_and_indexed_variables() -> None:
    assert parse("x*y + sin(z)", ("x", "y", "z")).variables == ("x", "y", "z")
    entries = ["x[0,0]", "x[1,0]", "x[1,1]"]
    assert parse("max(x[0, 0], x[1,1])", entries).variables == ("x[0,0]", "x[1,1]")
    assert parse("x[3] - 1", ["x[3]"]).variables == ("x[3]",)
    for text in ("x[0,1]", "x", "x[0]", "x[0,0,0]", "x[-1,0]", "x[0:1,0]", "x[1.0,0]", "y[0,0]"):
        with pytest.raises(AnchorheadError, match=r"^column (1|4) "):
            parse(text, entries)
    with pytest.raises(AnchorheadError, match="cannot be called sin"):
        parse("x", ("sin",))


def test_expressions_do_not_change_and_are_copied_by_reference() -> None:
    expression = parse("gelu(x) + x**3")
    with pytest.raises(AttributeError):
        expression.op = "mul"
    assert pickle.loads(pickle.dumps(expression)) is expression  # noqa: S301


WORDS = """min max where x y pi e x[0] lambda if None __class__ exec 0 1 2.5 1e5 1e999 9 64 .5
    + - * / ( ) [ ] , < > = : . ' ^ % & | ~ ! @ # { } ** <= >= == // :="""
words = st.sampled_from([*NAMED, *WORDS.split(), " ", "\n", "\t"])


@settings(max_examples=250, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(words, max_size=25).map("".join)))
def test_any_text_is_an_expression_or_an_anchorhead_error(text: str) -> None:
    try:
        expression = parse(text, ("x", "y", "x[0]"))
    except AnchorheadError:
        return
    assert parse(str(expression), ("x", "y", "x[0]")) is expression
    assert Expression.from_json(json.loads(json.dumps(expression.to_json()))) is expression


@pytest.mark.parametrize(
    "text", ["(" * 1999, "[" * 1999, "x[" * 999, "sin(" * 499, "-" * 1999, "x**" * 666, "1," * 999]
)
def test_hostile_nesting_is_refused(text: str) -> None:
    with pytest.raises(AnchorheadError):
        parse(text)


def _formula(depth: int) -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["x", "y", "pi", "e", "2", "0.1", "1e-05", "3e+20"])
    if depth == 0:
        return atoms
    part = _formula(depth - 1)
    return st.one_of(
        atoms,
        st.tuples(part, st.sampled_from(["+", "-", "*", "/"]), part).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
        st.tuples(part, st.sampled_from(["+", "-", "*", "/"]), part).map(lambda t: f"{t[0]}{t[1]}{t[2]}"),
        part.map(lambda a: f"-{a}"),
        st.tuples(part, st.sampled_from(["2", "-3", "0.5", "(1/3)", "-0.25"])).map(lambda t: f"({t[0]})**{t[1]}"),
        st.tuples(st.sampled_from([n for n in NAMED if n != "clip"]), part).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(part, part, part).map(lambda t: f"max({t[0]},min({t[1]},{t[2]}))"),
        st.tuples(part, part, part).map(lambda t: f"where({t[0]}<={t[1]},{t[2]},clip({t[0]},-1,2))"),
    )


@settings(max_examples=200, deadline=None)
@given(_formula(4).filter(lambda text: len(text) < 1500))
def test_text_and_json_read_back_to_the_same_tree(text: str) -> None:
    expression = parse(text, ("x", "y"))
    assert Expression.from_json(json.loads(json.dumps(expression.to_json()))) is expression
    if len(str(expression)) <= 2000:
        assert parse(str(expression), ("x", "y")) is expression


BAD_JSON = [
    None,
    [],
    {},
    {"nodes": []},
    {"nodes": ["x"]},
    {"nodes": [["variable", "__import__('os')"]]},
    {"nodes": [["variable", 3]]},
    {"nodes": [["number", float("inf")]]},
    {"nodes": [["number", float("nan")]]},
    {"nodes": [["number", "1"]]},
    {"nodes": [["number", 10**400]]},
    {"nodes": [["number", True]]},
    {"nodes": [["sin", 0]]},
    {"nodes": [["variable", "x"], ["sin", 1]]},
    {"nodes": [["variable", "x"], ["sin", -1]]},
    {"nodes": [["variable", "x"], ["sin", 0, 0]]},
    {"nodes": [["variable", "x"], ["system", 0]]},
    {"nodes": [["variable", "x"], ["integer_power", 65, 0]]},
    {"nodes": [["variable", "x"], ["integer_power", 2.0, 0]]},
    {"nodes": [["variable", "x"], ["power", 0, 0]]},
    {"nodes": [["variable", "x"], ["where", "==", 0, 0, 0, 0]]},
    {"nodes": [["variable", "x"], ["leaky_relu", 0, 0]]},
    {"nodes": [["variable", "x"], *(["mul", k, k] for k in range(60))]},
    {"nodes": [["variable", "x"], *(["sin", k] for k in range(60))]},
    {"nodes": [["variable", "x"]] * 2001},
]


@pytest.mark.parametrize("data", BAD_JSON)
def test_a_damaged_file_is_refused(data: object) -> None:
    with pytest.raises(AnchorheadError):
        Expression.from_json(data)
