"""Several threads build at once what each would build alone, whatever precision of flint a user has set."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import flint
import pytest

import anchorhead as ah
from anchorhead.language.expressions.precision import precision, working_bits
from anchorhead.language.targets import ScalarTarget, parse

BUILDS = {
    "a grid": lambda k: ah.approximate("sin(3*x)*cos(2*y)", on={"x": (-1, 1), "y": (-1, 1 + k / 8)}, within=1e-2),
    "another grid": lambda k: ah.approximate(f"exp(x*y/{k + 1})", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-4),
    "a head": lambda k: ah.head("tanh", (-4, 4 + k), anchors=2).network,
    "a function of one variable": lambda k: ah.approximate(f"tanh(2*x)*{k + 2}", on={"x": (-1, 1)}, within=1e-9),
}


def facts(network):
    return network.certificate.bound, [weight.numpy().tobytes() for weight in network.module().state_dict().values()]


@pytest.fixture
def switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_four_threads_build_what_one_builds():
    with ThreadPoolExecutor(len(BUILDS)) as pool:
        together = list(pool.map(lambda build: facts(build(1)), BUILDS.values()))
    alone = [facts(build(1)) for build in BUILDS.values()]
    assert together == alone


@pytest.mark.parametrize("name", BUILDS)
def test_what_is_built_does_not_depend_on_the_precision_that_a_user_has_set(name):
    found = []
    for bits in (12, 400):
        with flint.ctx.workprec(bits):
            found.append(facts(BUILDS[name](5)))
            assert flint.ctx.prec == bits
    assert found[0] == found[1]


def test_a_thread_keeps_its_precision_while_others_set_theirs():
    def seen(bits):
        found = set()
        for _ in range(10):
            with precision(bits):
                time.sleep(1e-4)  # lets the others run
                found.add(working_bits())
                with precision(2 * bits):
                    time.sleep(1e-4)
                    found.add(working_bits() // 2)
                found.add(round((1 / flint.arb(3)).rel_accuracy_bits(), -1))
        return found

    every = (30, 60, 120, 240)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(seen, every)) == [{bits} for bits in every]


def test_the_precision_is_given_back_after_an_error():
    before = flint.ctx.prec
    with pytest.raises(ah.AnchorheadError):
        ScalarTarget((parse("log(x)"),), -1.0, 1.0)
    with pytest.raises(KeyError), precision(99):
        raise KeyError
    assert flint.ctx.prec == before
