"""What can be approximated: named functions, safe expressions, callables."""

from anchorhead.targets.analysis.pieces import Kink, Piece, Pieces, analyse
from anchorhead.targets.expressions.expression import Expression
from anchorhead.targets.expressions.named import NAMED, Named
from anchorhead.targets.expressions.parser import parse
from anchorhead.targets.opaque import CallableTarget
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
