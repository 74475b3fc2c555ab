"""EXP3.P in NumPy, against 50 digits and the compiled master."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.adversarial.literal import LiteralExp3P
from windage import adversarial, reference


@pytest.mark.parametrize(("K", "n"), [(1, 20), (2, 60), (5, 400), (9, 900), (35, 11)])
def test_probabilities_are_those_of_fifty_digits(K, n):
    mine, theirs = reference.Exp3P(K, n), adversarial.Exp3P(K, n, quiet=True)
    exact = LiteralExp3P(K, n) if K > 1 else None
    rng = np.random.default_rng(K)
    for i in range(n):
        point, reward = rng.random(2).tolist()
        arm = mine.choose(point)
        assert arm == theirs.choose(point)
        assert mine.probabilities == pytest.approx(theirs.probabilities, abs=1e-13)
        if exact is not None and i < 60:
            digits = [float(p) for p in exact.probabilities()]
            assert mine.probabilities == pytest.approx(digits, abs=1e-13)
            exact.update(arm, reward)
        mine.update(arm, reward)
        theirs.update(arm, reward)
    assert (mine.alpha, mine.beta) == pytest.approx((theirs.alpha, theirs.beta), rel=1e-15)
    assert mine.raw_gamma == pytest.approx(theirs.raw_gamma, rel=1e-15)
    assert mine.gamma == min(1.0, mine.raw_gamma)


def test_a_point_falls_on_the_arm_whose_part_holds_it():
    master = reference.Exp3P(4, 100)
    ends = np.cumsum(master.probabilities)
    assert [master.choose(x) for x in (0.0, *(ends[:-1] + 1e-12), 1 - 2**-53)] == [0, 1, 2, 3, 3]
    assert [master.choose(x) for x in ends[:-1] - 1e-12] == [0, 1, 2]
