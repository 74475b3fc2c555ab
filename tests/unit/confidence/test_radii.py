"""Radii against a 50-digit reference written from the formulas, and what they are called."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import windage as wd
from windage.confidence.radii import KINDS, Radii

COUNTS = (
    0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 31, 49, 63, 64, 100, 127, 364, 516, 999, 1000, 4095,
    10_007, 65_537, 10**6, 123_456_789, 10**9,
)  # fmt: skip
SPACES = (
    wd.StateActions([4]),
    wd.StateActions.uniform(states=2, actions=2),
    wd.StateActions([1, 2, 3, 4]),  # A = 2.5
    wd.StateActions([2, 2, 3, 1, 1, 1, 1]),  # A = 11/7
    wd.StateActions.uniform(states=20, actions=4),
    wd.StateActions.uniform(states=10_000, actions=3),  # 2^10000 is no float
)
SETTINGS = [(T, delta) for T in (1, 97, 5_000, 100_000, 10**9) for delta in (0.5, 0.05, 1e-9)]
ALL = [
    Radii.paper(),
    Radii.proof(),
    Radii.proof(bounded=True),
    Radii.laplace(),
    Radii.laplace(bounded=True),
    Radii.ucrl2(),
]
HERE = {"space": SPACES[1], "horizon": 5_000, "delta": 0.05}


def literal(radii, part, n, space, T, delta, t):
    """Spec 1.6, E13, I1 and 3.1, word by word, with 50 digits."""
    S, SA = mpmath.mpf(space.n_states), mpmath.mpf(space.n_pairs)
    A, N, d = SA / S, mpmath.mpf(max(1, n)), mpmath.mpf(delta)
    sqrt, ln, two = mpmath.sqrt, mpmath.log, mpmath.mpf(2)
    if radii.kind == "paper":
        L = ln(SA * T / d)
        return 2 * sqrt(2 * L / N) if part == "reward" else 2 * sqrt(2 * S * L / N)
    if radii.kind == "proof":
        if part == "transition":
            return 2 * sqrt((S * ln(two) + ln(2 * SA * T**2 / d)) / N)
        whole = 2 * sqrt(ln(2 * SA * T**2 / d) / N)
        return whole / 2 if radii.bounded else whole
    if radii.kind == "laplace":
        if part == "transition":
            inside = 2 * sqrt(N + 1) * two ** (S - 1) * SA * T / d  # mpmath has the exponent for it
            return sqrt(2 * (1 + 1 / N) * ln(inside) / N)
        inside = 2 * sqrt(N + 1) * SA * T / d
        if radii.bounded:
            return sqrt((1 + 1 / N) * ln(inside) / (2 * N))
        return sqrt(2 * (1 + 1 / N) * ln(inside) / N)
    if part == "reward":
        return sqrt(7 * ln(2 * SA * t / d) / (2 * N))
    return sqrt(14 * S * ln(2 * A * t / d) / N)


def ulps(found, exact):
    return float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(math.ulp(float(exact))))


@pytest.mark.parametrize("radii", ALL, ids=lambda radii: radii.label)
@pytest.mark.parametrize("space", SPACES, ids=lambda space: f"S={space.n_states}")
def test_within_one_ulp_of_fifty_digits(radii, space):
    with mpmath.workdps(50):
        for T, delta in SETTINGS:
            t = max(1, T // 3) if radii.needs_time else None
            for part in ("reward", "transition"):
                found = getattr(radii, part)(COUNTS, space=space, horizon=T, delta=delta, t=t)
                for n, value in zip(COUNTS, found, strict=True):
                    exact = literal(radii, part, n, space, T, delta, t)
                    assert ulps(value, exact) <= 1.0, (n, T, delta, part)


def test_scaled_radii_are_within_one_ulp_too():
    with mpmath.workdps(50):
        for radii in ALL:
            for c in (0.1, 0.3, 1.7):
                t = 17 if radii.needs_time else None
                found = radii.scaled(c).transition(COUNTS, **HERE, t=t)
                for n, value in zip(COUNTS, found, strict=True):
                    exact = mpmath.mpf(c) * literal(radii, "transition", n, *HERE.values(), t)
                    assert ulps(value, exact) <= 1.0


def test_the_rounding_is_not_loose():
    """What the reference must be able to reject: a plain evaluation is off by more than an ulp."""
    worst = 0.0
    with mpmath.workdps(50):
        for n in range(1, 2000):
            plain = math.sqrt(
                2 * (1 + 1 / n) * math.log(2 * math.sqrt(n + 1) * 2 * 4 * 5_000 / 0.05) / n
            )
            exact = literal(Radii.laplace(), "transition", n, *HERE.values(), None)
            worst = max(worst, ulps(plain, exact))
            found = Radii.laplace().transition(n, **HERE)
            assert ulps(found, exact) <= 1.0
    assert worst > 1.0


def test_unvisited_counts_as_one_visit():
    for radii in ALL:
        t = 5 if radii.needs_time else None
        for part in (radii.reward, radii.transition):
            assert part(0, **HERE, t=t) == part(1, **HERE, t=t) > part(2, **HERE, t=t)


def test_scalars_give_floats_and_arrays_arrays():
    paper = Radii.paper()
    one = paper.reward(7, **HERE)
    assert type(one) is float
    assert type(paper.reward(np.int64(7), **HERE)) is float
    table = paper.reward([[7, 8], [9, 0]], **HERE)
    assert table.shape == (2, 2)
    assert table[0, 0] == one
    assert paper.reward([], **HERE).shape == (0,)
    # spec 5.1: the radius at the mean number of visits, which need not be whole
    assert paper.transition(274.9459274 / 4, **HERE) == pytest.approx(1.73, abs=0.005)


def test_the_rules_are_the_numbers_of_the_formula():
    L = math.log(4 * 5_000 / 0.05)
    rows = Radii.paper().scaled(reward=0.1, transition=0.2).rules(*HERE.values())
    assert rows.shape == (2, 4)
    assert rows.dtype == np.float64
    assert rows[0].tolist() == pytest.approx([8 * L, 0, 0, 0.1])
    assert rows[1].tolist() == pytest.approx([16 * L, 0, 0, 0.2])
    assert Radii.laplace(bounded=True).rules(*HERE.values())[:, 1].tolist() == [0.25, 1.0]
    assert Radii.ucrl2().rules(*HERE.values())[:, 2].tolist() == [3.5, 28.0]


def test_ucrl2_grows_with_the_time_of_planning():
    radii = Radii.ucrl2()
    values = [radii.reward(9, **HERE, t=t) for t in (1, 10, 10**6)]
    assert values == sorted(set(values))
    assert Radii.paper().reward(9, **HERE, t=5) == Radii.paper().reward(9, **HERE)


# --- what they are called ------------------------------------------------------------------------


def test_guarantees():
    assert [radii.keeps_guarantee for radii in ALL] == [True] * 5 + [False]
    assert Radii.paper().scaled(1.5).keeps_guarantee
    assert not Radii.laplace().scaled(0.99).keeps_guarantee
    assert not Radii.laplace().scaled(reward=0.5).keeps_guarantee
    assert not Radii.laplace().scaled(transition=0.5).keeps_guarantee
    assert [radii.needs_time for radii in ALL] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("radii", "label", "spec"),
    [
        (Radii.paper(), "paper", "paper"),
        (Radii.laplace().scaled(0.3), "laplace x0.3", {"kind": "laplace", "scale": 0.3}),
        (
            Radii.paper().scaled(reward=0.1, transition=0.2),
            "paper r x0.1 p x0.2",
            {"kind": "paper", "reward": 0.1, "transition": 0.2},
        ),
        (Radii.proof(bounded=True), "proof bounded", {"kind": "proof", "bounded": True}),
        (
            Radii.laplace(bounded=True).scaled(2).scaled(transition=0.5),
            "laplace bounded r x2 p x1",
            {"kind": "laplace", "bounded": True, "reward": 2.0, "transition": 1.0},
        ),
        (Radii.ucrl2().scaled(0), "ucrl2 x0", {"kind": "ucrl2", "scale": 0.0}),
    ],
)
def test_labels_and_specs_go_there_and_back(radii, label, spec):
    assert radii.label == label
    assert radii.spec() == spec
    assert Radii.from_spec(spec) == radii
    assert Radii.from_spec(radii) is radii
    assert eval(repr(radii)) == radii
    assert hash(Radii.from_spec(spec)) == hash(radii)


def test_scales_multiply():
    radii = Radii.paper().scaled(0.5).scaled(reward=4.0).scaled(0.5)
    assert (radii.reward_scale, radii.transition_scale) == (1.0, 0.25)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Radii("papr"), "radii"),
        (lambda: Radii("paper", bounded=True), "bounded"),
        (lambda: Radii.proof(bounded=1), "bounded"),
        (lambda: Radii.paper().scaled(), "scale"),
        (lambda: Radii.paper().scaled(0.5, reward=1.0), "scale"),
        (lambda: Radii.paper().scaled(-1.0), "scale"),
        (lambda: Radii.paper().scaled(math.nan), "scale"),
        (lambda: Radii.paper().scaled(reward="much"), "reward"),
        (lambda: Radii.paper().scaled(transition=math.inf), "transition"),
        (lambda: Radii.from_spec(3, "agents[0].radii"), "agents[0].radii"),
        (lambda: Radii.from_spec("papre", "agents[0].radii"), "agents[0].radii.kind"),
        (lambda: Radii.from_spec({"scale": 1.0}), "radii"),
        (lambda: Radii.from_spec({"kind": "paper", "scal": 1.0}), "radii.scal"),
        (lambda: Radii.from_spec({"kind": "paper", "scale": 1, "reward": 1}), "radii.scale"),
        (lambda: Radii.from_spec({"kind": "paper", "scale": -1}), "radii.scale"),
        (lambda: Radii.from_spec({"kind": "paper", "reward": "x"}), "radii.reward"),
        (lambda: Radii.ucrl2().reward(3, **HERE), "t"),
        (lambda: Radii.ucrl2().reward(3, **HERE, t=0), "t"),
        (lambda: Radii.paper().reward(-1, **HERE), "n"),
        (lambda: Radii.paper().reward([1, math.nan], **HERE), "n"),
        (lambda: Radii.paper().reward(math.inf, **HERE), "n"),
        (lambda: Radii.paper().reward(True, **HERE), "n"),
        (lambda: Radii.paper().reward("3", **HERE), "n"),
        (lambda: Radii.paper().reward(3, **HERE | {"space": 4}), "space"),
        (lambda: Radii.paper().reward(3, **HERE | {"delta": 0.0}), "delta"),
        (lambda: Radii.paper().reward(3, **HERE | {"delta": 1.0}), "delta"),
        (lambda: Radii.paper().reward(3, **HERE | {"horizon": 0}), "horizon"),
        (lambda: Radii.paper().reward(3, **HERE | {"horizon": 1e5}), "horizon"),
    ],
)
def test_bad_input_is_named(make, field):
    with pytest.raises(wd.WindageError) as caught:
        make()
    assert caught.value.field == field
    assert caught.value.fix


def test_a_wrong_count_is_placed():
    with pytest.raises(wd.InputError, match=r"n at \[1, 0\]: -2.0 is no number of visits"):
        Radii.paper().reward([[1, 2], [-2, 4]], **HERE)


@pytest.mark.parametrize("n", [[[1], [1, 2]], [1, [2]], [10**400], [1.0, 10**400], [10**5000]])
def test_what_is_no_array_of_counts_is_an_input_error(n):
    with pytest.raises(wd.InputError, match="are no counts") as caught:
        Radii.paper().reward(n, **HERE)
    assert caught.value.field == "n"
    assert "rows" in caught.value.fix


def test_a_space_that_is_none_is_what_it_is_everywhere():
    with pytest.raises(wd.ModelError, match="space: is of type list, not StateActions"):
        Radii.paper().rules([2, 1], 100, 0.05)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Radii.paper().scaled(1e305), "scale"),
        (lambda: Radii.paper().scaled(math.nextafter(1e100, math.inf)), "scale"),
        (lambda: Radii.paper().scaled(reward=1e101), "reward"),
        (lambda: Radii.paper().scaled(transition=1e101), "transition"),
        (lambda: Radii.paper().scaled(1e60).scaled(reward=1e60), "reward_scale"),
        (lambda: Radii("paper", False, 1.0, 1e101), "transition_scale"),
        (lambda: Radii.from_spec({"kind": "paper", "scale": 1e101}, "a.radii"), "a.radii.scale"),
        (lambda: Radii.from_spec({"kind": "paper", "reward": 1e101}), "radii.reward"),
    ],
)
def test_scales_beyond_reckoning_are_refused(make, field):
    with pytest.raises(wd.InputError, match=r"\[0, 1e\+100\]") as caught:
        make()
    assert caught.value.field == field


def test_the_largest_scale_is_within_one_ulp():
    with mpmath.workdps(50):
        for radii in ALL:
            t = 17 if radii.needs_time else None
            for part in ("reward", "transition"):
                found = getattr(radii.scaled(1e100), part)(COUNTS, **HERE, t=t)
                for n, value in zip(COUNTS, found, strict=True):
                    exact = mpmath.mpf(1e100) * literal(radii, part, n, *HERE.values(), t)
                    assert ulps(value, exact) <= 1.0


def test_naming_radii_does_not_load_the_compiler():
    code = "import sys, windage as wd; wd.Radii.paper().scaled(2).rules"
    code += "(wd.StateActions([2]), 10, 0.1); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiled_and_plain_radii_are_the_same_bytes():
    code = (
        "import numpy as np, windage as wd\n"
        "n = np.concatenate([np.arange(500), np.geomspace(500, 1e9, 500).astype(int)])\n"
        "here = dict(space=wd.StateActions([1, 2, 3, 4]), horizon=9_999, delta=0.07, t=77)\n"
        "for kind in ('paper', 'proof', 'laplace', 'ucrl2'):\n"
        "    print(wd.Radii(kind).scaled(0.3).transition(n, **here).tobytes().hex())\n"
    )
    said = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=env)
        for env in (os.environ | {"NUMBA_DISABLE_JIT": flag} for flag in ("0", "1"))
    ]
    assert said[0].stdout == said[1].stdout
    assert len(said[0].stdout) > 4 * 1000 * 16


def test_kinds_are_all_here():
    elsewhere = {"varying", "bernstein"}  # test_radii_bernstein.py
    assert {radii.kind for radii in ALL} | elsewhere == set(KINDS)
