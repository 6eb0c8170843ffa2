"""Other numbers in one place of a learner's file, or in two, are refused or do no harm.

`make test` tries some of three learners, `make slow` of all learners of the table and of the tests.
"""

from __future__ import annotations

import pytest

from ..tampering.places import CHANGES, TABLE, hunt, pair, place, prompted, subject
from .test_learners import QUICK, SLOW

FAST = {
    "learner, direct (float32)": 40,
    "learner, threshold (float32)": 25,
    "learner, squared in a sequence (float32)": 12,
}
MANY = 120


@pytest.mark.all_cases
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("name", FAST)
def test_places_and_pairs_that_are_accepted_are_harmless(name: str, kind: str) -> None:
    found = hunt(name, kind, range(FAST[name]))
    assert found.tried > FAST[name] / 4
    assert not found.harmful
    assert not found.confused


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("name", [*TABLE, *QUICK, *SLOW])
def test_many_places_and_pairs_that_are_accepted_are_harmless(name: str, kind: str) -> None:
    assert not hunt(name, kind, range(1_000, 1_000 + MANY)).harmful


@pytest.mark.all_cases
@pytest.mark.parametrize("kind", CHANGES)
def test_what_follows_for_a_prompt_holds(kind: str) -> None:
    name = "learner, threshold (float32)"
    count, problems = prompted(name, kind, range(FAST[name]))
    assert count > 0
    assert not problems


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("name", [*TABLE, *QUICK, *SLOW])
def test_what_follows_for_many_prompts_holds(name: str, kind: str) -> None:
    assert not prompted(name, kind, range(3_000, 3_000 + MANY // 4))[1]


def test_a_place_and_a_pair_are_the_same_every_time() -> None:
    one = subject("learner, direct (float32)")
    numbers = [n for n in range(20) if place(one, n) is not None]
    for change, which in ((place, numbers[0]), (place, numbers[1]), (pair, 3)):
        first, again = change(one, which), change(one, which)
        assert first is not None
        assert again is not None
        assert first[1] == again[1]
        assert first[0].content() != one.file().content()


@pytest.mark.slow
def test_numbers_beyond_float64_are_told_in_words() -> None:
    """Powers of a score that is too large, on the way to the bound."""
    found = hunt("poisson", "pair", [306, 348])
    assert found.tried == 2
    assert not found.accepted
    assert not found.confused
