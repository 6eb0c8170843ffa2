"""Learners are verified for a box and for a prompt, and what is tampered with is refused, or its bound still holds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.constructions.learners.learner import Learner
from anchorhead.verify import verify
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored, read_file
from anchorhead.verify.grammar import read_network
from anchorhead.verify.learners.learner import bound_for_learner, bound_for_one_prompt
from anchorhead.verify.learners.target import read_descent
from anchorhead.verify.programs.program import read_program

from ..tampering.search import breaks
from .learner_files import largest_error, loaded, tampered

SMALL = {"steps": 2, "rate": 0.05, "features": 2, "on": (-1, 1), "examples": 3}
TWO = incontext.link("s + sin(s)/2 + s*y**2/4 - y", "g(s, y)")
LINE, BENT = incontext.link("2*x", "phi(s) - y"), incontext.link("x + tanh(x)", "phi(s - y)")
TANH = incontext.link("tanh(x)", "phi(s - y)")
WIDE = {"scores": (-3, 3), "labels": (-1, 1)}
QUICK = {
    "squared": {},
    "squared, float32": {"dtype": "float32"},
    "ridge with an intercept": {"decay": 0.3, "intercept": True, "steps": 20, "examples": 64},
    "momentum": {"momentum": 0.8, "decay": 0.1, "intercept": True, "steps": 20, "examples": 16},
    "lasso": {"threshold": 0.1, "dtype": "float32"},
    "logistic": {"loss": "logistic"},
    "logistic, float32": {"loss": "logistic", "dtype": "float32"},
    "hinge": {"loss": "hinge", "intercept": True},
    "squared, transformer": {"layout": "transformer"},
    "squared, sequence": {"layout": "sequence", "momentum": 0.5, "decay": 0.1, "intercept": True},
    "squared, sequence, many examples": {"layout": "sequence", "steps": 10, "features": 3, "examples": 20},
    "logistic, sequence, float32": {"layout": "sequence", "loss": "logistic", "dtype": "float32"},
    "two variables": {"loss": TWO, "layout": "transformer", "scores": (-2, 2), "labels": (-1, 1), "dtype": "float32"},
    "two variables, sequence": {"loss": TWO, "layout": "sequence", "scores": (-2, 2), "labels": (-1, 1)},
    "poisson, sequence": {"loss": "poisson", "layout": "sequence", "labels": (-2, 2), "on": (-4, 4), "steps": 6},
    "poisson, far from 0": {"loss": "poisson", "steps": 1, "rate": 0.5, "features": 3, "examples": 5, "on": (0, 1)},
    "logistic with momentum, sequence": {
        "loss": "logistic", "layout": "sequence", "steps": 10, "rate": 0.2, "examples": 5, "on": (-0.5, 0.5),
        "momentum": 0.5, "intercept": True,
    },
    "huber, sequence, steep": {
        "loss": "huber", "layout": "sequence", "dtype": "float32", "steps": 5, "rate": 0.2, "examples": 20,
        "on": (-3, 3),
    },
    "tanh, sequence": {"loss": TANH, "layout": "sequence", **WIDE},
    "a line of one's own": {"loss": LINE, "layout": "transformer", "scores": (-3, 3), "labels": (-1, 1)},
}  # fmt: skip
SLOW = {
    "huber": {"loss": "huber", "dtype": "float32"},
    "absolute": {"loss": "absolute", "decay": 0.1, "intercept": True},
    "quantile": {"loss": "quantile"},
    "poisson": {"loss": "poisson", "labels": (-2, 2)},
    "logistic with momentum": {"loss": "logistic", "momentum": 0.5, "decay": 0.1},
    "logistic lasso": {"loss": "logistic", "threshold": 0.1},
    "logistic, twenty steps": {"loss": "logistic", "steps": 20, "rate": 0.3, "on": (-4, 4), "examples": 64},
    "huber, twenty steps": {"loss": "huber", "steps": 20, "rate": 0.3, "on": (-4, 4), "examples": 64},
    "a hundred steps": {"steps": 100, "rate": 0.3, "features": 5, "on": (-4, 4), "examples": 64},
    "two variables and a threshold": {**WIDE, "loss": TWO, "layout": "transformer", "threshold": 0.1},
    "two variables and momentum": {**WIDE, "loss": TWO, "layout": "transformer", "momentum": 0.5, "intercept": True},
    "two variables and momentum, sequence": {**WIDE, "loss": TWO, "layout": "sequence", "momentum": 0.5},
    "a residual of one's own": {**WIDE, "loss": BENT, "layout": "transformer"},
    "a residual of one's own, sequence": {**WIDE, "loss": BENT, "layout": "sequence", "dtype": "float32"},
    "huber, sequence": {"loss": "huber", "layout": "sequence", "dtype": "float32"},
    "hinge, sequence": {"loss": "hinge", "layout": "sequence", "intercept": True},
    "quantile, sequence": {"loss": "quantile", "layout": "sequence", "decay": 0.1},
    "logistic, sequence, four steps": {"loss": "logistic", "layout": "sequence", "steps": 4, "dtype": "float32"},
    "logistic, sequence, twenty steps": {"loss": "logistic", "layout": "sequence", "steps": 20, "momentum": 0.5},
    "elastic net": {"threshold": 0.1, "decay": 0.1, "intercept": True, "steps": 10, "rate": 0.3},
}


@cache
def learner(name: str) -> Learner:
    return incontext.gradient_descent(progress=False, **SMALL | {**QUICK, **SLOW}[name])  # type: ignore[arg-type]


@cache
def stored(name: str) -> Stored:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        learner(name).save(path)
        return read_file(path)


def found_for_box(file: Stored, certificate: dict | None = None) -> float:
    stated = dict(file.certificate or {}) | (certificate or {})
    low, high = (np.array(stated["on"][end]) for end in ("low", "high"))
    network, program = read_network(file), read_program(file)
    return bound_for_learner(network, program, low, high, stated["conditions"], stated["bound"])[0]


def data(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples in the box, labels of the loss."""
    net, rng = learner(name), np.random.default_rng(seed)
    n = int(rng.integers(1, net.descent.examples + 1)) if net.embed.tokens is None else net.descent.examples
    high = net.certificate.on.high  # type: ignore[union-attr]
    X = rng.uniform(-1, 1, (n, net.descent.features)) * high[:-2] * rng.choice([0.1, 0.5, 1.0])
    if net.descent.loss.name in ("logistic", "hinge"):
        return X, rng.choice([-1.0, 1.0], n)
    return X, rng.uniform(0 if net.descent.loss.name == "poisson" else -1, 1, n) * high[-1]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_stated_bound_follows_for_all_prompts_of_the_box(name: str) -> None:
    assert found_for_box(stored(name)) <= learner(name).certificate.bound  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_stated_bound_follows_for_one_prompt(name: str) -> None:
    net, file = learner(name), stored(name)
    prompt = np.asarray(net.prompt(*data(name, 1)))
    bound = net.certify(prompt, progress=False).bound
    assert bound_for_one_prompt(read_network(file), read_program(file), prompt, bound) <= bound


