"""Certificates count in proper words, and the check, which writes them anew, agrees."""

from __future__ import annotations

import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.decimals import counted
from benchmarks.figures_cases import mlp

NETWORKS = {
    "1 truncated linear function of 1 input, cut at": lambda: ah.truncated_linear([[1.0]], [0.0], -1, 1, anchors=4),
    "2 truncated linear functions of 1 input, cut at": lambda: ah.truncated_linear([[1.0]] * 2, [0.0] * 2, -1, 1),
    "1 step of gradient descent on": lambda: incontext.gradient_descent(
        steps=1, rate=0.1, features=1, on=(-1, 1), labels=(-1, 1)
    ),
    "1 head (relu(x): 3 solved anchors)": lambda: ah.convert(mlp(2, 1, 1), (-1, 1), 1e-2, form="two-layer"),
}


@pytest.mark.parametrize("words", NETWORKS)
def test_one_thing_is_not_counted_as_several(words):
    certificate = NETWORKS[words]().certificate
    assert words in f"{certificate.target}\n{certificate.method}"


def test_counts_have_commas_and_one_has_no_plural():
    assert [counted(count, "head") for count in (0, 1, 2, 1200)] == ["0 heads", "1 head", "2 heads", "1,200 heads"]
