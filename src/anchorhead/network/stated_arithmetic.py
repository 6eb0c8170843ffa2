"""The arithmetic that certificates speak of, in force while a network runs, whatever is set around the call.

Certificates allow for "no reduced-precision products". What torch offers to the contrary is switched off meanwhile:

  - autocast, under which products run in half precision;
  - float32 products that are not: `torch.set_float32_matmul_precision("medium")` makes them bfloat16 on processors that
    have it, "high" and "medium" make them TF32 on GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Any

import torch


def stated_arithmetic(device: torch.device) -> AbstractContextManager[Any]:
    """Full products and no autocast on a device; inside torch.compile and torch.export no autocast alone, since the
    program that they make runs under the settings of later."""
    kind = device.type
    in_force = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    full = _NOTHING if torch.compiler.is_compiling() else full_products(kind == "cpu")
    return _without_autocast(kind, full) if in_force else full


def full_products(on_cpu: bool) -> AbstractContextManager[Any]:
    """Full products alone: autocast touches no operation that is told where its result goes, and no float64."""
    full = _full_products["cpu" if on_cpu else "cuda"]
    return _NOTHING if full.is_given() else full


@contextmanager
def _without_autocast(kind: str, full: AbstractContextManager[Any]) -> Iterator[None]:
    with torch.autocast(kind, enabled=False), full:
        yield


@contextmanager
def lasting_tensors() -> Iterator[None]:
    """Tensors made inside are kept for later calls: under torch.inference_mode they would take part in no gradient."""
    with torch.inference_mode(False):
        yield


class _FullProducts:
    """Of one kind of device. The setting belongs to the process, so it is changed when the first of several threads
    comes, and put back when the last one goes."""

    def __init__(self, backend: Any, general: Any) -> None:
        self.lock, self.inside = Lock(), 0
        setting: Any = getattr(backend, "matmul", None)
        self.setting = setting if hasattr(setting, "fp32_precision") else _OldSetting()
        # Python finds this in __getattr__ after it has failed elsewhere, which takes as long as a small product
        found = getattr(self.setting, "__getattr__", None)
        self.read = partial(found or partial(getattr, self.setting), "fp32_precision")
        self.general, self.before = general, None

    def is_given(self) -> bool:
        """Whether products are full already, and not because another thread is inside."""
        return not self.inside and self._reduced() is None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = self._reduced()
                if self.before is not None:
                    self.setting.fp32_precision = "ieee"
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.before is not None:
                self.setting.fp32_precision = self.before

    def _reduced(self) -> str | None:
        """Where float32 products are something else, what the setting is to be put back to."""
        value = self.read()
        if value in ("none", "ieee"):
            return None
        # "none" follows what is set in general, now and later
        return "none" if value == getattr(self.general, "fp32_precision", None) else value


class _OldSetting:
    """The one setting that torch had before 2.9, under the name of its successors."""

    @property
    def fp32_precision(self) -> str:
        found = torch.get_float32_matmul_precision()
        return "ieee" if found == "highest" else found

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        torch.set_float32_matmul_precision("highest" if value == "ieee" else value)


_NOTHING = nullcontext()
_full_products = {
    "cpu": _FullProducts(torch.backends.mkldnn, torch.backends.mkldnn),
    "cuda": _FullProducts(torch.backends.cuda, torch.backends),
}
