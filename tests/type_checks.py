"""Annotations are checked while tests run: types by beartype, the shapes and dtypes of arrays by jaxtyping.

A finder makes the package's modules with every function and class of a module decorated by `checked`; functions within
functions are not, since each call would decorate them anew. In each file of tests a function's 1st, 2nd, 4th, 8th, …
call is checked: if all were, or with jaxtyping's own finder, the tests would take two or three times as long.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import is_dataclass
from functools import cached_property, partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from types import FunctionType
from typing import Any, ClassVar, get_type_hints
from unittest.mock import patch

from jaxtyping import jaxtyped

with patch("random.getrandbits", lambda bits: 0):
    # of a list beartype looks at an item by chance: here at the first, each time
    from beartype import BeartypeConf, beartype

PACKAGE = "anchorhead"
READERS = ("anchorhead.network.files", "anchorhead.certificate")
"""What these read from a file they hand on to those who say what is wrong with it."""
WORDS = re.compile(r"violates type hint (typing\.Optional\[)?typing\.Literal\[")
"""Pyright sees which words the package uses itself; others are handed on from outside to where they are refused."""
COUNTED = {
    "anchorhead.network.network.Network": (
        "__call__",
        "_run",
        "_guarded",
        "_looked_at",
        "_mind_what_is_left_out",
        "_warn_or_raise",
    )
}
"""Methods that are not checked, since their warnings count the frames to the line that called."""
BETWEEN = (__name__, "beartype", "jaxtyping", "functools", "dataclasses", "contextlib")
"""Modules whose frames may lie between a caller and a function that is checked."""


class WrongType(AssertionError):
    """An argument or a result is not what its annotation says."""


class WrongArgument(UserWarning):
    """What beartype makes of a wrong argument: the end of a call from within the package, and nothing elsewhere.

    Input from outside may be anything. What it may be the package says in words of its own, which tests look for.
    """

    def __init__(self, words: str = "") -> None:
        super().__init__(words)
        frame = sys._getframe(1)
        while frame.f_back and (frame.f_code.co_filename.startswith("<") or _module(frame).startswith(BETWEEN)):
            frame = frame.f_back
        caller = _module(frame)
        if caller.partition(".")[0] == PACKAGE and caller not in READERS and not WORDS.search(words):
            raise WrongType(f"{caller}, line {frame.f_lineno}: {words}")


def _module(frame: Any) -> str:
    return frame.f_globals.get("__name__", "")


CHECKS = BeartypeConf(
    is_pep484_tower=True,  # an int is a float
    is_color=False,
    violation_param_type=WrongArgument,
    violation_return_type=WrongType,
)


def checked(defined: Any) -> Any:
    """The function or class, its annotations checked at each call."""
    if not inspect.isclass(defined):
        return _now_and_then(defined)
    own = vars(defined).get("__init__")
    if is_dataclass(defined) and own is not None:
        _resolve_inherited(defined, own)
    kept = COUNTED.get(f"{defined.__module__}.{defined.__qualname__}", ())
    if hasattr(defined, "__post_init__"):
        kept = (*kept, "__init__")  # a class that looks at its fields itself says in words what is wrong with them
    for name, plain in list(vars(defined).items()):
        if name in kept:
            continue
        if isinstance(plain, cached_property):
            plain.func = _member(plain.func, defined)
        elif isinstance(plain, FunctionType | property | classmethod | staticmethod):
            setattr(defined, name, _member(plain, defined))
    return defined


def _resolve_inherited(defined: type, init: Any) -> None:
    """Fields of a base that stands in another module are annotated with names of that module."""
    for base in defined.__mro__[1:-1]:
        for name in vars(base).get("__annotations__", {}).keys() & init.__annotations__.keys():
            if isinstance(init.__annotations__[name], str):
                init.__annotations__[name] = get_type_hints(base)[name]


def _member(plain: Any, of: type) -> Any:
    """A member of a class, of the same kind, with checks in it."""
    if isinstance(plain, property):
        parts = (getattr(plain, name) for name in ("fget", "fset", "fdel"))
        return property(*(None if one is None else _member(one, of) for one in parts), doc=plain.__doc__)
    if isinstance(plain, classmethod | staticmethod):
        return type(plain)(_member(plain.__func__, of))
    for name, hint in plain.__annotations__.items():
        if isinstance(hint, str):  # alone, a function does not know whose it is
            plain.__annotations__[name] = re.sub(r"\bSelf\b", of.__name__, hint)
    return _now_and_then(plain)


def _now_and_then(plain: Any) -> Any:
    """The function with checks for calls that are ever further apart, the plain one for all between.

    To look at arrays takes tens of microseconds; late calls are of other kinds than the first. To write the checks
    takes a millisecond: they are written at the first call, since most functions are not called in most runs.
    """
    if not plain.__annotations__:
        return plain
    calls = [1, 1]  # until the next that is checked, and from there to the one after it
    _calls.append(calls)
    watched: list[Any] = []

    @wraps(plain)
    def call(*args: Any, **words: Any) -> Any:
        calls[0] -= 1
        if calls[0] > 0:
            return plain(*args, **words)
        calls[0] = calls[1]
        calls[1] *= 2
        if not watched:
            watched.append(_watched(plain))
        return watched[0](*args, **words)

    return call


def _watched(plain: Any) -> Any:
    """The function with checks at every call; with any annotation of arrays, a call is a scope in which the name of an
    axis has one size."""
    member = beartype(plain, conf=CHECKS)
    known = getattr(inspect.unwrap(plain), "__globals__", {})
    hints = " ".join(map(str, (*plain.__annotations__.values(), *member.__annotations__.values())))
    arrays = "jaxtyping." in hints or any("jaxtyping." in str(known.get(name)) for name in re.findall(r"\w+", hints))
    return jaxtyped(member, typechecker=None) if arrays else member


_calls: list[list[int]] = []


def count_anew() -> None:
    """A file of tests begins."""
    for calls in _calls:
        calls[:] = 1, 1


class _Loader(SourceFileLoader):
    """Adds `checked` to the functions and classes of a module."""

    pending: ClassVar[list[Any]] = []
    depth: ClassVar[int] = 0

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        tree = compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True, optimize=_optimize)
        (late,) = ast.parse("def __imports_for_annotations__():\n    pass").body
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not _of_triton(node):
                # the innermost: decorators such as cache are given the checked function
                node.decorator_list.append(ast.Name("__checked__", ast.Load()))
            elif isinstance(node, ast.ClassDef):
                # the outermost: dataclass has made __init__
                node.decorator_list.insert(0, ast.Name("__checked__", ast.Load()))
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                froms = [one for one in node.body if isinstance(one, ast.ImportFrom)]
                names = [alias.asname or alias.name for one in froms for alias in one.names]
                late.body = [ast.Global(names), *froms] if froms else late.body
                node.orelse = [one for one in node.body if isinstance(one, ast.Import)]
        tree.body.append(late)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: Any) -> None:
        module.__checked__ = checked
        # bytecode of its own, beside that of runs without checks
        own = partial(cache_from_source, optimization="checked")
        _Loader.depth += 1
        try:
            with patch("importlib._bootstrap_external.cache_from_source", own):
                super().exec_module(module)
        finally:
            _Loader.depth -= 1
        if not self.is_package(self.name):
            self.pending.append(module.__imports_for_annotations__)
        while self.pending and not _Loader.depth:
            # modules may import each other for annotations, which beartype looks up at the first call
            self.pending.pop()()


def _of_triton(node: ast.FunctionDef) -> bool:
    """Whether triton compiles the function, for which it reads the source."""
    return any(ast.unparse(one).startswith("triton.") for one in node.decorator_list)


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def check_annotations() -> None:
    """From here on, modules of the package are imported with checks."""
    sys.meta_path.insert(0, _Finder())
