"""How far work has come: one signature everywhere, and a line that those who wait see after three seconds."""

from __future__ import annotations

import inspect
import io
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext, lab, progress
from anchorhead.progress import Line, Status, at_its_pace, lasting, progress_line

WITH_PROGRESS = {
    "head": lambda given: ah.head("sin", (-1, 1), within=0.1, progress=given),
    "approximate": lambda given: ah.approximate("x + y", {"x": (0, 1), "y": (0, 1)}, 0.1, progress=given),
    "convert": lambda given: ah.convert(incontext, progress=given),
    "plan": lambda given: ah.plan("sin(x)", (-1, 1), 0.1, progress=given),
    "check": lambda given: ah.check(ah.head("sin", (-1, 1), within=0.1), progress=given),
    "export": lambda given: ah.export(ah.head("sin", (-1, 1), within=0.1), to="torch", progress=given),
    "truncated_linear": lambda given: ah.truncated_linear([[1.0]], [0.0], -1, 1, anchors=4, progress=given),
    "gradient_descent": lambda given: incontext.gradient_descent(steps=1, rate=0.1, features=1, progress=given),
    "frontier": lambda given: lab.frontier("sin", (-1, 1), most=2, progress=given),
    "single_head_sweep": lambda given: lab.single_head_sweep([4], 1, progress=given),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    """A terminal, in which the line's first wait is over at once."""
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda: SimpleNamespace(columns=60))
    return Terminal()


def until(stream, text):
    """Waits for the line's thread, which needs no time but its turn."""
    for _ in range(10_000):
        if text in stream.getvalue():
            return
        time.sleep(0.001)
    raise AssertionError(f"{text!r} is not in {stream.getvalue()[:500]!r}")


@pytest.mark.parametrize("name", WITH_PROGRESS)
def test_what_is_no_function_is_refused_in_words(name):
    for odd in (5, "yes", [], object()):
        with pytest.raises(ah.AnchorheadError, match="True or False, or a function that is called with a Status"):
            WITH_PROGRESS[name](odd)


def test_progress_has_one_signature_wherever_it_is_public():
    functions = [getattr(ah, name) for name in ah.__all__ if inspect.isfunction(getattr(ah, name))]
    functions += [getattr(lab, name) for name in lab.__all__ if inspect.isfunction(getattr(lab, name))]
    functions += [incontext.gradient_descent, incontext.Learner.certify]
    found = [inspect.signature(one, eval_str=True).parameters.get("progress") for one in functions]
    told = [(one.default, one.annotation) for one in found if one is not None]
    assert len(told) >= 12
    assert set(told) == {(True, progress.Progress | bool | None)}
    assert "proving" not in inspect.signature(ah.approximate).parameters


def test_functions_are_told_what_is_done():
    told: list[Status] = []
    made = ah.approximate("exp(x*y)", {"x": (-1, 1), "y": (-1, 1)}, 1e-2, progress=told.append)
    grid = next(layer.grid for layer in made.layers if getattr(layer, "grid", None))
    assert any(status.anchors == np.prod(grid) for status in told)
    assert told[-1].doing.startswith("proving")
    assert told[-1].share == 1.0
    assert all(isinstance(status, Status) for status in told)


def test_nothing_is_written_where_no_one_sees_it(capsys, monkeypatch):
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    with progress_line(True, "solving") as tell:
        tell(Status("solving", 5, 0.1))
    assert capsys.readouterr() == ("", "")


def test_nothing_is_written_in_the_first_seconds(terminal, monkeypatch):
    monkeypatch.setattr(progress, "AFTER_S", 1000.0)
    with progress_line(True, "solving", terminal) as tell:
        tell(Status("solving", 5, 0.1))
    assert terminal.getvalue() == ""


def test_a_line_is_renewed_and_taken_away(clock, terminal, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.001)
    with progress_line(True, "solving", terminal) as tell:
        until(terminal, "\rsolving (0 s)")
        tell(Status("proving", share=0.4, left=20))
        until(terminal, "\rproving: 40%, about 20 s left [########------------] (0 s)")
    written = terminal.getvalue()
    assert "\n" not in written
    assert written.endswith("\r")
    assert not written.split("\r")[-2].strip()


def test_lines_are_no_longer_than_the_terminal_is_wide(clock, terminal):
    line = Line("a" * 100, terminal)
    line.renew()
    clock[0] += 7
    line(Status("short", share=2.0))
    line.renew()
    assert terminal.getvalue() == f"\r{'a' * 59}\r{'short: 200% [####################] (7 s)':<59}"


def test_false_and_a_function_of_ones_own_write_nothing(terminal):
    told = []
    for given in (False, None, told.append):
        with progress_line(given, "solving", terminal) as tell:
            tell(Status("solving"))
    assert terminal.getvalue() == ""
    assert told == [Status("solving")]


def test_a_line_within_a_line_is_that_line(terminal):
    with progress_line(True, "outer", terminal) as outer, progress_line(True, "inner", terminal) as inner:
        assert inner is outer
        with progress_line(False, "quiet", terminal) as quiet:
            assert quiet is not outer
    with progress_line(True, "after", terminal) as after:
        assert after is not outer


def test_a_line_is_taken_away_when_the_work_fails(terminal):
    def fail():
        with progress_line(True, "solving", terminal):
            until(terminal, "solving")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert terminal.getvalue().endswith("\r")


def test_notebooks_are_watched_and_other_processes_are_not(monkeypatch):
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    plain = io.StringIO()
    assert not progress._watched(plain)
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert progress._watched(plain)
    worker = SimpleNamespace(current_process=lambda: SimpleNamespace(name="LokyProcess-1"))
    monkeypatch.setitem(sys.modules, "multiprocessing.process", worker)
    assert not progress._watched(plain)


def test_what_is_left_goes_on_at_the_pace_of_what_is_done(clock):
    told = []
    counting = at_its_pace(told.append, "proving")
    clock[0] += 10
    counting(0.25, 5.0, 15.0)
    assert told == [Status("proving", share=0.25, left=30.0)]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status("loading"), "loading"),
        (Status("solving", 1200, 1.234e-5), "solving: 1,200 anchors, error 1.2e-05"),
        (Status("proving", 1), "proving: 1 anchor"),
        (Status("fitting 40 neurons", error=0.5), "fitting 40 neurons: error 0.5"),
        (Status("proving", share=0.4, left=240), "proving: 40%, about 4 min left"),
    ],
)
def test_a_status_in_words(status, words):
    assert str(status) == words


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "about 0 s"), (41, "about 41 s"), (240, "about 4 min")])
def test_times_in_words(seconds, text):
    assert lasting(seconds) == text
