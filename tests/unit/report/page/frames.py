"""Rows of runs written by hand, in the columns of a results folder."""

from __future__ import annotations

import polars as pl

from windage.report.page.data import Asked, gather
from windage.study.compare import Plan
from windage.study.schema import ORACLE, RUN
from windage.study.store import ManifestRun

SCHEMA = {"study": pl.String, "environment": pl.String, "agent": pl.String} | RUN.dtypes
LABELLED = {"environment": pl.String} | ORACLE.dtypes


def row(agent, seed, share, **more):
    """One run of T = 100 in which the oracle earns 50."""
    horizon = more.get("horizon", 100)
    optimum = 0.5 * horizon
    found = {
        "key": f"{agent}-{seed}-{horizon}",
        "study": "by hand",
        "environment": "world",
        "environment_id": "world-v0",
        "environment_parameters": "{}",
        "agent": agent,
        "agent_id": "random" if agent == "random" else "own",
        "agent_parameters": "{}",
        "horizon": horizon,
        "seed": seed,
        "told": ["the model"] if agent == "oracle" else [],
        "steps": horizon,
        "episodes": 0,
        "t": [horizon // 2, horizon],
        "cumulative_reward": [0.0, 0.0],
    }
    found |= {
        name: [] for name, kind in RUN.dtypes.items() if kind == pl.List and name not in found
    }
    if share is not None:
        earned = share * optimum
        found |= {
            "total_reward": earned,
            "total_mean_reward": earned,
            "oracle_reward": optimum,
            "regret": optimum - earned,
            "observed_regret": optimum - earned,
            "share": share,
            "cumulative_mean_reward": [earned / 2, earned],
            "cumulative_regret": [(optimum - earned) / 2, optimum - earned],
        }
    return found | more


def asked(*runs, plan=None, failed=()):
    """What a study asks for: (agent, seed), in the setting of `row` unless it says otherwise."""
    found = []
    for agent, seed, *more in runs:
        given = {"environment": "world", "horizon": 100, "tuned": ""} | dict(*more)
        key = f"{agent}-{seed}-{given['horizon']}"
        found.append(ManifestRun(key=key, agent=agent, seed=seed, environment_index=0,
                                 agent_index=0, oracle=None, **given))  # fmt: skip
    return Asked(tuple(found), plan or Plan(), frozenset(failed))


def material(rows, oracles=(), asked=None):
    frame = pl.DataFrame([{name: one.get(name) for name in SCHEMA} for one in rows], schema=SCHEMA)
    known = [{name: one.get(name) for name in LABELLED} for one in oracles]
    return gather(frame, pl.DataFrame(known, schema=LABELLED), asked)


def scores(**agents):
    """Runs of agents with these shares, one a seed."""
    return [
        row(agent.replace("_", " "), seed, share)
        for agent, shares in agents.items()
        for seed, share in enumerate(shares)
    ]
