"""The radii of UCRL2B and of variation-aware UCRL against 50 digits, and what they are called."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import windage as wd
from windage.confidence.radii import Radii
from windage.kernels.confidence import bernstein

COUNTS = (0, 1, 2, 3, 4, 5, 7, 10, 31, 49, 64, 100, 364, 999, 4095, 65_537, 10**6, 10**9)
SPACES = (
    wd.StateActions([4]),
    wd.StateActions.uniform(states=2, actions=2),
    wd.StateActions([1, 2, 3, 4]),  # A = 2.5
    wd.StateActions([2, 2, 3, 1, 1, 1, 1]),  # A = 11/7
    wd.StateActions.uniform(states=10_000, actions=3),
)
SETTINGS = [(T, delta) for T in (1, 5_000, 10**9) for delta in (0.5, 0.05, 1e-9)]
VARIANCES = (0.0, 1e-12, 0.01, 0.2, 0.25)
HERE = {"space": SPACES[2], "horizon": 5_000, "delta": 0.05}
BOTH = [Radii.bernstein(), Radii.varying()]
CLOSE = 1e-14


def of_bernstein(n, space, delta, v):
    """Spec 3.5: 2 sqrt(v l / N+) + 6 l / N+, l = ln(6 SA N+ / delta)."""
    N = mpmath.mpf(max(1, n))
    l = mpmath.log(6 * space.n_pairs * N / mpmath.mpf(delta))  # noqa: E741 - the letter of 3.5
    return 2 * mpmath.sqrt(mpmath.mpf(v) * l / N) + 6 * l / N


def of_varying(n, space, delta, t, part):
    """Spec 3.4: sqrt(8 ln(8 SA t^3 / delta) / N+), with 8 S for transitions."""
    N, S = mpmath.mpf(max(1, n)), space.n_states if part == "transition" else 1
    inside = 8 * space.n_pairs * mpmath.mpf(t) ** 3 / mpmath.mpf(delta)
    return mpmath.sqrt(8 * S * mpmath.log(inside) / N)


def off(found, exact):
    return float(abs(mpmath.mpf(found) - exact) / exact)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: f"S={space.n_states}")
@pytest.mark.parametrize("part", ["reward", "transition"])
def test_bernstein_by_fifty_digits(space, part):
    radius = getattr(Radii.bernstein(), part)
    with mpmath.workdps(50):
        for T, delta in SETTINGS:
            for v in VARIANCES:
                found = radius(COUNTS, space=space, horizon=T, delta=delta, variance=v)
                for n, value in zip(COUNTS, found, strict=True):
                    assert off(value, of_bernstein(n, space, delta, v)) <= CLOSE, (n, delta, v)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: f"S={space.n_states}")
@pytest.mark.parametrize("part", ["reward", "transition"])
def test_varying_by_fifty_digits(space, part):
    radius = getattr(Radii.varying(), part)
    with mpmath.workdps(50):
        for T, delta in SETTINGS:
            for t in {1, max(1, T // 3), T}:
                found = radius(COUNTS, space=space, horizon=T, delta=delta, t=t)
                for n, value in zip(COUNTS, found, strict=True):
                    assert off(value, of_varying(n, space, delta, t, part)) <= CLOSE, (n, t)


def test_scaled_by_fifty_digits():
    with mpmath.workdps(50):
        for c in (0.1, 1.7, 1e100):
            both = {"reward": c, "transition": 2.0}
            for part in both:
                scale = mpmath.mpf(both[part])
                bern = Radii.bernstein().scaled(**both)
                found = getattr(bern, part)(COUNTS, **HERE, variance=0.2)
                for n, value in zip(COUNTS, found, strict=True):
                    exact = scale * of_bernstein(n, HERE["space"], 0.05, 0.2)
                    assert off(value, exact) <= CLOSE
                vary = Radii.varying().scaled(**both)
                found = getattr(vary, part)(COUNTS, **HERE, t=77)
                for n, value in zip(COUNTS, found, strict=True):
                    exact = scale * of_varying(n, HERE["space"], 0.05, 77, part)
                    assert off(value, exact) <= CLOSE
    assert Radii.bernstein().scaled(0.0).transition(9, **HERE) == 0.0


def test_unvisited_counts_as_one_visit():
    for radii in BOTH:
        t = 5 if radii.needs_time else None
        for part in (radii.reward, radii.transition):
            assert part(0, **HERE, t=t) == part(1, **HERE, t=t) > part(2, **HERE, t=t)


def test_the_largest_variance_is_what_is_meant_if_none_is_given():
    for part in (Radii.bernstein().reward, Radii.bernstein().transition):
        assert part(9, **HERE) == part(9, **HERE, variance=0.25) > part(9, **HERE, variance=0.24)


def test_the_horizon_and_the_time_do_not_matter_to_bernstein():
    """b = ln(6 SA N / delta) has no T in it."""
    radii = Radii.bernstein()
    later = HERE | {"horizon": 10**9}
    assert radii.reward(9, **HERE) == radii.reward(9, **later) == radii.reward(9, **HERE, t=77)


def test_the_parts_add_up_to_the_radius():
    """The planner keeps root and rest of a pair: root sqrt(v) + rest for every entry."""
    for c in (1.0, 0.3):
        rule = Radii.bernstein().scaled(c).rules(*HERE.values())[1]
        for n in COUNTS:
            root, rest = bernstein(rule, n)
            for v in VARIANCES:
                found = Radii.bernstein().scaled(c).transition(n, **HERE, variance=v)
                assert root * math.sqrt(v) + rest == pytest.approx(found, rel=1e-15)
            b = math.log(6 * 10 * max(1, n) / 0.05)
            assert rest == pytest.approx(c * 6 * b / max(1, n), rel=CLOSE)


def test_arrays_give_arrays():
    table = Radii.bernstein().transition([[7, 8], [9, 0]], **HERE, variance=0.1)
    assert table.shape == (2, 2)
    assert table[0, 0] == Radii.bernstein().transition(7, **HERE, variance=0.1)
    assert type(Radii.varying().reward(np.int64(7), **HERE, t=3)) is float
    assert Radii.bernstein().reward([], **HERE).shape == (0,)


# --- what they are called ------------------------------------------------------------------------


def test_properties():
    assert [radii.needs_time for radii in BOTH] == [False, True]
    assert [radii.makes_boxes for radii in BOTH] == [True, False]
    for radii in BOTH:  # neither has the paper's lemma, however wide
        assert not radii.keeps_guarantee
        assert not radii.scaled(5.0).keeps_guarantee
    others = [Radii.paper(), Radii.proof(), Radii.laplace(), Radii.ucrl2()]
    assert not any(radii.makes_boxes for radii in others)


@pytest.mark.parametrize(
    ("radii", "label", "spec"),
    [
        (Radii.bernstein(), "bernstein", "bernstein"),
        (Radii.varying(), "varying", "varying"),
        (Radii.bernstein().scaled(0.3), "bernstein x0.3", {"kind": "bernstein", "scale": 0.3}),
        (
            Radii.varying().scaled(reward=0.1, transition=2),
            "varying r x0.1 p x2",
            {"kind": "varying", "reward": 0.1, "transition": 2.0},
        ),
        (
            Radii.bernstein().scaled(transition=0.5),
            "bernstein r x1 p x0.5",
            {"kind": "bernstein", "reward": 1.0, "transition": 0.5},
        ),
    ],
)
def test_labels_and_specs_go_there_and_back(radii, label, spec):
    assert radii.label == label
    assert radii.spec() == spec
    assert Radii.from_spec(spec) == radii
    assert eval(repr(radii)) == radii
    assert hash(Radii.from_spec(spec)) == hash(radii)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Radii.bernstein().reward(3, **HERE, variance=-1e-12), "variance"),
        (lambda: Radii.bernstein().reward(3, **HERE, variance=0.2500001), "variance"),
        (lambda: Radii.bernstein().transition(3, **HERE, variance=math.nan), "variance"),
        (lambda: Radii.bernstein().transition(3, **HERE, variance="small"), "variance"),
        (lambda: Radii.bernstein().transition(3, **HERE, variance=None), "variance"),
        (lambda: Radii.bernstein().reward(-1, **HERE), "n"),
        (lambda: Radii.varying().reward(3, **HERE), "t"),
        (lambda: Radii.varying().transition(3, **HERE, t=0), "t"),
        (lambda: Radii.varying().transition(3, **HERE, t=2.0), "t"),
        (lambda: Radii("bernstein", bounded=True), "bounded"),
        (lambda: Radii("varying", bounded=True), "bounded"),
        (lambda: Radii.from_spec({"kind": "bernstein", "bounded": True}), "radii.bounded"),
        (lambda: Radii.from_spec("bernstien", "agents[1].radii"), "agents[1].radii.kind"),
    ],
)
def test_bad_input_is_named(make, field):
    with pytest.raises(wd.WindageError) as caught:
        make()
    assert caught.value.field == field
    assert caught.value.fix
