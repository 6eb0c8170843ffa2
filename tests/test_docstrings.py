"""The site shows docstrings as text, with names and what they mean, and formulas as they stand."""

from __future__ import annotations

from tools.docstrings import structured


def test_names_with_meanings_become_definitions_and_the_rest_stays_text() -> None:
    lines = [
        "An affine map, |y| <= 2 `x`.",
        "",
        "    Y = X W^T + b",
        "",
        "weight     (features, inputs), or a list",
        "           of them",
        "low, high  ends of [a, b]",
    ]
    assert structured(lines) == [
        "An affine map, \\|y\\| <= 2 ``x``.",
        "",
        ".. code-block:: text",
        "",
        "        Y = X W^T + b",
        "",
        "``weight``",
        "    (features, inputs), or a list",
        "    of them",
        "``low, high``",
        "    ends of [a, b]",
        "",
    ]


def test_columns_stay_columns() -> None:
    lines = ["2  dense:   Y = X W^T   W (outputs, features)", "3  blocks:  Y = X_g W_g  W (blocks, outputs, features)"]
    assert structured(lines) == [".. code-block:: text", "", *(f"    {line}" for line in lines), ""]


def test_examples_are_shown_as_a_session() -> None:
    for lines in (["    >>> 1 + 1", "    2"], [">>> 1 + 1  # two", "2"]):
        assert structured(lines) == [".. code-block:: pycon", "", *(f"    {line}" for line in lines), ""]
