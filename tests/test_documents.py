"""What README and guides show can be pasted: commands run, Python runs, links lead to files, examples are as made."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from anchorhead.cli import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
SCRIPTS = [
    str(path.relative_to(ROOT))
    for place in ("notebooks", "docs/theorems")
    for path in sorted((ROOT / place).glob("*.py"))
]
MAX_LINES = 200
"""Of the README: what is longer is not read."""
OPENS_A_WINDOW = ("anchorhead play",)
SLOW = ("anchorhead hunt", "anchorhead paper", "anchorhead head gelu --on -10:10 --frontier", "anchorhead zoo -o")
SLOW += ("anchorhead export net.safetensors --to torch", "anchorhead export net.safetensors --to lens")
NEEDS = {"onnx": "onnx", "attention-only": "transformers", "learn": "sklearn", "--to lens": "transformer_lens"}
"""What a command with these words in it needs beyond the package itself."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[str]:
    lines = [line.strip() for block in blocks(document, "sh") for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith("anchorhead ")]


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A folder with the examples in it, to run in: what commands write stays there."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> None:
    missing = [name for word, name in NEEDS.items() if word in line and importlib.util.find_spec(name) is None]
    if missing:
        return
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}"


COMMANDS = list(dict.fromkeys(line for document in DOCUMENTS for line in commands(document)))
"""Those of all documents, each once."""


def test_every_command_can_be_pasted(clone):
    assert len(COMMANDS) > 20
    for line in COMMANDS:
        if not line.startswith((*SLOW, *OPENS_A_WINDOW)):
            run(line)


@pytest.mark.slow
def test_every_slow_command_can_be_pasted(clone):
    for line in COMMANDS:
        if line.startswith(SLOW) or "-o net.safetensors" in line:
            run(line)


def test_the_readmes_python_prints_what_it_says(clone, capsys):
    (code,) = blocks("README.md", "python")
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    (shown,) = blocks("README.md", "text")
    numbers = re.compile(r"\d\.\d+(?:e[+-]\d+)?")
    assert numbers.sub("#", printed) == numbers.sub("#", shown)
    found, said = ([float(one) for one in numbers.findall(text)] for text in (printed, shown))
    np.testing.assert_allclose(found, said, rtol=0.05)


def test_the_readme_is_short_enough_to_be_read():
    assert len((ROOT / "README.md").read_text().splitlines()) <= MAX_LINES


MADE_BY_THE_BUILD = ("api/command_line.md", "zoo/README.md", "playground.html")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(document):
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path = ((ROOT / document).parent / target).resolve()
        script = path.with_suffix(".py")
        notebook = ROOT / "notebooks" / script.name if path.parent.name == "notebooks" else script
        known = target.endswith(MADE_BY_THE_BUILD) or path.exists() or script.exists() or notebook.exists()
        assert known, f"{document} links to {target}, which is not there"


def _make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_examples", ROOT / "examples" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_are_what_their_script_makes(tmp_path):
    from safetensors.numpy import load_file

    onnx = pytest.importorskip("onnx")
    make = _make()
    kept = load_file(ROOT / "examples" / "mlp.safetensors")
    made = make.layers()
    assert {name: array.tolist() for name, array in kept.items()} == {n: a.tolist() for n, a in made.items()}
    make.write_onnx(tmp_path / "mlp.onnx", made)
    one, two = (onnx.load(folder / "mlp.onnx") for folder in (tmp_path, ROOT / "examples"))
    assert one.graph == two.graph
    make.write_houses(tmp_path / "houses.csv")
    assert (tmp_path / "houses.csv").read_text() == (ROOT / "examples" / "houses.csv").read_text()


def test_the_tiny_transformer_is_what_the_script_makes(tmp_path):
    from safetensors.numpy import load_file

    pytest.importorskip("transformers")
    _make().write_bert(tmp_path / "tiny-bert")
    made, kept = (load_file(folder / "tiny-bert" / "model.safetensors") for folder in (tmp_path, ROOT / "examples"))
    assert {name: array.tolist() for name, array in made.items()} == {n: a.tolist() for n, a in kept.items()}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_notebooks_and_pages_of_theorems_run(script, tmp_path):
    """As scripts, which they are before `make docs` and `make notebooks` make pages of them."""
    given = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, str(ROOT / script)], cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
