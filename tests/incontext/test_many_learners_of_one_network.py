"""One network, many learners: loss, rate, penalty and start come with the prompt, and the bound holds for each."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions.learners.layouts.many import Slots
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.constructions.learners.written import step_of
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import named_loss
from anchorhead.language.targets.many_learners import rows_of
from anchorhead.lemmas.learners.links import HeadLink
from anchorhead.lemmas.learners.prompt import bound_for_rows
from anchorhead.lemmas.learners.steps import ScoreLinks
from anchorhead.network import Attention, Network, Repeat
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of

from .data import AWKWARD, regression

LOSSES = ("squared", "logistic", "huber", "hinge")
DTYPES = ("float64", "float32")


@pytest.fixture(scope="module", params=DTYPES)
def net(request: pytest.FixtureRequest) -> ManyLearner:
    return incontext.many_learners(LOSSES, features=5, steps=30, intercept=True, dtype=request.param)


@pytest.fixture(scope="module")
def exact_net() -> ManyLearner:
    return incontext.many_learners(LOSSES, features=5, steps=30, intercept=True)


def _labels(loss: str, y: np.ndarray) -> np.ndarray:
    return np.where(y > 0, 1.0, -1.0) if loss in ("logistic", "hinge") else y


def _distance(net: ManyLearner, prompt: np.ndarray) -> float:
    found = net(prompt, path=True, outside="ignore") - net.exact(prompt, path=True)
    return float(np.linalg.norm(found, axis=1).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", [0.0, 0.2])
def test_the_same_weights_run_every_loss_with_rate_and_penalty(
    exact_net: ManyLearner, loss: str, penalty: float
) -> None:
    X, y = regression()
    prompt = exact_net.prompt(X, _labels(loss, y), loss=loss, rate=0.1, penalty=penalty)
    target = Descent(named_loss(loss), 30, 0.1, 5, True, penalty, layout="transformer")
    A, labels = np.column_stack([X, np.ones(64)]), target.loss.checked_labels(_labels(loss, y))
    A = labels[:, None] * A if loss == "hinge" else A
    own = target.path(A, labels)
    assert np.abs(exact_net.exact(prompt, path=True) - own).max() <= 1e-14
    assert np.abs(exact_net(prompt, path=True) - own).max() <= 1e-10


@pytest.mark.slow_for(
    "float64-tiny entries",
    "float32-columns of zeros",
    "float32-one label far out",
    "float32-fewer examples than features",
)
@pytest.mark.parametrize(("net", "name"), list(product(DTYPES, AWKWARD)), indirect=["net"])
def test_no_prompt_breaks_the_certificate_of_many_learners(net: ManyLearner, name: str) -> None:
    turn = list(AWKWARD).index(name)
    loss, slope = LOSSES[turn % 4], (1.0, 0.25, 1.0, 2.5)[turn % 4]
    X, y = AWKWARD[name](np.random.default_rng(turn))
    A = np.column_stack([X, np.ones(len(X))])
    rate = 1.9 / (slope * float(np.linalg.eigvalsh(A.T @ A / len(A))[-1]) + 0.1)
    prompt = net.prompt(X, _labels(loss, y), loss=loss, rate=rate, penalty=0.1 * (turn % 2))
    certificate = net.certify(prompt)
    assert certificate.kind == "proven"
    assert _distance(net, prompt) <= certificate.bound


def test_a_given_prompt_is_proven_within_1e_7(exact_net: ManyLearner) -> None:
    X, y = regression()
    prompt = exact_net.prompt(X, y, loss="huber", rate=0.3, penalty=0.1)
    assert _distance(exact_net, prompt) <= exact_net.certify(prompt).bound <= 1e-7


def test_minibatches_carry_their_weights_on_as_the_start_of_the_next_prompt(exact_net: ManyLearner) -> None:
    X, y = regression()
    w = np.zeros(6)
    for part in (slice(0, 32), slice(32, 64)):
        prompt = exact_net.prompt(X[part], y[part], loss="squared", rate=0.1, start=w)
        assert np.array_equal(exact_net(prompt, path=True)[0], w)
        assert _distance(exact_net, prompt) <= exact_net.certify(prompt).bound
        w = exact_net(prompt)


def test_many_prompts_at_once_tensors_and_a_file_give_the_same(exact_net: ManyLearner, tmp_path: Path) -> None:
    X, y = regression()
    prompts = np.stack([exact_net.prompt(X, y, loss="squared", rate=rate) for rate in (0.1, 0.3)])
    both = exact_net(prompts)
    assert both.shape == (2, 6)
    assert np.abs(both[1] - exact_net(torch.from_numpy(prompts[1])).numpy()).max() <= 1e-11
    exact_net.save(tmp_path / "many.safetensors")
    loaded = ah.load(tmp_path / "many.safetensors")
    assert isinstance(loaded, ManyLearner)
    assert np.array_equal(loaded(prompts), both)
    assert np.array_equal(loaded.exact(prompts), exact_net.exact(prompts))


def test_a_step_costs_a_multiple_of_the_rows(exact_net: ManyLearner) -> None:
    for attention in exact_net.module().attentions():
        few, many = attention.logits(1000), attention.logits(100_000)
        assert many <= 101 * few


def _changed(net: ManyLearner, change: str) -> Network:
    first, repeat, last = net.layers[1:]
    assert isinstance(repeat, Repeat)
    score, link, collect = repeat.layers
    assert isinstance(score, Attention)
    assert isinstance(link, Attention)
    assert isinstance(collect, Attention)
    slots = Slots(net.learners, link.heads)
    registers = net.embed.registers.copy()  # type: ignore[union-attr]
    match change:
        case "other links are within reach":
            registers[2:, slots.gates] *= 2.0**-70
        case "negative rows have another link":
            registers[-1, slots.value[0]] += 1.5
        case "w is an example":
            registers[0, slots.columns.no_example] = 0
        case "scores see more registers":
            score = replace(score, grid=(3,))
        case "a query is not its row":
            query = score.query.copy()
            query[0, 0, 0] *= 2
            score = replace(score, query=query)
        case "sharpness is no power of two":
            collect = replace(collect, query=1.5 * collect.query)
    layers = [replace(net.embed, registers=registers), first, Repeat((score, link, collect), repeat.times), last]
    return Network(layers, output="state", program=net.program, derivation=net.derivation)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        "other links are within reach",
        "negative rows have another link",
        "w is an example",
        "scores see more registers",
        "a query is not its row",
        "sharpness is no power of two",
    ],
)
def test_a_changed_network_has_no_proof(exact_net: ManyLearner, change: str) -> None:
    with pytest.raises(CertificateError):
        step_of(_changed(exact_net, change), exact_net.learners)


def test_anchors_of_other_links_that_come_within_reach_leave_no_proof(exact_net: ManyLearner) -> None:
    learners, step = exact_net.learners, exact_net.step
    assert isinstance(step, ScoreLinks)
    rows = rows_of(exact_net.prompt(*regression(), loss="squared", rate=0.1), learners)

    def total(**changes: Any) -> float:
        return bound_for_rows(replace(step, **changes), learners, rows, arithmetic_of("float64")).total

    assert np.isfinite(total())
    assert total(far=2.0**10) == np.inf
    assert total(far=2.0**1010) == np.inf


def test_registers_that_are_no_anchors_leave_no_proof_where_they_are_heard(exact_net: ManyLearner) -> None:
    """Anchors whose offsets are as low as theirs, and anchors that all fall to one side, are not louder than these."""
    learners, step = exact_net.learners, exact_net.step
    assert isinstance(step, ScoreLinks)
    rows = rows_of(exact_net.prompt(*regression(), loss="squared", rate=0.1), learners)
    link = step.links[0]
    assert isinstance(link, HeadLink)
    (part,) = link.parts
    for wrong in (
        replace(part, offsets=part.offsets - 2.0**20),
        replace(part, slopes=part.slopes - part.slopes[0] + 1),
    ):
        changed = replace(step, links=(replace(link, parts=(wrong,)), *step.links[1:]))
        with pytest.raises(CertificateError, match="come within reach"):
            bound_for_rows(changed, learners, rows, arithmetic_of("float64"))


def test_links_so_large_that_they_lift_the_row_of_the_start_have_no_proof() -> None:
    """exp(16) times the sharpness is not small beside what lowers the links of those who are no examples."""
    net = incontext.many_learners(("squared", "poisson"), steps=2, features=2, reach=16.0)
    prompt = net.prompt([[0.5, 0.25], [1.0, -1.0]], [1.0, 0.0], loss="squared", rate=0.1)
    with pytest.raises(CertificateError, match="come within reach"):
        net.certify(prompt)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"loss": "poisson"}, "this network runs squared, logistic"),
        ({"loss": "logistic"}, "labels such as"),
        ({"rate": -1.0}, "rate=-1.0"),
        ({"penalty": np.nan}, "penalty=nan"),
        ({"start": [0.0]}, "6 finite weights"),
    ],
)
def test_bad_prompts_are_named(exact_net: ManyLearner, given: dict[str, Any], words: str) -> None:
    X, y = regression()
    with pytest.raises(AnchorheadError, match=words):
        exact_net.prompt(X, y, **{"loss": "squared", "rate": 0.1, **given})


def test_a_rate_too_large_and_arrays_that_are_no_prompt_are_refused(exact_net: ManyLearner) -> None:
    X, y = regression()
    prompt = exact_net.prompt(X, y, loss="squared", rate=5.0)
    with pytest.raises(AnchorheadError, match="rate is too large"):
        exact_net(prompt)
    prompt[0, 0] += 1
    with pytest.raises(AnchorheadError, match="no prompt of many learners"):
        exact_net(prompt)
    with pytest.raises(AnchorheadError, match="penalty needs"):
        incontext.many_learners(["logistic"], features=5, steps=3).prompt(
            X, _labels("logistic", y), "logistic", 0.1, 1.0
        )
