"""The exponential of many numbers at once, for every processor.

NumPy's is vectorised for AVX-512 alone, and elsewhere several times slower than the product that it is applied to.  This one is
plain arithmetic, which the compiler vectorises for what there is:

    exp(x) = 2^k exp(r),  k = round(x / log 2),  r = x - k log 2 (log 2 in two parts, after Cody and Waite)

Adding and subtracting 1.5 2^52 rounds to a whole number, which is then in the last bits of the sum; shifted to the place of the
exponent, they are added to those of exp(r), a polynomial of degree 11.
"""

import math

import numpy as np

from zerogap.compiled import fmax, fmin, jit_contracted

ROUND = 1.5 * 2.0**52
PER_LOG2 = 1.0 / math.log(2.0)
LOG2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # its product with k is exact
LOG2_LOW = float.fromhex("0x1.ef35793c76730p-45")
EXPONENT = 52  # bits below the exponent
LOWEST = -708.0  # below it results are not normal numbers
CHUNK = 512  # numbers at a time

# (exp(r) - 1 - r) / r² on |r| <= log(2) / 2, interpolated at Chebyshev's points: exp(r) is off by 2e-17 of it.
C0, C1, C2, C3, C4 = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917213717,
)
C5, C6, C7 = 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06
C8, C9 = 2.7620088445409746e-07, 2.510038549551032e-08


@jit_contracted
def exponentials(x):
    """Replace the numbers of an array (m,) by their exponentials, those above zero by one: off by at most 2 u, u = 2^-53."""
    sums, powers = np.empty(CHUNK), np.empty(CHUNK)
    sum_bits, power_bits = sums.view(np.int64), powers.view(np.int64)
    for start in range(0, x.size, CHUNK):
        part, small = x[start : start + CHUNK], 0  # small: too small, or not numbers
        for j in range(part.size):  # exp(r), and k in the last bits of the sums
            small += not (part[j] >= LOWEST)
            bounded = fmin(fmax(part[j], LOWEST), 0.0)
            shifted = bounded * PER_LOG2 + ROUND
            sums[j] = shifted
            k = shifted - ROUND
            r = (bounded - k * LOG2_HIGH) - k * LOG2_LOW
            q = C9
            q = q * r + C8
            q = q * r + C7
            q = q * r + C6
            q = q * r + C5
            q = q * r + C4
            q = q * r + C3
            q = q * r + C2
            q = q * r + C1
            q = q * r + C0
            powers[j] = 1.0 + (r + r * r * q)
        for j in range(part.size):  # times 2^k: k is added to the exponents
            power_bits[j] += sum_bits[j] << EXPONENT
        if small:
            for j in range(part.size):  # one by one
                if not (part[j] >= LOWEST):
                    powers[j] = math.exp(part[j])
        for j in range(part.size):
            part[j] = powers[j]
