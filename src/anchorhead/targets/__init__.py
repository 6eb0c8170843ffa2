"""What can be approximated: named functions, safe expressions, callables."""

from anchorhead.targets.expression import Expression
from anchorhead.targets.named import NAMED, Named
from anchorhead.targets.opaque import CallableTarget
from anchorhead.targets.parser import parse
from anchorhead.targets.pieces import Kink, Piece, Pieces, analyse
from anchorhead.targets.scalar import ScalarTarget
from anchorhead.targets.spec import target_of

__all__ = [
    "NAMED",
    "CallableTarget",
    "Expression",
    "Kink",
    "Named",
    "Piece",
    "Pieces",
    "ScalarTarget",
    "analyse",
    "parse",
    "target_of",
]
