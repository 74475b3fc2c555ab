"""The tables and the paragraph for a paper: what they claim is what their cells show."""

from __future__ import annotations

import re

import windage as wd
from tests.unit.report.page.frames import asked, material, row, scores
from windage.report import latex
from windage.report.latex import bibliography, keys_of
from windage.report.page import compose, render
from windage.study.compare import RULE, Plan

HIGH = [0.80, 0.82, 0.79, 0.83, 0.81, 0.78, 0.80, 0.84, 0.80, 0.81]
NEAR = [0.81, 0.80, 0.80, 0.82, 0.82, 0.77, 0.81, 0.83, 0.79, 0.82]
LOW = [0.30, 0.31, 0.29, 0.33, 0.30, 0.28, 0.32, 0.30, 0.31, 0.29]
VERSIONS = {"windage": "1.2", "python": "3.11", "numpy": "2.0"}


def bold(table):
    return re.findall(r"^(\w+) & \\textbf", table, re.MULTILINE)


def test_the_caption_agrees_with_what_is_bold():
    agents = {"best": HIGH, "near": NEAR, "low": LOW}
    table = latex.means_table(material(scores(**agents)))
    assert bold(table) == ["best", "near"]
    assert "Bold: the best learner and those no test tells from it. Stars" in table
    few = latex.means_table(material(scores(**{name: x[:3] for name, x in agents.items()})))
    assert len(bold(few)) == 1
    assert "Bold: the best learner; the seeds are too few for any test." in few
    assert "those no test tells" not in few
    assert "Stars" not in few
    one = latex.means_table(material(scores(**{name: x[:1] for name, x in agents.items()})))
    assert "one run each, so no intervals and no tests" in one
    assert "[" not in one.split(r"\midrule")[1]


def test_where_only_one_environment_has_too_few_seeds_it_is_named():
    rows = scores(best=HIGH, near=NEAR)
    rows += [one | {"environment": "shop"} for one in scores(best=HIGH[:3], near=NEAR[:3])]
    table = latex.means_table(material(rows))
    assert "(only the best on shop, where the seeds are too few for any test)" in table


def test_one_seed_has_no_interval_and_no_p_value():
    table = latex.tests_table(material(scores(best=HIGH[:1], low=LOW[:1])))
    assert r"\quad low & $+50.0$ & -- & 1 & -- \\" in table


def test_what_made_each_agent_is_stated_zero_included():
    labels = {
        "window": 40, "widening": 0.0, "delta": 0.05, "radii": "paper", "ties": "random",
        "variant": "slack 4.47003527154273",
    }  # fmt: skip
    found = material([row("a", seed, 0.5, **labels) for seed in range(2)])
    details = latex.details_text(found, VERSIONS, "abc")
    assert (
        r"radii paper; ties random; $W$ = 40; $\eta$ = 0; $\delta$ = 0.05; variant: slack 4.47;"
        in details
    )
    assert "We ran 1 agent on 1 environment: world" in details
    assert "Each agent ran on 2 seeds;" in details


def test_parts_made_by_other_versions_are_named():
    found = material(scores(a=HIGH))
    assert "All runs were made with windage 1.2" in latex.details_text(found, VERSIONS, "abc")
    older = VERSIONS | {"windage": "1.1", "commit": "12ab"}
    details = latex.details_text(found, VERSIONS, "abc", [older])
    assert "All runs" not in details
    assert r"made earlier, with windage 1.1 (commit \texttt{12ab}) on Python 3.11" in details


def test_every_agent_that_is_cited_has_a_whole_entry():
    for agent in wd.agents.names():
        text = bibliography([agent])
        for key in {*keys_of(agent), "cheung2020", "windage"}:
            (entry,) = re.findall(rf"^@\w+\{{{key},\n(.*?)^\}}$", text, re.MULTILINE | re.DOTALL)
            for name in ("author", "title", "year"):
                assert re.search(rf"^  {name} +=", entry, re.MULTILINE), (key, name)
            assert entry.count("{") == entry.count("}")


