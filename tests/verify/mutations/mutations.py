"""The verifier broken in one place: one text in one function of one file replaced by another.

The function stays what it is, only its code changes, so that whoever has imported it runs the broken one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

ROOM = "anchorhead.verify"


@dataclass(frozen=True)
class Mutation:
    """In `where` (a function, or Class.method) of a file of verify/: `old`, which stands there once, becomes `new`.

    A name in capitals is a constant: `new` is another value, `old` is left empty.

    notices   the claim of the other tests that then fails: see `claims_of_tests`
    slow      whether that takes long: tried in `make slow`
    """

    file: str
    where: str
    old: str
    new: str
    notices: str
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.file}, {self.where}: {self.old or 'value'} -> {self.new}"

    @property
    def module(self) -> Any:
        return importlib.import_module(f"{ROOM}.{self.file.removesuffix('.py').replace('/', '.')}")

    def function(self) -> FunctionType:
        """The innermost function: what decorators have wrapped."""
        found: Any = self.module
        for name in self.where.split("."):
            found = inspect.getattr_static(found, name) if inspect.isclass(found) else getattr(found, name)
        found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        return inspect.unwrap(found)

    def code(self) -> CodeType:
        """That of the function with the text replaced."""
        own = self.function().__code__
        lines = inspect.getsource(self.module).splitlines(keepends=True)
        first = own.co_firstlineno - 1
        length = len(inspect.getblock(lines[first:]))
        text = "".join(lines[first : first + length])
        if text.count(self.old) != 1:
            raise ValueError(f"{self}: that stands {text.count(self.old)} times in {self.where}")
        whole = "".join([*lines[:first], text.replace(self.old, self.new), *lines[first + length :]])
        compiled = compile(whole, own.co_filename, "exec", dont_inherit=True)
        return next(one for one in _codes(compiled) if one.co_qualname == own.co_qualname)

    def stands(self) -> Any:
        """What stands there now: the function's code, or the constant."""
        return getattr(self.module, self.where) if self.where.isupper() else self.function().__code__

    @contextmanager
    def applied(self) -> Iterator[None]:
        forget()
        try:
            if self.where.isupper():
                yield from self._constant()
            else:
                function, broken, before = self.function(), self.code(), self.stands()
                function.__code__ = broken
                try:
                    yield
                finally:
                    function.__code__ = before
        finally:
            forget()

    def _constant(self) -> Iterator[None]:
        """Everywhere where it was imported."""
        before = self.stands()
        having = [
            one
            for name, one in list(sys.modules.items())
            if name.startswith(ROOM) and getattr(one, self.where, None) is before
        ]
        value = ast.literal_eval(self.new)
        for one in having:
            setattr(one, self.where, value)
        try:
            yield
        finally:
            for one in having:
                setattr(one, self.where, before)


def forget() -> None:
    """What functions of verify/ remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith(ROOM):
            for one in vars(module).values():
                getattr(one, "cache_clear", lambda: None)()


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)
