"""Replay of a run: the moment it returns, and the former names of its parts."""

from __future__ import annotations

import pytest

from windage.study.replay import replay


def test_a_moment_has_its_run_and_environment(pair):
    moment = replay(pair[0], "2", t=50)
    assert (moment.number, moment.planned.agent, moment.planned.seed) == (2, "random", 1)
    assert (moment.environment.horizon, moment.t) == (300, 50)
    with pytest.warns(DeprecationWarning, match="`asked` is called `planned`"):
        assert moment.asked is moment.planned
    with pytest.warns(DeprecationWarning, match="`world` is called `environment`"):
        assert moment.world is moment.environment
