"""Bands of curves, and the oracle's curves by label and horizon."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from windage.errors import InputError
from windage.study import stats
from windage.study.results import load_oracles


def test_a_band_is_the_interval_of_the_mean_at_every_time():
    curves = np.random.default_rng(0).random((7, 5)).cumsum(axis=1)
    mean, low, high = stats.band(curves)
    for k in range(5):
        alone = stats.mean(curves[:, k])
        found = (mean[k], low[k], high[k])
        assert found == pytest.approx((alone.estimate, alone.low, alone.high), rel=1e-12)


@pytest.mark.parametrize("values", [[1.0, 2.0], np.empty((0, 3)), [[1.0, float("nan")]]])
def test_what_is_no_set_of_curves_is_refused(values):
    with pytest.raises(InputError, match="values: has the shape"):
        stats.band(values)


def test_horizons_of_one_environment_keep_their_oracles(tmp_path):
    study = wd.Study(
        name="two lengths",
        horizon=[50, 100],
        seeds=1,
        environments=[{"id": "two-state-cosine", "label": "world"}],
        agents=[{"id": "random"}],
    )
    study.run(tmp_path / "out", workers=1)
    oracles = load_oracles(tmp_path / "out")
    assert oracles["environment"].to_list() == ["world", "world"]
    assert sorted(oracles["horizon"].to_list()) == [50, 100]
    for row in oracles.iter_rows(named=True):
        world = wd.envs.make("two-state-cosine", horizon=row["horizon"])
        assert row["total"] == pytest.approx(world.optimal_gains().sum(), abs=1e-3)
