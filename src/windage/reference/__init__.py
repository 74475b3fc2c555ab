"""Algorithms 1 to 3 of the paper and EXP3.P in plain NumPy, line by line.

Each file is one algorithm of Cheung, Simchi-Levi and Zhu (ICML 2020), to be read beside the paper:
its line and equation numbers stand beside the code, and errata by id (E1, ...) where a reading had
to be chosen. Nothing is compiled or kept up to date between episodes, and nothing is shared with
the library's own agents, kernels and planners, which tests compare with these.

Examples
--------
>>> import windage as wd
>>> model = wd.envs.make("two-state-cosine", horizon=300)
>>> agent = wd.reference.SWUCRL2CW(model.space, horizon=300, window=80, widening=0.3)
>>> wd.run(model, agent, seed=1).steps
300
"""

from __future__ import annotations

from windage.reference.borl import BORL
from windage.reference.evi import Plan, evi
from windage.reference.exp3p import Exp3P
from windage.reference.swucrl2cw import SWUCRL2CW

__all__ = ["BORL", "SWUCRL2CW", "Exp3P", "Plan", "evi"]
