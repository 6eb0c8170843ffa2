"""The grammar: linear maps and softmax attention, nothing else; how it runs, explains itself and is saved."""

from anchorhead.network.attention import Attention
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.network import Network, Outside, TargetRecord
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import Kind, Stream

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