@pytest.mark.parametrize(
    ("name", "shown"), [("squared", "(x, 1, y)"), ("two variables", "(x, 1, y)"), ("hinge", "(y x, y, 1)")]
)
def test_the_report_says_what_prompts_show(name: str, shown: str, tmp_path: Path) -> None:
    """The same program may be learned from rows of either kind."""
    found = verify(file_of(name, tmp_path))
    assert found.verified
    assert f"prompts show examples as {shown}" in "\n".join(found.assumptions)


def file_of(name: str, folder: Path) -> Path:
    learner(name).save(folder / "learner.safetensors")
    return folder / "learner.safetensors"


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_files_of_learners_are_verified(name: str, tmp_path: Path) -> None:
    found = verify(file_of(name, tmp_path))
    assert found.verified, found.why
    assert 0 < found.found <= found.stated == learner(name).certificate.bound  # type: ignore[union-attr]


TRIED = [
    *("squared, float32", "lasso", "squared, transformer", "logistic, float32", "hinge"),
    *("squared, sequence", "logistic, sequence, float32", "two variables", "two variables, sequence"),
]
FEW, MANY = 3, pytest.param(40, marks=pytest.mark.slow)
"""Prompts that are tried."""


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("name", TRIED)
def test_no_prompt_exceeds_what_was_found(name: str, count: int) -> None:
    """What the verifier finds itself holds, not only what is stated."""
    net, file = learner(name), stored(name)
    network, program, bound = read_network(file), read_program(file), found_for_box(file)
    for seed in range(count):
        prompt = np.asarray(net.prompt(*data(name, seed)))
        own = bound_for_one_prompt(network, program, prompt, bound)
        error = largest_error(net(prompt, path=True), read_descent(program), prompt)
        assert 0 < error <= min(bound, own)


