"""What can be approximated: named functions, safe expressions, callables."""

from anchorhead.language.analysis.pieces import Kink, Piece, Pieces, analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import NAMED, Named
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.opaque import CallableTarget
from anchorhead.language.targets.scalar import ScalarTarget
from anchorhead.language.targets.spec import target_of

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
