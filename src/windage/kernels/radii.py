"""Confidence radii: one shape for all of them.

With N = max(1, n) visits a radius is

    scale * sqrt((a + b ln(N + 1) + c log_t) * (1 + 1/N if b > 0 else 1) / N)

and a rule is the row (a, b, c, scale). The paper's radii have b = c = 0, the Laplace radii b > 0,
those of UCRL2 c > 0 (`learn.radii` has the numbers).

Two roundings before the root would already cost more than an ulp, so everything after the rounding
of a and of the logarithms is carried in two words, high + low: what is left is half an ulp of the
inputs and half an ulp of the result.
"""

from __future__ import annotations

import math

from windage.kernels.jit import compiled, inlined

_SPLITTER = 134217729.0  # 2^27 + 1, Veltkamp: halves of 26 bits, whose products are exact


@inlined
def _product(x, y):
    """Return x * y as high + low, exactly (Dekker)."""
    high = x * y
    bits = _SPLITTER * x
    x_high = bits - (bits - x)
    x_low = x - x_high
    bits = _SPLITTER * y
    y_high = bits - (bits - y)
    y_low = y - y_high
    low = ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low
    return high, low


@inlined
def _sum(x, y):
    """Return x + y as high + low, exactly (Knuth)."""
    high = x + y
    part = high - x
    return high, (x - (high - part)) + (y - part)


@inlined
def _quotient(high, low, n):
    """Return (high + low) / n as high + low."""
    whole = high / n
    back, rest = _product(whole, n)
    return whole, ((high - back) - rest + low) / n


@inlined
def radius(rule, n, log_t):
    """Return the radius after n visits; `log_t` is the logarithm of the time, if c > 0."""
    N = max(1.0, float(n))
    high, low = rule[0], 0.0
    if rule[1] > 0.0:
        more, rest = _product(rule[1], math.log(N + 1.0))
        high, error = _sum(high, more)
        low = error + rest
    if rule[2] > 0.0:
        more, rest = _product(rule[2], log_t)
        high, error = _sum(high, more)
        low += error + rest
    high, low = _quotient(high, low, N)
    if rule[1] > 0.0:
        more, rest = _quotient(high, low, N)
        high, error = _sum(high, more)
        low += error + rest
    root = math.sqrt(high)
    square, rest = _product(root, root)
    correction = ((high - square) - rest + low) / (2.0 * root) if root > 0.0 else 0.0
    high, low = _product(rule[3], root)
    return high + (low + rule[3] * correction)


@inlined
def bernstein(rule, n):
    """Return what a Bernstein radius is made of: with variance v it is root sqrt(v) + rest.

    root = 2 scale sqrt(l / N), rest = 6 scale l / N, l = a + ln N (UCRL2B).
    """
    N = max(1.0, float(n))
    rate = (rule[0] + math.log(N)) / N
    return 2.0 * rule[3] * math.sqrt(rate), 6.0 * rule[3] * rate


@compiled
def fill(rule, visits, log_t, out):
    """Write the radius after each of `visits` to `out`."""
    for i in range(visits.size):
        out[i] = radius(rule, visits[i], log_t)


@compiled
def fill_bernstein(rule, visits, variance, out):
    """Write the Bernstein radius after each of `visits`, for the same variance, to `out`."""
    for i in range(visits.size):
        root, rest = bernstein(rule, visits[i])
        out[i] = root * math.sqrt(variance) + rest
