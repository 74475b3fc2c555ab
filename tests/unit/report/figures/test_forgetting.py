"""The figure of effective memory."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import windage as wd
from windage.agents.multiscale.explanation import Forgetting
from windage.report import forgetting_figure


def told():
    return Forgetting(
        windows=(8, 64, 100),
        times=np.array([1, 40, 80]),
        transitions=np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5]]),
        rewards=np.array([[0.2, 0.3, 0.5], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0]]),
    )


def test_every_panel_shows_the_numbers():
    memory, rewards, transitions = forgetting_figure(told(), 100, "a world").axes
    lines = [list(line.get_ydata()[:3]) for line in memory.lines]  # the third is all so far
    assert lines[0] == pytest.approx([1.0, 0.9 * 8 + 0.1 * 39, 8.0])  # never more than there were
    assert lines[1] == pytest.approx([1.0, 0.1 * 8 + 0.9 * 39, 0.5 * 64 + 0.5 * 79])
    for panel, weights in ((rewards, told().rewards), (transitions, told().transitions)):
        areas = [c for c in panel.collections if isinstance(c, PolyCollection)]
        assert len(areas) == 3
        tops = [area.get_paths()[0].vertices[:, 1].max() for area in areas]
        assert tops == pytest.approx(np.cumsum(weights, axis=1).max(axis=0))
        assert panel.get_ylim() == (0.0, 1.0)


def test_before_the_first_step_there_is_nothing_to_see():
    agent = wd.MultiScale(wd.StateActions([2]), horizon=10)
    with pytest.raises(wd.InputError, match="has not acted yet"):
        forgetting_figure(agent.forgetting(), 10)


def test_one_window_is_a_picture_too():
    agent = wd.MultiScale(wd.StateActions([2]), horizon=3)
    agent.act(0)
    assert len(forgetting_figure(agent.forgetting(), 3).axes) == 3
