"""The examples in docstrings of what is public run, and give what they say."""

from __future__ import annotations

import doctest
import importlib.util
import shutil
from pathlib import Path

import pytest

import anchorhead as ah
from anchorhead import incontext

pytestmark = pytest.mark.all_cases

WITHOUT = {"AnchorheadError", "CertificateError", "OutsideWarning", "LOSSES", "Loss", "ManyLearner", "Trace"}
"""What is raised, or comes out of what has an example."""
NEEDS = {"attention_only": "transformers", "export": "onnx"} | dict.fromkeys(incontext.ESTIMATORS, "sklearn")
PUBLIC = [(ah, name) for name in ah.__all__ if name not in WITHOUT]
PUBLIC += [(incontext, name) for name in incontext.__all__ if name not in WITHOUT]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=[name for _, name in PUBLIC])
def test_the_example_runs(module, name, tmp_path, monkeypatch):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    shutil.copytree(Path(__file__).parents[1] / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    known = {"ah": ah, "incontext": incontext}
    test = doctest.DocTestParser().get_doctest(getattr(module, name).__doc__ or "", known, name, None, None)
    assert test.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)
