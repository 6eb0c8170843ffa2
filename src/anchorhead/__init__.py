"""Anchorhead: continuous functions as attention-only networks, with the weights written down and the error proven."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorhead.certificate import Certificate
    from anchorhead.checking import check
    from anchorhead.constructions.approximate import approximate
    from anchorhead.constructions.compile import compile
    from anchorhead.constructions.head import head
    from anchorhead.constructions.single.certified_head import Head
    from anchorhead.constructions.truncated_linear import truncated_linear
    from anchorhead.convert.attention_only.convert import attention_only
    from anchorhead.convert.attention_only.networks import LayerNetworks
    from anchorhead.convert.convert import convert
    from anchorhead.convert.plan import plan
    from anchorhead.convert.program import program
    from anchorhead.domain import Box
    from anchorhead.errors import AnchorheadError, CertificateError, NotReached, OutsideWarning
    from anchorhead.export.export import export
    from anchorhead.incontext.loading import load
    from anchorhead.language.program import Program
    from anchorhead.network import Network
    from anchorhead.plotting import plot

__version__ = "0.1.0"

__all__ = [
    "AnchorheadError",
    "Box",
    "Certificate",
    "CertificateError",
    "Head",
    "LayerNetworks",
    "Network",
    "NotReached",
    "OutsideWarning",
    "Program",
    "approximate",
    "attention_only",
    "check",
    "compile",
    "convert",
    "export",
    "head",
    "load",
    "plan",
    "plot",
    "program",
    "truncated_linear",
]

_HOMES = {
    "AnchorheadError": "errors",
    "Box": "domain",
    "Certificate": "certificate",
    "CertificateError": "errors",
    "Head": "constructions.single.certified_head",
    "LayerNetworks": "convert.attention_only.networks",
    "Network": "network",
    "NotReached": "errors",
    "OutsideWarning": "errors",
    "Program": "language.program",
    "approximate": "constructions.approximate",
    "attention_only": "convert.attention_only.convert",
    "check": "checking",
    "compile": "constructions.compile",
    "convert": "convert.convert",
    "export": "export.export",
    "head": "constructions.head",
    "load": "incontext.loading",
    "plan": "convert.plan",
    "plot": "plotting",
    "program": "convert.program",
    "truncated_linear": "constructions.truncated_linear",
}


class _Package(ModuleType):
    """`ah.convert` and `ah.export` are functions, although rooms have these names: importing a room does not put it
    there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used: the command line's help does not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
