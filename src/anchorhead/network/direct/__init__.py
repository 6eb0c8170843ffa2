"""Networks without an axis of keys: affine maps, and heads on scalars entry by entry.

`lower` reads a network's layers as such steps, or refuses; `steps` runs them in torch; `series` are the heads that
need no exponential. Certificates name "direct" among their evaluations where its error is proven.
"""

from anchorhead.network.direct.lower import Refused, lower
from anchorhead.network.direct.saturated import saturated
from anchorhead.network.direct.series import Series
from anchorhead.network.direct.steps import DirectModule, WithGradients, is_traced
from anchorhead.network.direct.stored_series import series_data, stored_series

__all__ = [
    "DirectModule",
    "Refused",
    "Series",
    "WithGradients",
    "is_traced",
    "lower",
    "saturated",
    "series_data",
    "stored_series",
]
