"""What certificates for boxes of prompts say in words is minded at a call, on the safe side, and checked."""

import re
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.errors import AnchorheadError, CertificateError, OutsideWarning
from anchorhead.incontext.measured import measured_certificate
from anchorhead.proof.descent_given import given_words, words_for_box
from anchorhead.targets.descent import LAYOUTS, Descent, LearnerLayout
from anchorhead.targets.losses import named_loss


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
    with pytest.warns(OutsideWarning, match=r"plus the decay\) is at most 0\.1059"):
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


def test_a_prompt_that_comes_nearer_to_the_ends_of_the_range_than_stated_is_warned_of() -> None:
    """The head serves up to 3; errors in float32 may take scores that exact descent keeps below it beyond it."""
    net = incontext.gradient_descent("poisson", steps=20, rate=0.02, features=3, dtype="float32")
    certificate = net.certificate
    assert certificate is not None
    assert certificate.kind == "proven"
    stated = re.search(r"keeps s between \S+ and (\S+)$", certificate.target)
    assert stated is not None
    end = float(stated[1])

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
    given = given_words(target, slope, safe, (low, high), margin)
    number = r"(-?[\d.e+-]+)"
    found = re.fullmatch(f".* times {number} times .* at most {number} and .* between {number} and {number}", given)
    assert found is not None
    said = [Fraction(text) for text in found.groups()]
    room = Fraction(1, 10**4)
    assert Fraction(slope) <= said[0] <= Fraction(slope) * (1 + room)
    assert Fraction(safe) * (1 - room) <= said[1] <= Fraction(safe)
    assert Fraction(low) + Fraction(margin) <= said[2] <= said[3] <= Fraction(high) - Fraction(margin)
    most = re.search(rf"derivative at most {number}\)", words_for_box(target, given))
    assert most is not None
    assert Fraction(most[1]) <= 2 * (1 + Fraction(mu))


def test_the_check_refuses_words_that_do_not_follow() -> None:
    net = incontext.gradient_descent("huber", steps=2, rate=0.1, features=2, examples=4)
    certificate = net.certificate
    assert certificate is not None
    assert "eigenvalue" in certificate.target
    assert ah.check(net) is certificate
    shorter = certificate.target[: certificate.target.index(", for which")]
    for words in (shorter, certificate.target.replace("at most 4 examples", "at most 5 examples"), ""):
        with pytest.raises(CertificateError, match="what follows is for"):
            ah.check(net.with_(certificate=replace(certificate, target=words)))


def test_the_check_of_a_certificate_for_one_prompt_says_what_establishes_it() -> None:
    net = incontext.gradient_descent(steps=2, rate=0.1, features=2, examples=4, layout="sequence")
    carries = net.with_(certificate=net.certify(net.prompt(*_data(1.0, 4))))
    with pytest.raises(CertificateError, match=r"for one prompt.*net\.certify\(prompt\)"):
        ah.check(carries)
    net = incontext.gradient_descent(steps=2, rate=0.1, features=2, examples=4)
    certificate = net.certify(net.prompt(*_data(1.0, 4)))
    with pytest.raises(AnchorheadError, match=r"for one prompt.*net\.certify\(prompt\)"):
        net.with_(certificate=certificate)


def test_a_measured_certificate_looks_at_all_steps() -> None:
    """Of one example the squared loss ends at a residual of 0, where nothing errs, and early errors are forgotten."""
    net = incontext.gradient_descent(steps=40, rate=0.4, features=1, examples=1, on=(-2, 2))
    whole = measured_certificate(net, net.descent, np.array([2.0]), 4.0, 1.0, "a test").bound
    for steps in (1, 3):
        short = net.with_steps(steps)
        assert measured_certificate(short, short.descent, np.array([2.0]), 4.0, 1.0, "a test").bound <= whole


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
