"""The grammar: linear maps and softmax attention, nothing else; how it runs, explains itself and is saved."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorhead.network.attention import Attention
    from anchorhead.network.embed import Embed
    from anchorhead.network.linear import Linear
    from anchorhead.network.network import Network, Outside
    from anchorhead.network.repeat import Repeat
    from anchorhead.network.softmax import Softmax
    from anchorhead.network.stream import Kind, Stream
    from anchorhead.network.target_record import TargetRecord

__all__ = [
    "Attention",
    "Embed",
    "Kind",
    "Linear",
    "Network",
    "Outside",
    "Repeat",
    "Softmax",
    "Stream",
    "TargetRecord",
]

_HOMES = {
    "Attention": "attention",
    "Embed": "embed",
    "Kind": "stream",
    "Linear": "linear",
    "Network": "network",
    "Outside": "network",
    "Repeat": "repeat",
    "Softmax": "softmax",
    "Stream": "stream",
    "TargetRecord": "target_record",
}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used: a target needs no torch, and a refused command does not wait."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
