"""What charts draw, against the same numbers found in another way."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.report.page.frames import material, row, scores
from windage.report.page.chart import THEMES, _apart, _contrast, plot_text, shortened, styles_of
from windage.report.page.charts.arms import arms_chart
from windage.report.page.charts.episodes import episodes_chart, reasons_chart
from windage.report.page.charts.forgetting import forgetting_chart
from windage.report.page.charts.horizons import horizons_chart
from windage.report.page.charts.memory import memory_chart
from windage.report.page.charts.pairwise import pairwise_chart
from windage.report.page.charts.regret import regret_chart
from windage.report.page.charts.shares import shares_chart
from windage.report.page.charts.sweeps import sweep_chart

A, B = [0.9, 0.7, 0.8], [0.75, 0.6, 0.85]


def of(chart, rows, **more):
    found = material(rows, **more)
    return chart(found, found.results.settings[-1])


def test_shares_are_drawn_best_first_with_every_seed():
    chart = of(shares_chart, scores(b=B, a=A))
    seeds, means = chart.views[0].data[0::2], chart.views[0].data[1::2]
    assert [trace["name"] for trace in means] == ["a", "b"]
    assert [trace["y"][0] for trace in means] == [1, 0]  # the best on top
    assert seeds[0]["x"] == [90.0, 70.0, 80.0]
    assert means[0]["x"] == [80.0]
    assert means[1]["x"] == pytest.approx([100 * sum(B) / 3], rel=1e-4)
    assert chart.table.rows[0][:3] == ["a", 3, pytest.approx(80.0)]


@pytest.mark.parametrize(("length", "beside"), [(32, True), (33, False)])
@pytest.mark.parametrize("chart", [regret_chart, horizons_chart])
def test_an_agent_has_one_name_on_every_chart(chart, length, beside):
    """A name stands beside its line as it is, or in the key: it is never written in another way."""
    name = "CW, window 1,000, widening 0.0".ljust(length, "5")
    rows = [
        row(name, seed, 0.5 + seed / 10, horizon=T) for T in (100, 200, 400) for seed in range(3)
    ]
    found = material(rows)
    made = chart(found, found.results.settings[-1])
    said = [one["text"] for one in made.views[0].layout["annotations"]]
    assert made.direct == beside
    assert [style.label for style in made.key] == [name]
    assert any(name in text for text in said) == beside
    assert ("window" in "".join(said)) == beside


def test_pairs_are_counted_run_by_run():
    chart = of(pairwise_chart, scores(a=A, b=B))
    wins = sum((x > y) + 0.5 * (x == y) for x in A for y in B) / 9
    assert chart.views[0].data[0]["z"] == [[pytest.approx(100 * wins, abs=0.05)]]
    assert of(pairwise_chart, scores(a=A)) is None
    assert of(pairwise_chart, scores(a=[0.5], b=[0.4])) is None


def test_regret_against_t_has_the_means_of_the_curves():
    chart = of(regret_chart, scores(a=A, b=B))
    line = next(t for t in chart.views[0].data if t["name"] == "a" and "hovertemplate" in t)
    assert line["x"] == [0, 50, 100]
    assert line["y"] == pytest.approx([0.0, 5.0, 10.0])  # 50 - 0.8 * 50, half of it halfway
    assert "a has lost least, 10 [" in chart.sentence


def test_slopes_of_a_power_law():
    horizons = (100, 1_000, 10_000)
    rows = [
        row("a", seed, 1 - 2 * 3 * T**0.75 / T, horizon=T) for T in horizons for seed in range(4)
    ]
    found = material(rows)
    chart = horizons_chart(found, found.results.longest("world"))
    assert chart.table.rows[0][1] == pytest.approx(0.75)
    assert chart.views[0].data[0]["y"] == pytest.approx([3 * T**0.75 for T in horizons], rel=1e-4)
    alone = material(rows[:4])
    assert horizons_chart(alone, alone.results.settings[0]) is None


def test_the_episode_in_force_step_by_step():
    starts, lengths, spans = [1, 11, 41], [10, 30, 60], [0.5, 2.0, 1.0]
    vacuous, reasons = [1.0, 0.5, 0.25], ["visits", "boundary", "open"]
    more = {
        "episodes": 3, "episode_start": starts, "episode_length": lengths, "episode_span": spans,
        "episode_vacuous": vacuous, "episode_reason": reasons,
    }  # fmt: skip
    rows = [row("a", 0, 0.5, **more), row("a", 1, 0.5, **more)]
    chart = of(episodes_chart, rows)
    length, span, share = chart.views[0].data
    for trace, values, scale in ((length, lengths, 1), (span, spans, 1), (share, vacuous, 100)):
        for t, drawn in zip(trace["x"], trace["y"], strict=True):
            k = max(i for i, start in enumerate(starts) if start <= t)
            assert drawn == pytest.approx(scale * values[k])
    why = of(reasons_chart, rows)
    shares = {trace["legendgroup"]: trace["x"][0] for trace in why.views[0].data}
    assert shares == pytest.approx({"visits": 33.333, "boundary": 33.333, "open": 33.333})
    assert of(episodes_chart, scores(a=A)) is None


def test_arms_are_means_over_seeds_and_times_an_equal_share():
    first, last = [0.5, 0.25, 0.25], [0.8, 0.1, 0.1]
    rows = [
        row(
            "borl", seed, 0.5, block_arm=[0, 2], block_reward=[0.3, None],
            block_probabilities=[first, last], arm_window=[10, 10, 90],
            arm_widening=[0.1, 0.5, 0.5],
        )
        for seed in range(2)
    ]  # fmt: skip
    chart = of(arms_chart, rows)
    heat, told, untold = chart.views[0].data
    assert heat["z"][0] == pytest.approx([math.log2(1.5), math.log2(2.4)], rel=1e-3)
    assert heat["z"][1] == pytest.approx([math.log2(0.75), math.log2(0.3)], rel=1e-3)
    assert (told["x"], told["y"], untold["x"], untold["y"]) == ([1], [0], [2], [2])
    assert "W = 10 and η = 0.1 most likely, 2.4 times an equal share of 3 arms" in chart.sentence
    assert untold["marker"]["symbol"] != told["marker"].get("symbol", "circle")
    assert untold["customdata"] == ["; it was not over at T"]
    assert "A cross is a block that was not over at T." in chart.sentence
    assert chart.views[0].layout["xaxis"]["dtick"] == 1


def test_what_the_window_holds():
    counts = [[3, 0], [5, 9]]
    rows = [row("a", 4, 0.5, memory_t=[50, 100], memory_counts=counts, pair_names=["s/x", "s/y"])]
    chart = of(memory_chart, rows)
    heat = chart.views[0].data[0]
    assert heat["customdata"] == [[3, 5], [0, 9]]
    assert heat["z"][1] == pytest.approx([0.0, 1.0])  # log10(1 + n)
    assert "seed 4" in chart.sentence
    assert "s/y is missing 50 % of the time" in chart.sentence


def test_effective_memory():
    def run(seed, rewards):
        told = {"forgetting_t": [1, 40, 70], "forgetting_transitions": [1.0, 30.0, 60.0]}
        return row("a", seed, 0.5, forgetting_rewards=rewards, **told)

    assert of(forgetting_chart, [row("b", 0, 0.5)]) is None
    chart = of(
        forgetting_chart, [run(0, [1.0, 8.0, 16.0]), run(1, [1.0, 10.0, 32.0]), row("b", 0, 0.5)]
    )
    assert [view.label for view in chart.views] == ["a"]
    lines = {trace["name"]: trace for trace in chart.views[0].data if "name" in trace}
    rewards = dict(zip(lines["rewards"]["x"], lines["rewards"]["y"], strict=True))
    # the median of both runs, as each was last looked at
    assert [rewards[t] for t in (1, 39, 40, 69, 70, 100)] == [1.0, 1.0, 9.0, 9.0, 24.0, 24.0]
    transitions = dict(zip(lines["transitions"]["x"], lines["transitions"]["y"], strict=True))
    assert [transitions[t] for t in (39, 40, 100)] == [1.0, 30.0, 60.0]
    assert lines["all so far"]["y"] == lines["all so far"]["x"]
    assert chart.table.rows[0][:3] == ["a", "rewards", 1.0]
    assert chart.table.rows[0][4] == 24.0


def test_a_sweep_needs_both_sides_and_groups_what_else_differs():
    def run(W, eta, radii, share, seed=0):
        parameters = {"window": W, "widening": eta, "radii": radii}
        return row(
            f"own, window {W}, widening {eta}, radii {radii}", seed, share, window=W,
            widening=eta, agent_parameters=json.dumps(parameters),
        )  # fmt: skip

    rows = [
        run(W, eta, radii, 0.5 + W / 1000 + eta / 10 + (radii == "b") / 5)
        for W in (10, 100)
        for eta in (0.0, 0.2)
        for radii in ("a", "b")
    ]
    chart = of(sweep_chart, rows)
    assert [view.label for view in chart.views] == ["own, radii a", "own, radii b"]
    z = np.array(chart.views[0].data[0]["z"])
    assert z[0, 0] == pytest.approx(50 * (1 - 0.51))  # eta 0, W 10
    assert z[1, 1] == pytest.approx(50 * (1 - 0.62))
    box = chart.views[0].layout["shapes"][0]
    assert (box["x0"], box["y0"]) == (0.5, 0.5)
    one_sided = [run(10, eta, "a", 0.5) for eta in (0.0, 0.2)]
    assert of(sweep_chart, one_sided) is None


@given(st.lists(st.floats(0, 300), max_size=17))
def test_labels_never_touch_and_stay_inside(wanted):
    placed = _apart(sorted(wanted), 0.0, 300.0)
    assert all(b - a >= 17 - 1e-9 for a, b in zip(placed, placed[1:], strict=False))
    assert all(-1e-9 <= place <= 300 + 1e-9 for place in placed)


@example("<a href='javascript:alert(1)'>a</a>", 40)
@given(st.text(max_size=80), st.integers(4, 40))
def test_shown_names_have_no_tags_and_no_more_than_their_letters(text, longest):
    assert len(shortened(text, longest)) <= longest
    shown = plot_text(text, longest)
    assert "<" not in shown
    assert ">" not in shown


def test_words_can_be_read_and_agents_told_apart():
    for name, tokens in THEMES.items():
        for token, colour in tokens.items():
            if token.endswith("-ink") or token in ("ink", "soft"):
                assert _contrast(colour, tokens["paper"]) >= 4.5, (name, token)
    styles = styles_of([f"a{k}" for k in range(12)], ["oracle", "myopic"], ["random"])
    assert len({(style.colour, style.dash) for style in styles}) == len(styles)
    many = styles_of([f"a{k}" for k in range(13)], [], [])
    assert [style.coloured for style in many] == [True] * 7 + [False] * 6


def test_contrast_is_that_of_the_standard():
    assert _contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_a_slope_of_one_seed_has_no_interval():
    rows = [row("a", 0, 0.5, horizon=T) for T in (100, 200, 400)]
    gathered = material(rows)
    found = horizons_chart(gathered, gathered.results.longest("world"))
    assert found.table.rows[0][1] == pytest.approx(1.0)
    assert found.table.rows[0][2:4] == [None, None]
    assert "[" not in found.sentence
