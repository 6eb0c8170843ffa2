"""The verifier runs where nothing but numpy, python-flint and safetensors can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .files import written

SCRIPT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        top, *rest = name.split(".")
        own = top == "anchorhead" and (not rest or rest[0] == "verify")
        allowed = top in sys.stdlib_module_names or top in ("numpy", "flint", "safetensors") or own
        if not allowed:
            raise ImportError(f"{name} is blocked")
        return None

sys.meta_path.insert(0, Blocked())
from anchorhead.verify.__main__ import main

code = main(sys.argv[1:])
loaded = {name.split(".")[0] for name in sys.modules} & {"torch", "scipy", "jaxtyping", "matplotlib", "typer"}
sys.exit(9 if loaded else code)
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_it_runs_with_nothing_else_to_import(tmp_path: Path) -> None:
    path = written("head (float32)", tmp_path)
    found = _run(str(path))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "verified: |network - (tanh(x))| <= " in found.stdout
    assert "assumed: arithmetic" in found.stdout


def test_exit_codes(tmp_path: Path) -> None:
    def wrong(header: dict, arrays: dict) -> None:
        header["certificate"]["bound"] = 1e-9

    assert _run(str(written("head (float32)", tmp_path, wrong))).returncode == 1
    assert _run(str(tmp_path / "nothing.safetensors")).returncode == 1
    assert _run().returncode == 2
