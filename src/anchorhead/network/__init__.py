"""The grammar: linear maps and softmax attention, nothing else; how it runs, explains itself and is saved."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorhead.network.attention import Attention
    from anchorhead.network.derivation import Derivation
    from anchorhead.network.embed import Embed
    from anchorhead.network.guard import Outside
    from anchorhead.network.linear import Linear
    from anchorhead.network.network import Network
    from anchorhead.network.repeat import Repeat
    from anchorhead.network.softmax import Softmax
    from anchorhead.network.stream import Kind, Stream

__all__ = [
    "Attention",
    "Derivation",
    "Embed",
    "Kind",
    "Linear",
    "Network",
    "Outside",
    "Repeat",
    "Softmax",
    "Stream",
]

_HOMES = {
    "Attention": "attention",
    "Embed": "embed",
    "Kind": "stream",
    "Linear": "linear",
    "Network": "network",
    "Outside": "guard",
    "Repeat": "repeat",
    "Softmax": "softmax",
    "Stream": "stream",
    "Derivation": "derivation",
}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used: a target needs no torch, and a refused command does not wait."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
