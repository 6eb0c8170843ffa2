"""Files of learners that say what is not so in one place are refused, though all else is as it should be.

Their networks err by more than their bounds; most of them were accepted once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.grammar import read_network
from anchorhead.verify.learners.body import Body
from anchorhead.verify.learners.link import read_links
from anchorhead.verify.learners.reading import Reading
from anchorhead.verify.learners.shown import shown_of
from anchorhead.verify.learners.target import read_descent
from anchorhead.verify.programs.program import read_program
from anchorhead.verify.rounding import arithmetic_of

from ..tampering.search import Claim, breaks
from . import forged_learners as forged
from . import test_learner_many as of_many
from .learner_files import loaded
from .test_learners import accepted, found_for_box, learner, stored

pytestmark = pytest.mark.all_cases
FORGED: list[tuple[Callable[[Stored], Stored], str]] = [
    (forged.scores_drowned, "logistic, float32"),
    (forged.residuals_drowned, "squared, float32"),
    (forged.silence_drowned, "logistic, sequence, float32"),
    (forged.anchors_of_rows, "lasso"),
    (forged.another_threshold, "lasso"),
    (forged.w_of_before, "lasso"),
    (forged.output_of_before, "squared"),
    (forged.examples_of_one_sign, "squared"),
    (forged.half_an_example, "squared, sequence"),
    (forged.labels_of_others, "squared, sequence"),
    (forged.keys_that_overflow, "logistic, sequence, four steps"),
    (forged.reference_that_moves, "logistic lasso"),
    (forged.something_that_is_off, "two variables"),
    (forged.a_head_without_anchors, "hinge, sequence"),
    (forged.a_link_twice, "two variables"),
    (forged.a_link_twice, "two variables, sequence"),
    (forged.a_link_twice, "logistic"),
    (forged.an_example_twice, "logistic, sequence, float32"),
    (forged.slopes_in_two, "logistic, sequence, float32"),
    (forged.rows_that_are_anchors, "tanh, sequence"),
]


@pytest.mark.parametrize(("change", "name"), FORGED, ids=[f"{change.__name__}, {name}" for change, name in FORGED])
def test_forged_files_are_refused(change: Callable[[Stored], Stored], name: str) -> None:
    other = change(stored(name))
    assert breaks(loaded(other), np.random.default_rng(0), learner(name).descent.loss) is not None
    assert accepted(stored(name))
    assert not accepted(other)


@pytest.mark.parametrize(
    "change",
    [
        forged.values_of_the_start,
        forged.links_of_registers,
        forged.steep_anchors_of_others,
        forged.half_of_what_is_taken_off,
    ],
)
def test_forged_files_of_many_learners_are_refused(change: Callable[[Stored], Stored]) -> None:
    """On a prompt whose residuals are large."""
    net, file = of_many.many("float32")
    prompt, other = of_many.prompt_of("float32", "squared", 0.0, [3.0, -2.0, 1.0]), change(file)
    stated = net.certify(prompt).bound
    path = loaded(other)(prompt, path=True, outside="ignore")  # type: ignore[call-arg]
    assert of_many.largest_error(path, file, prompt) > stated >= of_many.bound_of(file, prompt, stated)
    with pytest.raises(NotVerified):
        of_many.bound_of(other, prompt, stated)


def test_examples_that_vanish_are_refused() -> None:
    """Where underflow is to zero, an example is no longer there."""
    name = "squared, float32"
    other = forged.drained(stored(name))
    claim = Claim.of(loaded(other), learner(name).descent.loss)
    prompt = learner(name).prompt(np.full((1, 2), 2.0**-10), np.ones(1))
    assert claim.proven(np.asarray(prompt)[None], "flushed") > claim.network.certificate.bound  # type: ignore[union-attr]
    assert not accepted(other)


def test_keys_that_overflow_before_they_meet_anything_are_refused() -> None:
    with pytest.raises(NotVerified, match="overflow"):
        found_for_box(forged.keys_of_nothing(stored("squared, float32")))


def reading_of(name: str) -> Reading:
    """Of a learner whose link is what its first form says."""
    file = stored(name)
    network, target = read_network(file), read_descent(read_program(file))
    model, links = arithmetic_of(network.dtype), read_links(target.link, 1.0)[0]
    shown = shown_of(target, links[0].form, np.full(target.features + 2, 4.0))
    return Reading(Body(network, target, shown, 100, 10.0, model), target, links, 1e-3, model)


@pytest.mark.parametrize("name", ["squared, float32", "momentum", "squared, sequence"])
def test_what_heads_read_is_added_to_w_in_any_order(name: str) -> None:
    """w = 1, and then what heads read and v move it by, each a little less than half of what float32 can tell apart."""
    reading = reading_of(name)
    update, dtype = reading.step().update, reading.model.dtype
    model, heads = arithmetic_of(dtype), len(stored(name).tensors["layers.1.0.query"])
    few = heads + bool(update.momentum) if "sequence" not in name else 1 + bool(update.momentum)
    kind = np.dtype(dtype).type
    small, w = kind(0.999 * model.unit), kind(1.0)
    for _ in range(few):
        w = kind(w + small)
    lost = few * float(small) - (float(w) - 1.0)
    speed = float(small) / update.momentum if update.momentum else 0.0
    assert lost > 0.99 * few * model.unit
    assert update.error(1.0, speed, few * float(small), model)[0] >= lost
