"""Addressed randomness: a draw is a function of (key, t, draw), not of what was drawn before.

A word is a 64-bit hash of the counter under a 128-bit key: two rounds of a 64-bit finaliser with
one half of the key added before each. The second addition keeps the streams of two keys from being
shifts of one another. Keys come from `windage.rng`.
"""

from __future__ import annotations

import math

import numpy as np

from windage.kernels.jit import inlined

_DRAW_SHIFT = np.uint64(40)  # t < 2**40 (inputs.LAST_TIME), up to 2**24 draws a step
_UNIT = 2.0**-53
_BITS, _REST, _FITS = np.uint64(53), np.uint64((1 << 53) - 1), np.uint64(1 << 11)
_HALF, _LOW, _WORD = np.uint64(21), np.uint64((1 << 21) - 1), np.uint64((1 << 32) - 1)


@inlined
def mix(x):
    """Scramble 64 bits (a bijection; the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def word(key, t, draw):
    """Return the 64-bit word at address (key, t, draw)."""
    counter = np.uint64(t) | (np.uint64(draw) << _DRAW_SHIFT)
    return mix(mix(counter + key[0]) + key[1])


@inlined
def bits(key, t, draw):
    """Return 53 bits: a uniform number in [0, 1) in units of 2**-53."""
    return word(key, t, draw) >> np.uint64(11)


@inlined
def uniform(key, t, draw):
    """Return a double in [0, 1), a multiple of 2**-53."""
    return np.float64(bits(key, t, draw)) * _UNIT


@inlined
def split(u, n):
    """Return floor(u n) and u n less that, exactly; u and the rest count units of 2**-53.

    n < 2**32 is unsigned; the product has up to 85 bits, so it is made of two halves if need be.
    """
    if n < _FITS:
        product = u * n
        return product >> _BITS, product & _REST
    high = (u >> _HALF) * n
    low = (u & _LOW) * n
    high += low >> _HALF
    return high >> np.uint64(32), ((high & _WORD) << _HALF) | (low & _LOW)


@inlined
def normal(key, t, draw):
    """Return a standard normal number; uses the draws `draw` and `draw + 1`."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(key, t, draw)))
    return radius * math.cos(2.0 * math.pi * uniform(key, t, draw + 1))


@inlined
def gamma(key, t, draw, shape):
    """Return a Gamma(shape, 1) number and the next free draw (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:  # Gamma(a) = Gamma(a + 1) U^(1/a)
        boost = (1.0 - uniform(key, t, draw)) ** (1.0 / shape)
        draw += 1
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(key, t, draw)
        u = 1.0 - uniform(key, t, draw + 2)
        draw += 3
        v = 1.0 + c * x
        v = v * v * v
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v, draw


@inlined
def log_gamma(key, t, draw, shape):
    """Return the logarithm of a Gamma(shape, 1) number, however small, and the next free draw."""
    boost = 0.0
    if shape < 1.0:
        boost = math.log(1.0 - uniform(key, t, draw)) / shape
        draw += 1
        shape += 1.0
    number, draw = gamma(key, t, draw, shape)
    return boost + math.log(number), draw
