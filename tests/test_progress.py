"""The line for those who wait: nothing for short proofs, one line that is renewed for long ones."""

import io

import pytest

from anchorhead import progress
from anchorhead.progress import ProvingLine, lasting, proving_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_short_proof_writes_nothing(clock):
    stream = Terminal()
    line = ProvingLine(stream)
    for done in range(1, 10):
        clock[0] += 1
        line(done / 10, 9.5 - done)
    line.clear()
    assert stream.getvalue() == ""


def test_a_long_proof_writes_one_line_that_is_renewed_and_cleared(clock):
    stream = Terminal()
    line = ProvingLine(stream)
    for done in range(0, 100, 10):
        line(done / 100, 200.0 - 2 * done)
        clock[0] += 20
    line.clear()
    written = stream.getvalue()
    assert "\n" not in written
    assert written.startswith("\rproving: 0%, about 3 min left")
    assert "40%" in written
    assert written.split("\r")[-2].strip() == ""  # cleared


def test_a_line_is_not_renewed_all_the_time(clock):
    stream = Terminal()
    line = ProvingLine(stream)
    for _ in range(1000):
        line(0.5, 100.0)
        clock[0] += 0.01
    assert 10 < stream.getvalue().count("\r") <= 21


def test_where_lines_stay_there_are_few(clock):
    stream = io.StringIO()
    line = ProvingLine(stream)
    for second in range(100):
        line(second / 100, 100.0 - second)
        clock[0] += 1
    line.clear()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert all(text.startswith("proving: ") for text in lines)


def test_a_function_of_the_callers_own_is_used_as_it_is(capsys):
    told = []
    with proving_line(lambda *now: told.append(now)) as tell:
        tell(0.1, 1000.0)
    assert told == [(0.1, 1000.0)]
    with proving_line(lambda *_: None) as tell:
        tell(0.1, 1000.0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "about 0 s"), (41, "about 41 s"), (240, "about 4 min")])
def test_times_in_words(seconds, text):
    assert lasting(seconds) == text
