"""Calls that are small run on one thread, large ones on as many as were set; and every thread keeps its own number."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.network.modules.network import NetworkModule
from anchorhead.network.threads import SMALL, threads_for

MANY = 3


@pytest.fixture(autouse=True)
def many_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(MANY)
    yield
    assert torch.get_num_threads() == MANY
    torch.set_num_threads(before)


@pytest.fixture
def seen(monkeypatch):
    """With how many threads every module of a network was run."""
    found = []
    for name in ("forward", "path"):
        run = getattr(NetworkModule, name)

        def watched(self, *given, run=run):
            found.append(torch.get_num_threads())
            return run(self, *given)

        monkeypatch.setattr(NetworkModule, name, watched)
    return found


def test_small_calls_run_on_one_thread_and_large_ones_on_all(seen):
    net = ah.head("tanh", (-3, 3), anchors=2).network
    net(np.zeros((5, 1, 1)))
    net.attention(np.zeros((5, 1, 1)))
    assert seen == [1, 1]
    seen.clear()
    net(np.zeros((SMALL, 1, 1)))
    assert seen == [MANY]


def test_learners_run_on_one_thread(seen):
    net = incontext.gradient_descent("squared", steps=3, features=2, rate=0.05, on=(-1, 1), examples=8)
    rng = np.random.default_rng(0)
    prompt = net.prompt(rng.uniform(-1, 1, (8, 2)), rng.uniform(-1, 1, 8))
    net(prompt)
    net(prompt, path=True)
    assert set(seen) == {1}


def test_fitting_runs_on_one_thread(monkeypatch):
    from anchorhead.network.modules.attention import AttentionModule

    found, run = set(), AttentionModule.forward
    monkeypatch.setattr(
        AttentionModule, "forward", lambda self, *given: found.add(torch.get_num_threads()) or run(self, *given)
    )
    X = np.random.default_rng(0).normal(size=(30, 2))
    incontext.Ridge().fit(X, X[:, 0])
    assert found == {1}


def test_the_number_is_restored_inside_one_another_and_after_errors():
    with threads_for(1):
        with threads_for(1):
            assert torch.get_num_threads() == 1
        with threads_for(SMALL + 1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == MANY
    with pytest.raises(KeyError), threads_for(1):
        raise KeyError
    with threads_for(SMALL + 1):
        assert torch.get_num_threads() == MANY


def test_threads_that_work_at_once_keep_their_own_numbers():
    """Each waits inside for all the others, so that all are inside together; then they leave in any order."""
    inside = threading.Barrier(4)

    def work(wanted):
        torch.set_num_threads(wanted)
        for _ in range(20):
            with threads_for(1):
                inside.wait()
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == wanted
        return torch.get_num_threads()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, (2, 3, 4, 5))) == [2, 3, 4, 5]
    torch.set_num_threads(MANY)


def test_a_thread_that_begins_while_another_is_at_small_work_is_not_held_to_one_for_good():
    def small_and_large():
        with threads_for(1):
            pass
        with threads_for(SMALL + 1):
            return torch.get_num_threads()

    with threads_for(1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(small_and_large).result() == MANY
