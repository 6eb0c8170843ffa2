"""Networks without an axis of keys: affine maps, and heads on scalars entry by entry.

`planned` reads a network's layers as such steps, or refuses; `steps` runs them in torch; `series` are the heads that
need no exponential, `two_keys` those that need one. Certificates name "direct" among their evaluations where its error
is proven.
"""

from anchorhead.network.direct.lower import Planned, Refused, planned
from anchorhead.network.direct.saturated import saturated
from anchorhead.network.direct.series import Piece, Series
from anchorhead.network.direct.steps import DirectModule, WithGradients, is_traced
from anchorhead.network.direct.stored_series import series_data, stored_series
from anchorhead.network.direct.two_keys import TwoKeys

__all__ = [
    "DirectModule",
    "Piece",
    "Planned",
    "Refused",
    "Series",
    "TwoKeys",
    "WithGradients",
    "is_traced",
    "planned",
    "saturated",
    "series_data",
    "stored_series",
]
