"""From results to a page: which charts there are, in which order, under which words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from windage.report.page import tables
from windage.report.page.chart import Chart
from windage.report.page.charts.arms import arms_chart
from windage.report.page.charts.episodes import episodes_chart, reasons_chart
from windage.report.page.charts.forgetting import forgetting_chart
from windage.report.page.charts.horizons import horizons_chart
from windage.report.page.charts.memory import memory_chart
from windage.report.page.charts.pairwise import pairwise_chart
from windage.report.page.charts.regret import regret_chart
from windage.report.page.charts.shares import shares_chart
from windage.report.page.charts.sweeps import sweep_chart
from windage.report.page.headline import headline
from windage.report.page.html import Card, Page, Section
from windage.report.page.material import Material
from windage.report.page.results import Setting
from windage.report.page.verdict import evidence, named, plain_words, verdict

__all__ = ["compose"]


def compose(
    material: Material,
    *,
    title: str,
    provenance: Sequence[tuple[str, str]],
    study_file: str,
    asked: Sequence[tuple[str, str]],
    live: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Page:
    """Return the page of a study.

    Parameters
    ----------
    material
        What was found in the results folder.
    title, provenance, study_file
        The study's name, where its numbers come from, and the study itself as text.
    asked
        The environment and the agent of every run that the study asks for.
    live
        Whether the page is served while the study runs.
    progress
        Called with what is about to be drawn.
    """
    results = material.results
    sections = []
    for place, environment in enumerate(results.environments):
        if progress:
            progress(f"charts of {environment}")
        anchor = f"world-{place + 1}"
        setting = results.longest(environment)
        sections.append(
            Section(
                anchor,
                environment,
                _lead(material, setting),
                _charts(material, setting, anchor),
            )
        )
    judged = material.judged
    missing = _missing(material, asked)
    known = {agent.label for agent in results.agents}
    nowhere = [label for label in dict.fromkeys(agent for _, agent in asked) if label not in known]
    return Page(
        title=title,
        headline=headline(judged, material.looks, nowhere),
        facts=_facts(material),
        remarks=_remarks(material, len(asked), nowhere),
        cards=[
            Card(
                comparison.setting.title,
                f"world-{place + 1}",
                verdict(
                    comparison,
                    material.looks,
                    missing.get(comparison.setting.environment, []),
                ),
                evidence(comparison),
            )
            for place, comparison in enumerate(judged)
        ],
        sections=sections,
        setup_words=tables.setup_words(material),
        setup=[tables.agents_table(material), tables.worlds_table(material)],
        numbers=[tables.numbers_table(material), tables.runs_table(material)],
        provenance=provenance,
        study_file=study_file,
        live=live,
    )


def _charts(material: Material, setting: Setting, anchor: str) -> list[Chart]:
    found = [
        shares_chart(material, setting),
        regret_chart(material, setting),
        pairwise_chart(material, setting),
        horizons_chart(material, setting.environment),
        sweep_chart(material, setting),
        episodes_chart(material, setting),
        reasons_chart(material, setting),
        arms_chart(material, setting),
        memory_chart(material, setting),
        forgetting_chart(material, setting),
    ]
    return [replace(chart, id=f"{anchor}-{_slug(chart.title)}") for chart in found if chart]


def _slug(title: str) -> str:
    """Return a title as an anchor.

    >>> _slug("BORL's choice of window")
    'borl-s-choice-of-window'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _lead(material: Material, setting: Setting) -> str:
    results = material.results
    cells = results.cells(setting)
    horizons = sorted(s.horizon for s in results.settings if s.environment == setting.environment)
    said = (
        f"{setting.environment_id}, T = {setting.horizon:,}, {len(cells)} "
        f"agent{'s' if len(cells) > 1 else ''} on {max(cell.n for cell in cells)} seed"
        f"{'s' if max(cell.n for cell in cells) > 1 else ''}."
    )
    if len(horizons) > 1:
        others = ", ".join(f"{T:,}" for T in horizons[:-1])
        said += f" Charts show the longest horizon; T = {others} are in the table of all numbers."
    return said


def _facts(material: Material) -> str:
    results = material.results
    learners = sum(agent.kind == "learner" for agent in results.agents)
    others = len(results.agents) - learners
    parts = [
        _count(learners, "learner") + (f" and {_count(others, 'yardstick')}" if others else ""),
        _count(len(results.environments), "environment"),
        _count(results.frame["seed"].n_unique(), "seed"),
        _count(results.frame.height, "run"),
        f"{int(results.frame['steps'].sum()):,} steps",
    ]
    return " · ".join(parts)


def _missing(material: Material, asked: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the agents without a finished run in an environment, by the environment."""
    frame = material.results.frame
    done = set(zip(frame["environment"], frame["agent"], strict=True))
    found: dict[str, list[str]] = {}
    for environment, agent in dict.fromkeys(asked):
        if (environment, agent) not in done:
            found.setdefault(environment, []).append(agent)
    return found


def _remarks(material: Material, wanted: int, nowhere: Sequence[str]) -> list[str]:
    done = material.results.frame.height
    if done >= wanted:
        return []
    said = (
        f"{done:,} of {wanted:,} runs are in: numbers will change, and agents are compared on the "
        "seeds that both have."
    )
    if nowhere:
        said += f" Without a finished run so far: {plain_words(named(nowhere))}."
    return [said]


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
