"""A function of the user's own, `mymodule.py:f`: the file is run, as `python mymodule.py` would run it."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anchorhead.errors import AnchorheadError

_NAMED = re.compile(r"(?P<path>.*\.py)(:(?P<name>[^:]*))?", re.DOTALL)


def is_own(text: str) -> bool:
    """Whether a text names a function of a file; no expression has .py in it, followed by a colon or nothing."""
    return _NAMED.fullmatch(text) is not None


def own_function(text: str) -> Callable[..., Any]:
    """The function that `path/mymodule.py:f` names."""
    match = _NAMED.fullmatch(text)
    if match is None or not match["name"]:
        raise AnchorheadError(f"{text!r} does not say which function of the file: write {text.rstrip(':')}:f")
    path, name = Path(match["path"]), match["name"]
    if not path.is_file():
        raise AnchorheadError(f"there is no file {str(path)!r}: give the path of the file that defines {name}")
    function = getattr(_run(path), name, None)
    if function is None:
        raise AnchorheadError(f"{path} defines no {name!r}: give the name of a function in it, as in {path}:f")
    if not callable(function):
        raise AnchorheadError(f"{name} in {path} is of type {type(function).__name__}, not a function")
    return function


def _run(path: Path) -> Any:
    """The module; what stands beside the file can be imported by it, and nothing is written there."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AnchorheadError(f"{path} cannot be read as a Python file")
    module = importlib.util.module_from_spec(spec)
    before, writes = sys.path[:], sys.dont_write_bytecode
    sys.path.insert(0, str(path.resolve().parent))
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise AnchorheadError(
            f"{path} could not be run: {type(error).__name__}: {error}{_line(error, path)}; it should only define "
            "functions"
        ) from error
    except SystemExit as error:
        raise AnchorheadError(f"{path} ended the program when it was run: it should only define functions") from error
    finally:
        sys.path[:], sys.dont_write_bytecode = before, writes
    return module


def _line(error: BaseException, path: Path) -> str:
    """Where in the file it happened."""
    if isinstance(error, SyntaxError):
        return ""
    place, trace = 0, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            place = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {place})" if place else ""
