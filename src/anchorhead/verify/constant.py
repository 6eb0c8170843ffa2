"""Constant softmaxes: logits that do not depend on the input. A copy is one where a single key is heard at all.

Lemma (copy). If all other computed weights are 0, the one key's exponential is divided by itself: its weight is 1, and
its value is read as it is.

Lemma (constant softmax). With w = softmax(z) for the exact constants z, the dtype reads sum_k w_k v_k up to the error
of `rounding.softmax_read_error`, for values that are forms: deviations and sizes are their largest over all inputs.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.forms import EXACT, Forms, Quantities, mapped, summed
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic, softmax_log_error, softmax_read_error
from anchorhead.verify.scalar.part import Part

LEFT_OUT = 2.0**-900
"""Weights below that are left out of the mean, which changes it by no more than they weigh."""


def constant_softmax(
    logits: Part, far: float, values: Forms, quantities: Quantities, model: Arithmetic
) -> tuple[Forms, np.ndarray]:
    """What is read (1, columns) of values (keys, columns), and bounds on the sizes of the columns; far: a bound on |t|,
    for slopes are 0 only up to their errors."""
    if len(logits.offsets) == 1:
        one = Forms(values.ids, *values.arrays[:3], values.rounding + np.where(values.zero, 0.0, model.tiny))
        settled = values.fixed & (values.error == 0)
        one = Forms(one.ids, *one.arrays[:3], np.where(settled, 0.0, one.rounding))
        return one, one.size(quantities)[0]
    z = logits.offsets
    gap = z.max() - z
    weights = np.exp(-gap)
    weights = weights / weights.sum()
    weights = np.where(weights < LEFT_OUT, 0.0, weights)
    turned = Forms(values.ids, *(np.swapaxes(array, 0, 1) for array in values.arrays))
    mean = mapped(weights[None], None, turned, quantities, EXACT)  # (columns, 1)
    mean = Forms(mean.ids, *(np.swapaxes(array, 0, 1) for array in mean.arrays))
    noise = 16 * OWN_UNIT * (np.abs(z) + logits.sizes + 1)
    own = logits.logit_error(np.full(1, far), np.abs(z)) + noise
    lam = softmax_log_error(own, gap + 2 * noise.max(), model)
    keys = len(z)
    minus = Forms(mean.ids, -mean.coefficients, -mean.constant, *mean.arrays[2:]).tokens([0] * keys)
    deviation = summed([values, minus], quantities).size(quantities).T
    size, result = values.size(quantities).T, mean.size(quantities)[0]
    upper = np.minimum(-gap - np.log(np.exp(-gap).sum()) + 2 * noise.max() + (SLACK - 1), 0.0)
    upper, lam = (np.broadcast_to(one, deviation.shape) for one in (upper, lam))
    error, mass = softmax_read_error(upper, lam, (-deviation, deviation), 0.0, size, result, keys, model)
    form = Forms(mean.ids, *mean.arrays[:3], mean.rounding + error[None] + 2 * LEFT_OUT * size.sum(axis=1))
    return form, np.maximum(mass, form.size(quantities)[0])
