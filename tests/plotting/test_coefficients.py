"""What a picture says of a fit is what is printed of it."""

from __future__ import annotations

import numpy as np
import pytest


def test_the_picture_ends_at_the_difference_that_is_printed():
    """Columns of very different scales: differences of coefficients, and of coefficients times scales, differ."""
    pytest.importorskip("sklearn")
    from anchorhead import incontext
    from anchorhead.incontext.estimators.path import coefficient_path
    from anchorhead.incontext.estimators.reference import deviation, reference
    from anchorhead.plotting import plot

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1.0, 1000.0, 0.001]
    y = X @ [1.0, 0.002, 500.0] + rng.normal(size=30)
    ours = incontext.Ridge(alpha=0.5, tol=1e-4).fit(X, y)
    theirs = reference(ours).fit(X, y)
    path = coefficient_path(ours, X, y, ("a", "b", "c"), theirs.coef_, "scikit-learn's")
    assert path.distance[-1] == deviation(ours, theirs)
    texts = [text.get_text() for text in plot(path).axes[1].texts]
    assert any(text.startswith(f"{deviation(ours, theirs):.1e} after") for text in texts)
    assert np.array_equal(path.coefficients[-1], ours.coef_)
