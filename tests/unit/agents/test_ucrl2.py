"""UCRL2: all history, the doubling rule alone, rewards clipped or not."""

from __future__ import annotations

import math

import numpy as np

import windage as wd

MODEL = wd.envs.make("riverswim", horizon=20_000)


def test_episodes_double_and_stay_few():
    """At most SA log2(8T / SA) episodes (Jaksch et al., Proposition 18), all ended by visits."""
    run = wd.run(MODEL, wd.UCRL2(MODEL.space, horizon=20_000, seed=1), seed=1)
    SA = MODEL.space.n_pairs
    assert len(run.episodes) <= SA * math.log2(8 * 20_000 / SA)
    assert set(run.episodes.reason[:-1]) == {"visits"}


def test_optimism_is_clipped_or_not():
    """A pair visited once hopes for r_hat + radius: far above 1 in the original, 1 if clipped."""
    gains = {}
    for clip in (False, True):
        agent = wd.UCRL2(MODEL.space, horizon=20_000, clip=clip)
        episodes = wd.run(MODEL, agent, seed=1, steps=500).episodes
        gains[clip] = episodes.gain - 1 / np.sqrt(episodes.start)  # from a warm start rho~ + eps
    assert (gains[True] <= 1).all()
    assert gains[False].min() > 1


def test_what_it_is_told():
    agent = wd.agents.make("ucrl2", MODEL.space, horizon=100, budgets=MODEL.budgets(), clip=True)
    assert agent.requires == ()
    assert agent.configuration()["clip"] is True
    assert agent.radii == wd.Radii.ucrl2()
    again = wd.agents.restore(agent.state())
    assert again.clip is True
    assert again.state() == agent.state()
