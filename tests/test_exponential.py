"""The exponential of many numbers, against extended precision."""

import math

import mpmath
import numpy as np
import pytest

from zerogap.kernels import UNIT
from zerogap.kernels.exponential import CHUNK, exponentials


def exact(x):
    with mpmath.workprec(200):
        return [mpmath.exp(min(v, 0.0)) for v in x.tolist()]


@pytest.mark.parametrize("low", [-1e-3, -1.0, -30.0, -707.9])
def test_off_by_at_most_two_units(low):
    x = low * np.random.default_rng(0).random(2 * CHUNK + 7)
    values = x.copy()
    exponentials(values)
    errors = [abs(mpmath.mpf(v) / e - 1) for v, e in zip(values.tolist(), exact(x), strict=True)]
    assert max(errors) <= 2 * UNIT


def test_numbers_that_are_not_normal():
    x = np.array([0.0, -0.0, 1e-9, 5.0, -708.5, -740.0, -745.2, -746.0, -1e300, -np.inf, np.nan])
    values = x.copy()
    exponentials(values)
    assert values[:4].tolist() == [1.0] * 4  # no exponent is above zero but by rounding
    np.testing.assert_allclose(values[4:7], [math.exp(v) for v in x[4:7]], rtol=0, atol=5e-324)
    assert values[7:10].tolist() == [0.0] * 3
    assert np.isnan(values[10])


def test_whole_powers_of_two_are_near_exact():
    k = np.arange(1021.0)
    values = -k * math.log(2.0)
    exponentials(values)
    np.testing.assert_allclose(values, 2.0**-k, rtol=1021 * UNIT)  # the product with log 2 is rounded
