"""The arithmetic that certificates speak of, in force while a network runs, whatever is set around the call.

Certificates allow for "no reduced-precision products". What torch offers to the contrary is switched off meanwhile:

  - autocast, under which products run in half precision;
  - float32 products that are not: `torch.set_float32_matmul_precision("medium")` makes them bfloat16 on processors that
    have it, "high" and "medium" make them TF32 on GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import torch


@contextmanager
def stated_arithmetic(device: torch.device) -> Iterator[None]:
    """Full products and no autocast on a device; inside torch.compile and torch.export no autocast alone, since the
    program that they make runs under the settings of later."""
    with _no_autocast(device.type):
        if torch.compiler.is_compiling():
            yield
        else:
            with _full_products:
                yield


@contextmanager
def lasting_tensors() -> Iterator[None]:
    """Tensors made inside are kept for later calls: under torch.inference_mode they would take part in no gradient."""
    with torch.inference_mode(False):
        yield


def _no_autocast(kind: str) -> AbstractContextManager[Any]:
    in_force = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if in_force else nullcontext()


class _FullProducts:
    """The settings belong to the process, so they are changed when the first of several threads comes, and put back
    when the last one goes."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.before: list[tuple[Any, str]] = []

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = _reduced()
                for setting, _ in self.before:
                    setting.fp32_precision = "ieee"
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                for setting, value in self.before:
                    setting.fp32_precision = value


class _OldSetting:
    """The one setting that torch had before 2.9, under the name of its successors."""

    @property
    def fp32_precision(self) -> str:
        found = torch.get_float32_matmul_precision()
        return "ieee" if found == "highest" else found

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        torch.set_float32_matmul_precision("highest" if value == "ieee" else value)


def _reduced() -> list[tuple[Any, str]]:
    """The settings under which float32 products are something else, and what each is to be set to afterwards."""
    found: list[tuple[Any, str]] = []
    for backend, general in ((torch.backends.mkldnn, torch.backends.mkldnn), (torch.backends.cuda, torch.backends)):
        setting: Any = getattr(backend, "matmul", None)
        setting = setting if hasattr(setting, "fp32_precision") else _OldSetting()
        value = setting.fp32_precision
        if value not in ("none", "ieee"):
            # "none" follows what is set in general, now and later
            inherited = value == getattr(general, "fp32_precision", None)
            found.append((setting, "none" if inherited else value))
    return found


_full_products = _FullProducts()
