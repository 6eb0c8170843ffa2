"""What the package says about itself to tools: that it is typed, and what it needs."""

import ast
import re
import tomllib
from pathlib import Path

import anchorhead

SOURCE = Path(anchorhead.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
IMPORTED_AS = {"python-flint": "flint"}
"""Where the name to import is another than the name to install."""


def _imported() -> set[str]:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    return found


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (SOURCE / "py.typed").is_file()
    assert SOURCE.name in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"][0]


def test_every_dependency_is_imported():
    names = [re.split(r"[<>=\[]", one)[0] for one in PROJECT["project"]["dependencies"]]
    assert names
    assert {IMPORTED_AS.get(name, name) for name in names} <= _imported()
