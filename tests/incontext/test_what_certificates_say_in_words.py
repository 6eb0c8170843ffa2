"""What certificates for boxes of prompts hold for is data: minded at a call, on the safe side, and checked."""

import re
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.conditions import KeepsWithin, SafeCurvature, SafeRate
from anchorhead.constructions.learners.measured import measured_certificate
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.language.targets.descent import LAYOUTS, Descent, LearnerLayout
from anchorhead.language.targets.losses import named_loss
from anchorhead.lemmas.learners.given import conditions_for_box, given_conditions


def _data(size: float, n: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.choice([-size, size], (n, 2))
    return X, (X[:, 0] > 0).astype(float)


@pytest.mark.parametrize("layout", ["transformer", "sequence"])
def test_a_prompt_beyond_the_stated_curvature_is_warned_of_once_or_refused(layout: LearnerLayout) -> None:
    net = incontext.gradient_descent(
        "logistic", steps=3, rate=0.3, features=2, momentum=0.7, decay=0.1, examples=16, layout=layout
    )
    assert net.certificate is not None
    assert net.certificate.kind == "proven"
    limit = 2 * 0.3**2 / 1.7
    X = _data(1.0)[0]
    unit = float(np.linalg.eigvalsh(X.T @ X / len(X))[-1])
    # here 0.3 (eigenvalue / 4 + 0.1) is the limit
    size = np.sqrt(4 * (limit / 0.3 - 0.1) / unit)
    inside, beyond = (net.prompt(*_data(factor * size)) for factor in (0.999, 1.001))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(inside)
        net(beyond, outside="ignore")
    with pytest.raises(AnchorheadError, match=r"eigenvalue of the mean of x x'.*net\.certify\(prompt\)"):
        net(beyond, outside="raise")
    with pytest.warns(OutsideWarning, match=r"plus the decay 0\.1\) is at most 0\.10588"):
        net(beyond)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(net.prompt(*_data(1.01 * size)))
        incontext.trace(net.with_(), beyond)


def test_a_straight_link_asks_no_more_than_a_safe_rate() -> None:
    X, y = _data(1.0)
    for layout in LAYOUTS[:2]:
        net = incontext.gradient_descent(
            "squared", steps=3, rate=0.4, features=2, momentum=0.7, examples=16, layout=layout
        )
        net(net.prompt(X, y), outside="raise")


@pytest.mark.slow
def test_a_prompt_that_comes_nearer_to_the_ends_of_the_range_than_stated_is_warned_of() -> None:
    """The head serves up to 3; errors in float32 may take scores that exact descent keeps below it beyond it."""
    net = incontext.gradient_descent("poisson", steps=20, rate=0.02, features=3, dtype="float32")
    certificate = net.certificate
    assert certificate is not None
    assert certificate.kind == "proven"
    stated = certificate.condition(KeepsWithin)
    assert stated is not None
    end = stated.high

    def prompt(x: float) -> np.ndarray:
        return net.prompt([[x, 0.0, 0.0]], [15.0])

    def reaches(x: float) -> float:
        """The last score, which is the largest."""
        return float(net.exact(prompt(x))[0] * x)

    low, high = 0.0, 1.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reaches(middle) < end else (low, middle)
    beyond = prompt(low * (1 + 1e-3))
    assert end < reaches(low * (1 + 1e-3)) < 3
    net(prompt(low * (1 - 1e-3)), outside="raise")
    with pytest.raises(AnchorheadError, match=r"serves from -6 to 3, and the certificate is for what keeps between"):
        net(beyond, outside="raise")
    with pytest.warns(OutsideWarning, match="the link's argument reaches from"):
        net(beyond)


@pytest.mark.parametrize("rate", [0.1, 1.0, 2.0, 1 / 3, 1e-7, 0.30000000000000004, 123456.789])
def test_words_give_numbers_in_full(rate: float) -> None:
    words = str(Descent(named_loss("huber", delta=rate), 3, rate, 2, momentum=0.1 + 0.2, layout="transformer"))
    found = re.fullmatch(r"3 steps .* \(delta=(\S+)\), rate (\S+), with momentum (\S+)", words)
    assert found is not None
    assert [float(one) for one in found.groups()] == [rate, rate, 0.1 + 0.2]
    assert not any(one.endswith(".0") for one in found.groups())


@pytest.mark.parametrize("seed", range(20))
def test_stated_numbers_are_on_the_safe_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slope, safe, margin, mu = rng.uniform(0.1, 30), rng.uniform(0.01, 2), 10.0 ** rng.uniform(-20, -2), rng.uniform()
    low, high = -rng.uniform(1, 10), rng.uniform(1, 10)
    target = Descent(named_loss("logistic"), 3, 0.1, 2, momentum=mu, layout="transformer")
    _, rate, curvature, within = conditions_for_box(target, given_conditions(target, slope, safe, (low, high), margin))
    assert isinstance(rate, SafeRate)
    assert isinstance(curvature, SafeCurvature)
    assert isinstance(within, KeepsWithin)
    room = Fraction(1, 10**4)
    assert Fraction(slope) <= Fraction(curvature.slope) <= Fraction(slope) * (1 + room)
    assert Fraction(safe) * (1 - room) <= Fraction(curvature.limit) <= Fraction(safe)
    assert Fraction(low) + Fraction(margin) <= Fraction(within.low)
    assert Fraction(within.high) <= Fraction(high) - Fraction(margin)
    assert Fraction(rate.limit) <= 2 * (1 + Fraction(mu))
    # the words are no less safe than the data, which may have no more digits than they show
    number = r"(-?[\d.e+-]+)"
    said = re.search(f"times {number} times .* at most {number}$", str(curvature))
    assert said is not None
    assert [float(text) for text in said.groups()] == [curvature.slope, curvature.limit]
    said = re.search(f"between {number} and {number}$", str(within))
    assert said is not None
    assert [float(text) for text in said.groups()] == [within.low, within.high]
    said = re.search(f"at most {number}$", str(rate))
    assert said is not None
    assert Fraction(said[1]) <= Fraction(rate.limit)


def test_the_check_refuses_conditions_that_do_not_follow_and_takes_stricter_ones() -> None:
    net = incontext.gradient_descent("huber", steps=2, rate=0.1, features=2, examples=4)
    certificate = net.certificate
    assert certificate is not None
    examples, rate, curvature = certificate.conditions
    assert isinstance(curvature, SafeCurvature)
    assert ah.check(net).stated == certificate.bound
    for wrong in (
        (examples, rate),
        (replace(examples, most=5), rate, curvature),
        (examples, replace(rate, limit=2.1), curvature),
        (examples, rate, replace(curvature, rate=2 * curvature.rate)),
        (examples, rate, curvature, curvature),
        (),
    ):
        with pytest.raises(CertificateError):
            ah.check(net.with_(certificate=replace(certificate, conditions=wrong)))
    stricter = (examples, rate, replace(curvature, limit=0.5 * curvature.limit))
    ah.check(net.with_(certificate=replace(certificate, conditions=stricter)))


def test_a_certificate_for_one_prompt_is_verified() -> None:
    net = incontext.gradient_descent(steps=2, rate=0.1, features=2, examples=4, layout="sequence")
    prompt = net.prompt(*_data(1.0, 4))
    certificate = net.certify(prompt)
    assert ah.check(net.with_(certificate=certificate)).found <= certificate.bound
    assert ah.check(net, prompt=prompt).stated == certificate.bound
    with pytest.raises(CertificateError, match=r"does not follow|more than what is stated"):
        ah.check(net.with_(certificate=replace(certificate, bound=0.2 * certificate.bound, terms=())))
    net = incontext.gradient_descent(steps=2, rate=0.1, features=2, examples=4)
    certificate = net.certify(net.prompt(*_data(1.0, 4)))
    with pytest.raises(AnchorheadError, match=r"for one prompt.*net\.certify\(prompt\)"):
        net.with_(certificate=certificate)


@pytest.mark.slow
def test_a_measured_certificate_looks_at_all_steps() -> None:
    """Of one example the squared loss ends at a residual of 0, where nothing errs, and early errors are forgotten."""
    net = incontext.gradient_descent(steps=40, rate=0.4, features=1, examples=1, on=(-2, 2))
    whole = measured_certificate(net, net.descent, np.array([2.0]), 4.0, "a test").bound
    for steps in (1, 3):
        short = net.with_steps(steps)
        assert measured_certificate(short, short.descent, np.array([2.0]), 4.0, "a test").bound <= whole


@pytest.mark.parametrize("loss", [3, None, ["squared"]])
def test_a_loss_that_is_none_is_refused(loss: object) -> None:
    with pytest.raises(AnchorheadError, match=r"loss=.*the name of a loss"):
        incontext.gradient_descent(loss, steps=1, rate=0.1, features=2)  # type: ignore[arg-type]


def test_what_is_no_prompt_is_named() -> None:
    net = incontext.gradient_descent(steps=1, rate=0.1, features=2, examples=4)
    for use in (net, net.exact, net.certify):
        with pytest.raises(AnchorheadError, match=r"the prompt is None.*incontext\.prompt"):
            use(None)


def test_exact_descent_is_on_the_prompt_as_the_network_takes_it() -> None:
    net = incontext.gradient_descent(steps=5, rate=0.1, features=2, examples=16, dtype="float32")
    rng = np.random.default_rng(1)
    wide = incontext.prompt(rng.standard_normal((16, 2)), rng.standard_normal(16))
    narrow = wide.astype("float32")
    assert not np.array_equal(wide, narrow)
    assert np.array_equal(net.exact(wide), net.exact(narrow))
    assert net.certify(wide) == net.certify(narrow)
