"""The checks of annotations are at work, in every module, and leave input from outside to the package's own words."""

import sys
from types import ModuleType

import numpy as np
import pytest
from jaxtyping import Float

import anchorhead
from tests.type_checks import WrongType, count_anew, counting, with_counts


def within(text: str) -> dict:
    """What a module of the package would hold after this text."""
    module = ModuleType("anchorhead.made_up")
    held = vars(module)
    held.update({"np": np, "Float": Float})
    with_counts(held)
    sys.modules[module.__name__] = module  # where dataclass and beartype look for names
    exec(counting(text, "made_up.py"), held)  # noqa: S102
    return held


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    sys.modules.pop("anchorhead.made_up", None)


def test_every_module_of_the_package_is_checked():
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "anchorhead"}
    assert anchorhead.__name__ in loaded
    assert [name for name, module in loaded.items() if not hasattr(module, "__checked__")] == []


FUNCTIONS = '''
def half(x: float) -> float:
    return x / 2

def wrong(x: float) -> str:
    return x

def total(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return a + b

def calls(name, *args, **words):
    return globals()[name](*args, **words)

def any(a: int, /, b: int = 2, *rest: int, c: int, d: int = 4, **more: int) -> tuple:
    """Of all kinds."""
    return a, b, rest, c, d, more
'''


def test_wrong_arguments_end_calls_from_within():
    held = within(FUNCTIONS)
    assert held["calls"]("half", 3) == 1.5
    with pytest.raises(WrongType, match="half"):
        held["calls"]("half", "3")
    with pytest.raises(WrongType, match="total"):
        held["calls"]("total", np.zeros(3), np.zeros(1))
    count_anew()
    with pytest.raises(WrongType, match="total"):
        held["calls"]("total", np.zeros(3, int), np.zeros(3))


def test_arguments_of_every_kind_arrive_and_are_checked():
    held = within(FUNCTIONS)
    assert held["any"].__doc__ == "Of all kinds."
    for _ in range(3):  # checked twice, then not
        assert held["any"](1, c=3) == (1, 2, (), 3, 4, {})
        assert held["any"](1, 5, 6, 7, c=3, d=8, a=9) == (1, 5, (6, 7), 3, 8, {"a": 9})
    for args, words in ([(1,), {"c": "3"}], [(1, 2, "3"), {"c": 3}], [(1,), {"c": 3, "a": "3"}], [(1, "2"), {"c": 3}]):
        count_anew()
        with pytest.raises(WrongType, match="any"):
            held["calls"]("any", *args, **words)


def test_wrong_arguments_from_outside_are_left_to_the_function():
    with pytest.raises(TypeError, match="unsupported operand"):
        within(FUNCTIONS)["half"]("3")


def test_wrong_results_end_every_call():
    with pytest.raises(WrongType, match="wrong"):
        within(FUNCTIONS)["wrong"](3.0)


def test_a_function_is_looked_at_again_ever_more_rarely():
    wrong = within(FUNCTIONS)["wrong"]

    def looked_at() -> bool:
        try:
            wrong(3.0)
        except WrongType:
            return True
        return False

    assert [n for n in range(1, 40) if looked_at()] == [1, 2, 4, 8, 16, 32]
    count_anew()
    assert looked_at()


MEMBERS = """
from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property
from typing import Self

@dataclass
class Pair:
    first: float
    second: float

    @classmethod
    def of(cls, made) -> Self:
        return made

    @staticmethod
    def zero() -> float:
        return "0"

    @property
    def sum(self) -> str:
        return self.first + self.second

    @cached_property
    def product(self) -> str:
        return self.first * self.second

    def plus(self, other: Pair) -> Self:
        return Pair(self.first + other.first, self.second + other.second)
"""


@pytest.mark.parametrize(
    "wrong", ["Pair(1.0, '2')", "Pair.of(3)", "Pair.zero()", "pair.sum", "pair.product", "pair.plus(3.0)"]
)
@pytest.mark.all_cases
def test_members_of_classes_are_checked(wrong):
    held = within(f"{MEMBERS}\ndef calls(pair):\n    return {wrong}")
    pair = held["Pair"](1.0, 2.0)
    assert held["Pair"].of(pair).plus(pair) == held["Pair"](2.0, 4.0)
    count_anew()
    with pytest.raises(WrongType):
        held["calls"](pair)
