"""The least-squares search: its derivatives, the values that it eliminates, and its descent."""

import numpy as np
import pytest

from anchorhead.heads.keys import Keys
from anchorhead.heads.projection import Loss, Samples, even, fitted, gauss_newton, project


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
    found = project(keys, loss)
    np.testing.assert_allclose(found.values, expected + centre, rtol=1e-10)
    assert found.loss == pytest.approx(float(((goal - matrix @ expected) ** 2).sum()), rel=1e-10)
    np.testing.assert_allclose(fitted(keys, loss).residual, samples.f - w @ found.values, atol=1e-14)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_search_descends_to_a_stationary_point(outputs):
    keys, samples = a_problem(outputs)
    loss = Loss(samples, even(samples), 1e-3, keys.anchors)
    found = gauss_newton(keys, loss, 200)
    least = project(found.keys, loss).loss
    assert least < 0.5 * project(keys, loss).loss
    for step in 1e-3 * np.eye(len(keys.vector)):
        for sign in (1, -1):
            assert project(Keys.of_vector(found.keys.vector + sign * step), loss).loss > least * (1 - 1e-3)