def test_what_was_not_looked_up_is_marked_and_nothing_else():
    text = bibliography(wd.agents.names())
    marked = re.findall(
        r"^% .* recalled, nobody has looked them up.*\n@\w+\{(\w+),", text, re.MULTILINE
    )
    assert marked == ["cheung2020", "cheung2022", "wan2021", "wei2021"]
    assert "recalled" not in bibliography(["ucrl2"]).split("@article{jaksch2010")[1]


def test_hashes_may_be_broken_at_the_end_of_a_line():
    found = material(scores(a=HIGH, b=LOW))
    details = latex.details_text(found, VERSIONS | {"commit": "a" * 40}, "0123456789abcdef")
    assert r"\texttt{01234567\allowbreak{}89abcdef}" in details
    assert max(map(len, re.findall(r"a+", details))) == 8


def test_the_rule_of_the_tests_is_stated_wherever_their_results_are():
    found = material(scores(best=HIGH, near=NEAR, low=LOW))
    texts = [latex.means_table(found), latex.tests_table(found)]
    texts.append(latex.details_text(found, VERSIONS, "abc"))
    page = compose(found, title="t", provenance=[], study_file="")
    texts.append(render(page).replace("&#39;", "'"))
    assert all(RULE in text for text in texts)


def test_all_parameters_of_an_own_agent_are_stated():
    own = {
        "agent_id": "mine:Greedy", "delta": 0.05, "variant": "rate 0.25",
        "agent_parameters": '{"delta": 0.05, "depth": 3, "fast": true, "rate": 0.2512345, '
                            '"rule": "builtins:max", "start": null, "steps": [1, 2]}',
    }  # fmt: skip
    found = material([row("mine", seed, 0.5, **own) for seed in range(2)])
    parameters = "depth 3, fast yes, rate 0.2512, rule builtins:max, start none, steps [1, 2]"
    details = latex.details_text(found, VERSIONS, "abc")
    assert rf"\texttt{{mine:Greedy}}; $\delta$ = 0.05; parameters: {parameters}; given" in details
    page = compose(found, title="t", provenance=[], study_file="")
    assert page.setup[0].rows[0][-1] == parameters
    assert f"Other settings: mine: {parameters}." in page.setup_words


def test_agents_that_failed_everywhere_are_named():
    runs = [(agent, seed) for agent in ("a", "broken_1", "late") for seed in range(2)]
    runs += [("a", seed, {"horizon": 900}) for seed in range(2)]
    failed = ["broken_1-0-100", "broken_1-1-100", "late-0-100", "a-0-900", "a-1-900"]
    found = material(scores(a=[0.5, 0.6]), asked=asked(*runs, failed=failed))
    details = latex.details_text(found, VERSIONS, "abc")
    assert "We ran 3 agents on 1 environment" in details
    assert "2 of 8 runs have finished." in details
    assert r"\emph{broken\_1} failed on every seed." in details
    assert r"\emph{late} has no finished run." in details
    assert r"\emph{a} failed on every seed of world, $T = 900$." in details
    table = latex.means_table(found)
    assert "broken\\_1 & -- & \\\\\nlate & -- & \\\\\n" in table
    assert "(--: no finished run)" in table
    whole = material(scores(a=[0.5, 0.6]), asked=asked(("a", 0), ("a", 1)))
    assert "finished" not in latex.details_text(whole, VERSIONS, "abc")
    assert "--" not in latex.means_table(whole).split("midrule")[1]


def test_planned_comparisons_have_their_own_table_and_rule():
    plan = Plan(baseline="low")
    found = material(scores(best=HIGH, near=NEAR, low=LOW), asked=asked(plan=plan))
    table = latex.tests_table(found)
    rows = re.findall(r"^\\quad (.*?) less (.*?) & ", table, re.MULTILINE)
    assert sorted(rows) == [("best", "low"), ("near", "low")]
    assert table.count("0.004") == 2  # twice 2 in 1,024
    texts = [table, latex.details_text(found, VERSIONS, "abc")]
    page = compose(found, title="t", provenance=[], study_file="")
    texts.append(render(page).replace("&#39;", "'"))
    assert all(plan.rule in text and RULE not in text for text in texts)
    means = latex.means_table(found)
    assert bold(means) == ["near"] or bold(means) == ["best"]
    assert "Stars" not in means