def test_a_bound_is_found_where_none_is_stated() -> None:
    """Close to the one that the library states for the prompt."""
    net, file = learner("logistic"), stored("logistic")
    prompt = np.asarray(net.prompt(*data("logistic", 1)))
    found = bound_for_one_prompt(read_network(file), read_program(file), prompt)
    assert found <= net.certify(prompt, progress=False).bound <= 2 * found


def accepted(file: Stored, certificate: dict | None = None) -> bool:
    stated = dict(file.certificate or {}) | (certificate or {})
    try:
        return found_for_box(file, certificate) <= stated["bound"]
    except NotVerified:
        return False


def count_accepted(name: str, tries: int) -> int:
    """How many of so many tamperings are accepted; those must do what the original does, up to the bound."""
    rng, file, net = np.random.default_rng(len(name)), stored(name), learner(name)
    prompts = [np.asarray(net.prompt(*data(name, seed))) for seed in range(4)]
    target, count = read_descent(read_program(file)), 0
    for _ in range(tries):
        other = tampered(file, rng)
        if not accepted(other):
            continue
        count += 1
        network = loaded(other)
        for prompt in prompts:
            path = network(prompt, path=True, outside="ignore")  # type: ignore[call-arg]
            assert largest_error(path, target, prompt) <= file.certificate["bound"]  # type: ignore[index]
    return count


@pytest.mark.parametrize("name", ["squared", "squared, float32", "squared, sequence", "logistic, sequence, float32"])
def test_tampered_weights_are_refused_or_do_no_harm(name: str) -> None:
    """Weights that nothing live reads may change; few do."""
    assert count_accepted(name, 12) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in QUICK if name not in ("hinge", "logistic")), "huber, sequence"])
def test_many_tampered_weights_are_refused_or_do_no_harm(name: str) -> None:
    assert count_accepted(name, 150) <= 110


def _with_condition(name: str, kind: str, changes: dict) -> dict:
    conditions = [dict(one) for one in stored(name).certificate["conditions"]]  # type: ignore[index]
    for one in conditions:
        if one["kind"] == kind:
            one.update(changes)
    return {"conditions": conditions}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("at most so many examples", {"most": 4}),
        ("at most so many examples", {"most": 10**6}),
        ("safe rate", {"rate": 0.04}),
        ("safe rate", {"limit": 2.1}),
        ("safe rate", {"limit": -1.0}),
        ("safe rate", {"kind": "excluded"}),
        ("at most so many examples", {"kind": "at most"}),
    ],
)
def test_conditions_that_say_less_are_refused(kind: str, changes: dict) -> None:
    with pytest.raises(NotVerified):
        found_for_box(stored("squared"), _with_condition("squared", kind, changes))


CURVED = "poisson, sequence"
"""Refused: what is said of a curved link in another way. Less is given, or something else."""


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("safe curvature", {"rate": 0.01}),
        ("safe curvature", {"slope": 0.0}),
        ("safe curvature", {"slope": -1.0}),
        ("safe curvature", {"decay": -100.0}),
        ("safe curvature", {"limit": 1e9}),
        ("safe curvature", {"limit": 0.0}),
        ("safe curvature", {"kind": "smooth curvature"}),
        ("keeps within", {"quantity": "s - y"}),
        ("keeps within", {"low": 1.0, "high": -1.0}),
        ("keeps within", {"low": -1e9, "high": 1e9}),
        ("keeps within", {"high": True}),
        ("keeps within", {"kind": "safe rate"}),
    ],
)
def test_conditions_on_curved_links_are_minded(kind: str, changes: dict) -> None:
    """A prompt with steep examples that leaves the range would be covered otherwise."""
    assert accepted(stored(CURVED))
    assert not accepted(stored(CURVED), _with_condition(CURVED, kind, changes))


