"""Certified gains along lines and over boxes, against linear programs in between."""

from __future__ import annotations

import numpy as np
import pytest

import windage as wd
from tests.models import random_mdp
from windage.models.gains import Unsolved, bracket, certify_line, corner
from windage.oracle import gain
from windage.oracle.lp import gain_lp

SPACES = [
    wd.StateActions([3]),
    wd.StateActions([2, 1]),
    wd.StateActions([2, 3, 1, 2]),
    wd.StateActions.uniform(8, 2),
]


def ends(space, seed, density=0.7):
    a, b = random_mdp(space, seed, density), random_mdp(space, seed + 1000, density)
    return (a.rewards, b.rewards), (a.transitions, b.transitions)


def lp(space, rewards, transitions, v, w=None):
    w = v if w is None else w
    r = (1 - v) * rewards[0] + v * rewards[1]
    p = (1 - w) * transitions[0] + w * transitions[1]
    return gain_lp(space, r, p).primal


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_every_point_of_a_line_lies_in_its_bracket(space, seed, tol):
    rewards, transitions = ends(space, seed, density=1.0)
    line = certify_line(space, rewards, transitions, 0.0, 1.0, tol)
    assert line.error.max() <= tol
    assert line.x[0] == 0
    assert line.x[-1] == 1
    assert (np.diff(line.x) > 0).all()
    for x in np.random.default_rng(seed).random(8):
        value, error = line.at(np.array([x]))
        assert abs(value[0] - lp(space, rewards, transitions, x)) <= error[0] + 1e-9


def test_points_themselves_are_exact():
    space = SPACES[2]
    rewards, transitions = ends(space, 3, 1.0)
    line = certify_line(space, rewards, transitions, 0.2, 0.9, 1e-3)
    for x, g in zip(line.x[::5], line.gains[::5], strict=True):
        assert g == pytest.approx(lp(space, rewards, transitions, x), abs=1e-8)


def test_certificates_are_tight_where_the_policy_stays():
    """The error falls with the square of the step: a hundredth of it costs ten times the solves."""
    space = SPACES[3]
    rewards, transitions = ends(space, 0, 1.0)
    few = certify_line(space, rewards, transitions, 0.0, 1.0, 1e-4)
    many = certify_line(space, rewards, transitions, 0.0, 1.0, 1e-6)
    assert few.solves < many.solves < 25 * few.solves


def test_a_line_that_stands_still_takes_two_solves():
    space = SPACES[2]
    mdp = random_mdp(space, 5)
    line = certify_line(
        space, (mdp.rewards, mdp.rewards), (mdp.transitions, mdp.transitions), 0.0, 1.0, 1e-9
    )
    assert line.solves == 2


def test_a_line_with_several_classes_is_left_to_others():
    """At x = 0 nobody leaves either state, and the largest gain jumps as soon as x > 0."""
    space = wd.StateActions([1, 2])
    stay = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    leak = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    rewards = np.array([0.0, 1.0, 1.0])
    given_up = certify_line(space, (rewards, rewards), (stay, leak), 0.0, 1.0, 1e-3)
    assert given_up == Unsolved(1)
    line = certify_line(space, (rewards, rewards), (stay, leak), 0.1, 1.0, 1e-3)
    assert np.abs(line.gains).max() <= 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_boxes_against_linear_programs(seed):
    space = SPACES[seed % len(SPACES)]
    rewards, transitions = ends(space, seed, 1.0)
    rng = np.random.default_rng(seed)
    v0, v1, w0, w1 = (*np.sort(rng.random(2)), *np.sort(rng.random(2)))
    change = transitions[1] - transitions[0]

    def at(v, w):
        r = rewards[0] + v * (rewards[1] - rewards[0])
        found = gain.solve(space, r, transitions[0] + w * change)
        return corner(space, found, r, w, transitions[0], change)

    corners = {(v, w): at(v, w) for v in (v0, v1) for w in (w0, w1)}
    edges = [(corners[v, w0], corners[v, w1]) for v in (v0, v1)]
    lower, upper = bracket(edges)
    assert lower <= 1e-9
    assert upper >= -1e-9
    for z, y in rng.random((12, 2)):
        v, w = v0 + z * (v1 - v0), w0 + y * (w1 - w0)
        line = sum(
            share * corners[key].gain
            for key, share in {
                (v0, w0): (1 - z) * (1 - y),
                (v0, w1): (1 - z) * y,
                (v1, w0): z * (1 - y),
                (v1, w1): z * y,
            }.items()
        )
        truth = lp(space, rewards, transitions, v, w)
        assert line + lower - 1e-8 <= truth <= line + upper + 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_the_compiled_bracket_is_the_bracket(seed):
    """One interval, both ways."""
    space = SPACES[seed % len(SPACES)]
    rewards, transitions = ends(space, seed, 1.0)
    change = transitions[1] - transitions[0]

    def at(x):
        r = rewards[0] + x * (rewards[1] - rewards[0])
        found = gain.solve(space, r, transitions[0] + x * change)
        return corner(space, found, r, x, transitions[0], change)

    lower, upper = bracket([(at(0.3), at(0.35))])
    line = certify_line(space, rewards, transitions, 0.3, 0.35, tol=1.0)
    assert line.x.size == 2
    assert line.offset[0] == pytest.approx(0.5 * (lower + upper), abs=1e-10)
    assert line.error[0] - 1e-3 == pytest.approx(0.5 * (upper - lower), abs=1e-10)


@pytest.mark.parametrize("most", [2, 3, 100])
def test_a_line_that_costs_too_much_is_given_up(most):
    space = SPACES[3]
    rewards, transitions = ends(space, 0, 1.0)
    enough = certify_line(space, rewards, transitions, 0.0, 1.0, 1e-7).solves
    assert enough > 100
    given_up = certify_line(space, rewards, transitions, 0.0, 1.0, 1e-7, most=most)
    assert given_up == Unsolved(most)
    line = certify_line(space, rewards, transitions, 0.0, 1.0, 1e-7, most=enough)
    assert line.solves == enough


def test_a_line_that_cannot_be_closed_ends():
    """Rows that do not sum to one make residuals that no cut removes: it used to cut for ever."""
    space = wd.StateActions([1, 1])
    p = np.array([[0.5, 0.5], [0.3, 0.7]]) * (1 + 5e-10)
    q = np.array([[0.2, 0.8], [0.6, 0.4]]) * (1 - 5e-10)
    rewards = np.array([0.0, 1.0]), np.array([1.0, 0.2])
    found = certify_line(space, rewards, (p, q), 0.0, 1.0, 1e-10, most=300)
    assert isinstance(found, Unsolved)
    assert found.solves <= 300


def test_the_compiled_bracket_allows_for_rounding():
    """Nothing moves, so all of the bracket is rounding: 8 (S + 4) eps at the least."""
    for space in SPACES:
        mdp = random_mdp(space, 5)
        line = certify_line(space, (mdp.rewards,) * 2, (mdp.transitions,) * 2, 0.0, 1.0, 1e-9)
        rounding = 8 * (space.n_states + 4) * 2.0**-52
        assert line.error[0] - line.point_error >= 0.99 * rounding
