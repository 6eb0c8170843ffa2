"""Output into pipes that close, disks that are full and terminals without UTF-8 or colours: never a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from anchorhead.cli import app
from anchorhead.cli.terminal import HANDLER, prepare

LIST = [sys.executable, "-m", "anchorhead", "head", "--list"]


def test_a_pipe_that_closes_early_ends_it_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(LIST, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1


def test_a_full_disk_is_one_line(tmp_path):
    path = tmp_path / "full"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))  # a copy of the device, never the machine's own
        file = path.open("w")
    except OSError:
        pytest.skip("devices cannot be made here")
    with file:
        done = subprocess.run(LIST, stdout=file, stderr=subprocess.PIPE, text=True)
    assert done.stderr.splitlines() == ["Error: the output cannot be written: No space left on device"]
    assert done.returncode == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_without_utf_8_get_other_signs(encoding):
    done = subprocess.run(LIST, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    assert "soft_threshold" in done.stdout.decode(encoding)


def test_signs_that_are_missing_are_spelt_out():
    prepare()
    assert "a ≤ b … ☃".encode("ascii", HANDLER) == b"a <= b ... ?"


@pytest.mark.parametrize(
    ("variables", "coloured"), [({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)]
)
def test_colours_are_left_out_where_nobody_wants_them(variables, coloured):
    environment = {"NO_COLOR": None, "TERM": "xterm", **variables}
    shown = CliRunner().invoke(app, ["info", "missing.safetensors"], color=True, env=environment)
    assert ("\x1b[" in shown.output) == coloured
    assert "is not a file" in shown.output


def test_ctrl_c_is_one_line(monkeypatch, tmp_path):
    def interrupted(path):
        raise KeyboardInterrupt

    (tmp_path / "f.safetensors").touch()
    monkeypatch.setattr("anchorhead.network.files.load", interrupted)
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "f.safetensors")])
    assert shown.output == "Stopped.\n"
    assert shown.exit_code == 130
