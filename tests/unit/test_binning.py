"""Measurements as states, and agents that are saved with their bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windage as wd

NUMBERS = st.floats(-1e6, 1e6)


@given(
    st.lists(st.lists(NUMBERS, max_size=4, unique=True).map(sorted), min_size=1, max_size=3),
    st.data(),
)
def test_the_state_is_counted_out(edges, data):
    """The definition: how many edges are not above the value, in mixed radix."""
    if edges == [[]]:
        edges = [[0.0]]
    binner = wd.Binner(edges)
    values = data.draw(st.lists(NUMBERS, min_size=len(edges), max_size=len(edges)))
    expected = 0
    for cuts, value in zip(edges, values, strict=True):
        expected = expected * (len(cuts) + 1) + sum(cut <= value for cut in cuts)
    assert binner(values) == expected
    assert 0 <= expected < binner.n_states == len(binner.state_names)


def test_infinite_measurements_fall_into_the_outer_bins():
    binner = wd.Binner([0.0, 1.0])
    assert [binner(x) for x in (-np.inf, 0.0, 0.999, 1.0, np.inf)] == [0, 1, 1, 2, 2]


@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(1, 6))
def test_quantile_bins_hold_as_many_as_ties_allow(samples, bins):
    binner = wd.Binner.quantiles(samples, bins)
    counts = np.bincount([binner(x) for x in samples], minlength=binner.n_states)
    assert binner.n_states <= bins
    assert (counts > 0).all()
    if len(set(samples)) == len(samples) >= bins:
        assert counts.max() - counts.min() <= 1
        assert counts.size == bins


def test_uniform_bins_cut_a_box_into_equal_parts():
    binner = wd.Binner.uniform([0, -1], [3, 1], bins=[3, 2], names=["x", "y"])
    assert binner.edges == ((1.0, 2.0), (0.0,))
    assert binner.state_names[3] == "x 1..2, y >=0"
    assert binner([-9.0, 9.0]) == 1
    assert binner.space(2, ["left", "right"]).describe(0) == "s=0 ('x <1, y <0'), a=0 ('left')"


def test_an_agent_is_saved_with_its_bins():
    binner = wd.Binner([0.3, 0.7], names=["load"])
    live = wd.Binned(wd.UCRL2(binner.space(2), horizon=500, seed=4), binner)
    rng = np.random.default_rng(0)
    loads = rng.random(101)
    for before, after in zip(loads[:50], loads[1:51], strict=True):
        live.observe(before, live.act(before), float(after < 0.5), after)
    twin = wd.agents.restore(live.state())
    assert isinstance(twin, wd.Binned)
    assert twin.binner == binner
    assert hash(twin.binner) == hash(binner)
    assert twin.t == live.t == 51
    for before, after in zip(loads[50:100], loads[51:101], strict=True):
        assert twin.act(before) == live.act(before)
        for one in (live, twin):
            one.observe(before, one.act(before), float(after < 0.5), after)
    assert twin.state() == live.state()


def test_a_bad_observation_changes_nothing():
    binner = wd.Binner([0.5])
    live = wd.Binned(wd.UCRL2(binner.space(2), horizon=9), binner)
    a = live.act(0.2)
    before = live.state()
    for bad in (np.nan, "0.5", [0.1, 0.2], None):
        with pytest.raises(wd.InputError):
            live.observe(0.2, a, 1.0, bad)
    assert live.state() == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wd.Binner([]), "no edges"),
        (lambda: wd.Binner("0.5"), "not a list of edges"),
        (lambda: wd.Binner(0.5), "not a list of edges"),
        (lambda: wd.Binner([1.0, 1.0]), r"edges\[0\]\[1\]: 1 is not above 1"),
        (lambda: wd.Binner([[0.0], [2.0, 1.0]]), r"edges\[1\]\[1\]: 1 is not above 2"),
        (lambda: wd.Binner([0.0, np.nan]), "not finite"),
        (lambda: wd.Binner([0.0, "a"]), "no list of numbers"),
        (lambda: wd.Binner([0.0], names="load"), "names 1 measurement"),
        (lambda: wd.Binner([0.0], names=["a", "b"]), "names 1 measurement"),
        (lambda: wd.Binner([list(range(4000))] * 2), "16,008,001 states"),
        (lambda: wd.Binner([0.0])([1.0, 2.0]), r"is not 1 number\(s\)"),
        (lambda: wd.Binner([0.0])(np.nan), "holds a NaN"),
        (lambda: wd.Binner([0.0])("x"), "is not 1 number"),
        (lambda: wd.Binner.uniform(0, 0, 3), "not above low"),
        (lambda: wd.Binner.uniform([0, 0], [1], 3), "2 low and 1 high"),
        (lambda: wd.Binner.uniform(0, np.inf, 3), "not finite"),
        (lambda: wd.Binner.uniform(0, 1, 0), "bins"),
        (lambda: wd.Binner.uniform([0, 0], [1, 1], [2]), "1 numbers for 2 measurements"),
        (lambda: wd.Binner.quantiles([], 2), "no list of numbers"),
        (lambda: wd.Binner.quantiles([[1.0], [2.0, 3.0]], 2), "uneven rows"),
        (lambda: wd.Binner.quantiles([1.0, np.nan], 2), r"samples\[1\]: nan is not finite"),
        (lambda: wd.Binned(1, wd.Binner([0.0])), "not an agent and a Binner"),
        (
            lambda: wd.Binned(wd.UCRL2(wd.StateActions([2]), horizon=9), wd.Binner([0.0])),
            "makes 2 states, the agent has 1",
        ),
        (lambda: wd.Binned.from_state(wd.UCRL2(wd.StateActions([2]), horizon=9).state()), "ucrl2"),
    ],
)
def test_bins_that_are_none_are_refused(call, said):
    with pytest.raises(wd.WindageError, match=said):
        call()
