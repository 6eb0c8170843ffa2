"""A command that cannot be carried out says so before torch is imported, which takes longer than all else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import anchorhead.cli.clock as clock
from anchorhead.cli.clock import running, time_words, waited

ON = ("--on", "-1:1")
REFUSED = {
    "no command of that name": ["aproximate"],
    "no such option": ["head", "gelu", "--onn", "-1:1"],
    "a word that is no number": ["head", "gelu", *ON, "--within", "small"],
    "a function that is not known": ["head", "gellu", *ON, "--within", "1e-3"],
    "an interval with one end": ["head", "gelu", "--on", "3", "--within", "1e-3"],
    "an interval the wrong way round": ["head", "gelu", "--on", "1:-1", "--within", "1e-3"],
    "an error below 0": ["head", "gelu", *ON, "--within", "-1"],
    "no anchors": ["head", "gelu", *ON, "--anchors", "0"],
    "neither error nor anchors": ["head", "gelu", *ON],
    "a picture of another kind": ["head", "gelu", *ON, "--within", "1e-3", "--plot", "gelu.gif"],
    "a folder that is not there": ["head", "gelu", *ON, "--within", "1e-3", "-o", "missing/gelu.safetensors"],
    "frontier of nothing": ["head", "gel", *ON, "--frontier"],
    "an expression with a hole": ["approximate", "sin(3*x", *ON, "--within", "1e-3"],
    "a function that does not exist": ["approximate", "sine(3*x)", *ON, "--within", "1e-3"],
    "an interval for no variable": ["approximate", "sin(x)", "--on", "x=-1:1", "--on", "y=0:1", "--within", "1e-3"],
    "no interval for a variable": ["approximate", "x*y", "--on", "x=-1:1", "--within", "1e-3"],
    "one interval for two": ["approximate", "x*y", *ON, "--within", "1e-3"],
    "not defined there": ["approximate", "log(x)", *ON, "--within", "1e-3"],
    "an error of 0": ["approximate", "exp(x*y)", "--on", "x=-1:1", "--on", "y=-1:1", "--within", "0"],
    "a file that is not there": ["approximate", "nowhere.py:f", *ON, "--within", "1e-3"],
    "no path for the network": ["approximate", "sin(x)", *ON, "--within", "1e-3", "-o", "missing/net.safetensors"],
    "tokens without features": ["approximate", "x[0,0]", *ON, "--within", "1e-3", "--tokens", "1"],
    "no file of weights": ["convert", "nowhere.safetensors", *ON, "--within", "1e-3", "--activation", "relu"],
    "no ONNX file": ["convert", "nowhere.onnx", *ON, "--within", "1e-3"],
    "an activation that is not known": ["convert", "a.safetensors", *ON, "--within", "1e-3", "--activation", "relou"],
    "no activation": ["convert", "a.safetensors", *ON, "--within", "1e-3"],
    "a plan of a hole": ["plan", "sin(", *ON],
    "a plan of no file": ["plan", "nowhere.safetensors", "--on", "0:1", "--within", "1e-2", "--activation", "relu"],
    "a plan of an error that is none": ["plan", "sin(x)", *ON, "--within", "1e-2,x"],
    "a plan of an error below 0": ["plan", "sin(x)", *ON, "--within", "-1e-2"],
    "no saved network to tell of": ["info", "nowhere.safetensors"],
    "no saved network to check": ["check", "nowhere.safetensors"],
    "no saved network to export": ["export", "nowhere.safetensors", "--to", "onnx"],
    "a format that is none": ["export", "a.safetensors", "-o", "net.xyz"],
    "a hunt without a domain": ["hunt", "gelu"],
    "a hunt of what is not known": ["hunt", "gellu", *ON, "--within", "1e-3"],
    "a hunt of no file": ["hunt", "nowhere.safetensors"],
    "no folder of a model": ["attention-only", "nowhere", "-o", "out"],
    "no table": ["learn", "nowhere.csv", "--target", "y"],
    "a model that is none": ["learn", "a.csv", "--target", "y", "--model", "forest"],
    "no such column": ["learn", "a.csv", "--target", "z"],
    "a penalty below 0": ["learn", "a.csv", "--target", "y", "--alpha", "-1"],
    "sizes that are none": ["paper", "single-head", "--anchors", "8:"],
    "a range the wrong way round": ["paper", "single-head", "--low", "1", "--high", "-1"],
    "a table for nowhere": ["paper", "relu-network", "--csv", "missing/table.csv"],
    "a loss that is none": ["paper", "in-context", "--loss", "cubic"],
    "an animal that is none": ["zoo", "unicorn"],
}
RUN = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout

sys.modules["torch"] = None  # whoever imports it fails

from anchorhead.cli import app

os.chdir(sys.argv[1])
answers = {}
for name, arguments in json.load(sys.stdin).items():
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            app(arguments)
            code = 0
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:
            code = repr(error)
    answers[name] = code, said.getvalue()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command says, all in one process in which torch cannot be imported."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "a.safetensors").write_bytes(b"")
    (folder / "a.csv").write_text("x,y\n1,2\n3,4\n")
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)], input=json.dumps(REFUSED), capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_words_without_torch(answers, name):
    code, said = answers[name]
    assert code in (1, 2), f"{code} {said}"
    assert "rror" in said
    assert "Traceback" not in said


def test_help_waits_for_nothing():
    code = "import sys, anchorhead.cli; print(sorted({'numpy', 'torch', 'scipy', 'matplotlib'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_time_is_that_since_the_program_was_loaded(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    with running(990.0), running():
        assert waited() == 10.0
        assert time_words() == "10.0 s"
        assert time_words(searched=4.0) == "10.0 s, 4.0 s of them searching for the largest error"
        assert time_words(searched=0.5) == "10.0 s"
    with running():
        now[0] = 1003.0
        assert waited() == 3.0
    assert waited() == 0.0