def test_a_larger_box_and_a_smaller_bound_do_not_follow() -> None:
    file = stored("squared")
    on = {end: [4 * x for x in file.certificate["on"][end]] for end in ("low", "high")}  # type: ignore[index]
    assert not accepted(file, {"on": on})
    assert not accepted(file, {"bound": 0.1 * file.certificate["bound"]})  # type: ignore[index]


@pytest.mark.parametrize("change", ["times", "rate", "decay", "start", "output"])
def test_another_program_or_structure_is_refused(change: str) -> None:
    file = stored("ridge with an intercept")
    network, program = dict(file.network), dict(file.program or {})
    tensors = dict(file.tensors)
    if change == "times":
        layers = [dict(row) for row in network["layers"]]
        layers[1]["times"] += 1
        network["layers"] = layers
    elif change == "output":
        network["output"] = "input"
    elif change == "rate":
        tensors["program.4/10.weight.1"] = 1.01 * tensors["program.4/10.weight.1"]
        tensors["program.4/10.weight.2"] = 1.01 * tensors["program.4/10.weight.2"]
    elif change == "decay":
        tensors["program.4/8.bias"] = 1.1 * tensors["program.4/8.bias"]
    else:
        tensors["program.3.bias"] = tensors["program.3.bias"] + 1e-3
    assert not accepted(replace(file, network=network, program=program, tensors=tensors))


def test_a_state_that_sees_itself_is_refused() -> None:
    file = stored("squared")
    name = "layers.1.0.key"
    key = np.array(file.tensors[name])
    assert (key <= -1600).sum() == 1
    key[key <= -1600] = -500.0
    with pytest.raises(NotVerified, match="w is read from other tokens"):
        found_for_box(replace(file, tensors={**file.tensors, name: key}))


def test_numbers_that_may_overflow_are_refused() -> None:
    on = {end: [sign * 1e30] * 4 for end, sign in (("low", -1), ("high", 1))}
    with pytest.raises(NotVerified, match="overflow"):
        found_for_box(stored("squared, float32"), {"on": on})


@pytest.mark.parametrize(
    ("row", "column"), [("v0", "w1"), ("v1", "asks"), ("v of the intercept", "v of the intercept")]
)
def test_a_speed_that_changes_before_it_is_used_is_refused(row: str, column: str) -> None:
    """The skip of the first layer of a step hands the speeds on to the second, which adds them to w."""
    name, weights = "squared, sequence", "layers.1.0.skip.weight"
    features = list(learner(name).embed.features)
    file = stored(name)
    array = np.array(file.tensors[weights])
    array[features.index(row), features.index(column)] += 0.5
    assert accepted(file)
    assert not accepted(replace(file, tensors={**file.tensors, weights: array}))


def with_factors_that_vanish(file: Stored, by: float = 2.0**-123) -> Stored:
    """The scores of a file with keys times a power of two, and queries divided by it: the same numbers, but that
    entries times so little underflow."""
    key, query = "layers.1.0.key", "layers.1.0.query"
    return replace(file, tensors={**file.tensors, key: file.tensors[key] * by, query: file.tensors[query] / by})


def test_factors_that_vanish_are_refused() -> None:
    name = "logistic, float32"
    file, net = stored(name), learner(name)
    other = with_factors_that_vanish(file)
    assert breaks(loaded(other), np.random.default_rng(0), net.descent.loss) is not None  # where underflow is to 0
    assert accepted(file)
    assert not accepted(other)


def test_fewer_examples_than_the_network_takes_are_refused() -> None:
    name = "squared, sequence"
    with pytest.raises(NotVerified, match="the certificate is for 2 examples; the network takes 3"):
        found_for_box(stored(name), _with_condition(name, "at most so many examples", {"most": 2}))


@pytest.mark.parametrize("head", [0, 1])
def test_every_register_hears_its_own_example_alone(head: int) -> None:
    """What lowers the anchors of other examples is looked at for all registers, not for the first."""
    name, weights = "logistic, sequence, float32", "layers.1.0.query"
    file, net = stored(name), learner(name)
    column = list(net.embed.features).index("asks for no bit 0 of the example")  # type: ignore[arg-type]
    query = np.array(file.tensors[weights])
    query[head, :, column] *= 2.0**-40
    other = replace(file, tensors={**file.tensors, weights: query})
    assert breaks(loaded(other), np.random.default_rng(0), net.descent.loss) is not None
    assert accepted(file)
    assert not accepted(other)
