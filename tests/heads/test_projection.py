"""The least-squares search: its derivatives, the values that it eliminates, and its descent."""

import numpy as np
import pytest

from anchorhead.heads.solver.descent import gauss_newton
from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.projection import Loss, Samples, even, fitted, project


def a_problem(outputs):
    x = -np.cos(np.linspace(0, np.pi, 60))
    f = np.stack([np.sin(3 * x + k) for k in range(outputs)], axis=1)
    keys = Keys(np.array([0.3, 1.1, 0.2, 0.8]), np.array([-0.6, -0.1, 0.2, 0.7]))
    return keys, Samples(x, f)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_jacobian_is_the_derivative_with_the_values_held(outputs):
    keys, samples = a_problem(outputs)
    values = np.random.default_rng(0).normal(size=(keys.anchors, outputs))
    jac = keys.jacobian(samples.x, keys.softmax(samples.x), values)
    for k in range(jac.shape[2]):
        step = 1e-6 * np.eye(jac.shape[2])[k]
        up, down = (Keys.of_vector(keys.vector + sign * step).softmax(samples.x) @ values for sign in (1, -1))
        np.testing.assert_allclose(jac[:, :, k], (up - down) / 2e-6, atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_projection_finds_the_values_of_least_loss(outputs):
    keys, samples = a_problem(outputs)
    q = even(samples) * np.linspace(0.5, 1.5, len(samples))
    loss = Loss(samples, q, 1e-2, keys.anchors)
    w, centre = keys.softmax(samples.x), q @ samples.f
    matrix = np.concatenate([np.sqrt(q)[:, None] * w, 1e-2 * np.eye(keys.anchors)])
    goal = np.concatenate([np.sqrt(q)[:, None] * (samples.f - centre), np.zeros((keys.anchors, outputs))])
    expected = np.linalg.lstsq(matrix, goal)[0]
    found = project(keys.vector[None], loss)
    np.testing.assert_allclose(found.values(loss)[0], expected + centre, rtol=1e-10)
    assert found.loss[0] == pytest.approx(float(((goal - matrix @ expected) ** 2).sum()), rel=1e-10)
    (fit,) = fitted([keys], loss)
    np.testing.assert_allclose(fit.residual, samples.f - w @ found.values(loss)[0], atol=1e-14)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_search_descends_to_a_stationary_point(outputs):
    keys, samples = a_problem(outputs)
    loss = Loss(samples, even(samples), 1e-3, keys.anchors)
    (found,) = gauss_newton([keys], loss, 200)
    around = 1e-3 * np.eye(len(keys.vector))
    least, *near = project(found.keys.vector + np.array([0 * around[0], *around, *-around]), loss).loss
    assert least < 0.5 * project(keys.vector[None], loss).loss[0]
    assert min(near) > least * (1 - 1e-3)


@pytest.mark.parametrize("outputs", [1, 2])
def test_starts_side_by_side_end_where_each_would_alone(outputs):
    keys, samples = a_problem(outputs)
    loss = Loss(samples, even(samples), 1e-3, keys.anchors)
    rng = np.random.default_rng(0)
    starts = [Keys.of_vector(keys.vector + rng.normal(size=len(keys.vector)) / 5) for _ in range(5)]
    for alone, beside in zip(starts, gauss_newton(starts, loss, 12), strict=True):
        (found,) = gauss_newton([alone], loss, 12)
        np.testing.assert_allclose(beside.keys.vector, found.keys.vector, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(beside.values, found.values, rtol=1e-6, atol=1e-9)


def test_a_start_that_ends_early_keeps_its_place():
    keys, samples = a_problem(1)
    loss = Loss(samples, even(samples), 1e-3, keys.anchors)
    (ended,) = gauss_newton([keys], loss, 300)
    early, late = gauss_newton([ended, keys], loss, 3)
    late_first, early_second = gauss_newton([keys, ended], loss, 3)
    assert early.error == early_second.error < 1.001 * ended.error
    assert late.error == late_first.error > 1.1 * ended.error
