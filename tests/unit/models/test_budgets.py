"""Budgets at sizes nobody would walk through."""

from __future__ import annotations

import pytest

import windage as wd
from windage.errors import ModelError


def test_a_hundred_million_steps_have_their_budgets_at_once():
    model = wd.envs.make("two-state-cosine", horizon=10**8)
    budgets = model.budgets()
    assert budgets.reward == pytest.approx(3.2, abs=1e-9)
    assert budgets.transition == pytest.approx(3.2, abs=1e-9)
    assert "reward=3.2" in repr(budgets)


def test_series_that_do_not_fit_are_refused():
    model = wd.envs.make("two-state-cosine", horizon=2**40 - 1)
    with pytest.raises(ModelError, match=r"budget series: would need about 16\.0 TiB"):
        _ = model.budgets().reward_steps


def test_l1_not_total_variation():
    """A swap of two states moves a row by 2 in L1, by 1 in total variation."""
    assert wd.envs.make("peril", tau=5, repeats=1).budgets().transition == 6.0
