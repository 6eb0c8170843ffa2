"""Annotations are checked while tests run: types by beartype, the shapes and dtypes of arrays by jaxtyping.

A finder makes the package's modules with two lines at the top of every function of a module and every method of its
classes, which count the calls that are left until one is checked; functions within functions have none. In each file
of tests a function's 1st, 2nd, 4th, 8th, … call is checked: if all were, or with jaxtyping's own finder, the tests
would take two or three times as long. What has no body to count in, or yields, is wrapped (`checked`).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from itertools import count
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
            looks = frame.f_code is Calls.look.__code__  # for the function whose call this is
            frame = frame.f_back.f_back if looks and frame.f_back.f_back else frame.f_back
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


class Calls:
    """The functions of a module by numbers; of each, how many calls are left until one is checked, 0 for never."""

    every: ClassVar[list[Calls]] = []

    def __init__(self) -> None:
        self.left: list[int] = []
        self.apart: list[int] = []
        self.functions: list[Any] = []
        self.watched: dict[int, Any] = {}
        self.every.append(self)

    def of(self, function: Any) -> Any:
        """The function, which has the next number."""
        owner, _, name = function.__qualname__.rpartition(".")
        for one, hint in function.__annotations__.items():
            if isinstance(hint, str) and owner:  # alone, a method does not know whose it is
                function.__annotations__[one] = re.sub(r"\bSelf\b", owner, hint)
        kept = name in COUNTED.get(f"{function.__module__}.{owner}", ())
        self.functions.append(None if kept else function)
        self.left.append(0 if kept else 1)
        self.apart.append(1)
        return function

    def look(self, number: int, /, *args: Any, **words: Any) -> Any:
        """A call that is checked: the checks call the function, which counts that, too."""
        self.left[number] = self.apart[number] + 1
        self.apart[number] *= 2
        if number not in self.watched:
            self.watched[number] = _watched(self.functions[number])
        return self.watched[number](*args, **words)

    def anew(self) -> None:
        self.left[:] = [int(function is not None) for function in self.functions]
        self.apart[:] = [1] * len(self.apart)


def checked(defined: Any) -> Any:
    """A function that yields, or a class for which dataclass has made __init__, with checks around it."""
    if not inspect.isclass(defined):
        return _now_and_then(defined)
    own = vars(defined).get("__init__")
    if is_dataclass(defined) and own is not None and own.__code__.co_filename.startswith("<"):
        _resolve_inherited(defined, own)
        if not hasattr(defined, "__post_init__"):
            # a class that looks at its fields itself says in words what is wrong with them
            type.__setattr__(defined, "__init__", _now_and_then(own))
    return defined


def _resolve_inherited(defined: type, init: Any) -> None:
    """Fields of a base that stands in another module are annotated with names of that module."""
    for base in defined.__mro__[1:-1]:
        for name in vars(base).get("__annotations__", {}).keys() & init.__annotations__.keys():
            if isinstance(init.__annotations__[name], str):
                init.__annotations__[name] = get_type_hints(base)[name]


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
    for module in Calls.every:
        module.anew()


def counting(text: Any, path: str, optimize: int = -1) -> Any:
    """The code of a module with counts in its functions."""
    tree = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True, optimize=optimize)
    (late,) = ast.parse("def __imports_for_annotations__():\n    pass").body
    numbers = count()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            _count(node, numbers)
        elif isinstance(node, ast.ClassDef):
            # the outermost: dataclass has made __init__
            node.decorator_list.insert(0, ast.Name("__checked__", ast.Load()))
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    _count(member, numbers)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            froms = [one for one in node.body if isinstance(one, ast.ImportFrom)]
            names = [alias.asname or alias.name for one in froms for alias in one.names]
            late.body = [ast.Global(names), *froms] if froms else late.body
            node.orelse = [one for one in node.body if isinstance(one, ast.Import)]
    tree.body.append(late)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True, optimize=optimize)


def _count(node: ast.FunctionDef, numbers: Iterator[int]) -> None:
    """Counts in a function with annotations. Its decorator is the innermost: those such as cache are outside."""
    own = node.args
    plain = [*own.posonlyargs, *own.args]
    every = [*plain, *own.kwonlyargs, *(one for one in (own.vararg, own.kwarg) if one)]
    if _of_triton(node) or not (node.returns or any(one.annotation for one in every)):
        return
    if _yields(node):
        node.decorator_list.append(ast.Name("__checked__", ast.Load()))
        return
    number = next(numbers)
    words = [str(number), *(one.arg for one in plain), *(f"{one.arg}={one.arg}" for one in own.kwonlyargs)]
    words += [f"*{own.vararg.arg}"] if own.vararg else []
    words += [f"**{own.kwarg.arg}"] if own.kwarg else []
    text = f"""
@__calls__.of
def counted():
    __left__[{number}] -= 1
    if not __left__[{number}]:
        return __calls__.look({", ".join(words)})
"""
    (counted,) = ast.parse(text).body
    for one in ast.walk(counted):
        ast.copy_location(one, node)
    start = int(ast.get_docstring(node, clean=False) is not None)
    node.body[start:start] = counted.body
    node.decorator_list += counted.decorator_list


def _yields(node: ast.AST) -> bool:
    """Whether a function yields itself, not one within it."""
    inner = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
    parts = [one for one in ast.iter_child_nodes(node) if not isinstance(one, inner)]
    return any(isinstance(one, ast.Yield | ast.YieldFrom) or _yields(one) for one in parts)


def with_counts(held: dict[str, Any]) -> None:
    """What a module must hold before such code is run in it."""
    calls = Calls()
    held.update(__checked__=checked, __calls__=calls, __left__=calls.left)


class _Loader(SourceFileLoader):
    """Modules that count the calls of their functions."""

    pending: ClassVar[list[Any]] = []
    depth: ClassVar[int] = 0

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return counting(data, path, _optimize)

    def exec_module(self, module: Any) -> None:
        with_counts(vars(module))
        # bytecode of its own, beside that of runs without checks
        own = partial(cache_from_source, optimization="counted")
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
