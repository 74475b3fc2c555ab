"""Statistics against tables computed by hand, brute force over fractions, and scipy."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import windage as wd
from windage.errors import InputError
from windage.study import stats
from windage.study.store import load_oracles

RNG = np.random.default_rng(7)


def flipped(differences):
    """The p-value by its definition: all signs, in exact arithmetic."""
    d = [Fraction(str(x)) for x in differences]
    seen = abs(sum(d))
    sums = [
        sum(s * x for s, x in zip(signs, d, strict=True))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    return Fraction(sum(abs(s) >= seen for s in sums), len(sums))


@pytest.mark.parametrize(
    ("differences", "wanted"),
    [
        ([1.0], 1.0),  # both signs are as far from zero
        ([1.0, 1.0], 0.5),
        ([1.0, 2.0, 3.0], 0.25),
        ([1.0, -1.0], 1.0),
        ([0.0, 0.0], 1.0),
        ([5.0, 0.0, 5.0], 0.5),  # the zero changes nothing
        ([1.0, 1.0, 1.0, -1.0], 10 / 16),  # |sum| >= 2 in 2 + 8 of 16
        ([-1.0, -2.0, -3.0], 0.25),
        ([2.0, 1.0, 1e-9], 0.25),  # nearly as far is not as far
        ([0.1, 0.2, -0.3, 0.4], 0.625),  # |sum| >= 0.4 in 10 of 16, up to rounding
    ],
)
def test_signs_by_hand(differences, wanted):
    assert stats.sign_flip_test(differences) == wanted


def test_signs_against_fractions_and_scipy():
    for n in (2, 5, 8, 11):
        for spread in (1.0, 0.2):
            d = np.round(RNG.normal(0.3, spread, n), 2)
            d[0] = d[1]  # ties
            found = stats.sign_flip_test(d)
            assert found == pytest.approx(float(flipped(d)), abs=1e-12)
            theirs = scipy.stats.permutation_test(
                (d,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", vectorized=True
            )
            assert found == pytest.approx(theirs.pvalue, abs=1e-12)


def test_signs_of_thirty_seeds_are_counted_and_of_more_sampled():
    exact = RNG.normal(0.4, 1.0, 30)
    # thirty and one more that is nearly zero: the same question, asked of a sample of signs
    sampled = np.append(exact, 1e-13)
    p = stats.sign_flip_test(exact)
    assert 0.001 < p < 0.5
    # 99,999 draws: five standard deviations of the share
    assert abs(stats.sign_flip_test(sampled) - p) < 5 * np.sqrt(p * (1 - p) / 99_999)
    assert stats.sign_flip_test(sampled) == stats.sign_flip_test(sampled)
    assert stats.sign_flip_test(sampled) == stats.sign_flip_test(-sampled)
    assert stats.sign_flip_test(np.ones(40)) == 1 / 100_000  # never zero
    assert stats.sign_flip_test(np.ones(30)) == 2.0**-29


def test_wilcoxon_agrees_where_differences_are_ranks():
    """With differences of sizes 1..n the two tests are the same."""
    for signs in itertools.product((1, -1), repeat=7):
        d = np.array(signs) * np.arange(1.0, 8.0)
        theirs = scipy.stats.wilcoxon(d, method="exact").pvalue
        assert stats.sign_flip_test(d) == pytest.approx(min(theirs, 1.0), abs=1e-12)


@pytest.mark.parametrize(
    ("p", "wanted"),
    [
        ([], []),
        ([0.2], [0.2]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.6, 0.9], [1.0, 1.0]),  # never above one
        ([0.04, 0.001, 0.04], [0.08, 0.003, 0.08]),
    ],
)
def test_holm_by_hand(p, wanted):
    assert stats.holm(p) == pytest.approx(np.array(wanted), abs=1e-15)


def test_holm_by_its_definition():
    """Step down: stop at the first p-value above level / (those left)."""
    for _ in range(200):
        p = RNG.random(RNG.integers(1, 7)) ** 3
        for level in (0.01, 0.05, 0.3):
            rejected = np.zeros(p.size, bool)
            for k, i in enumerate(np.argsort(p)):
                if p[i] > level / (p.size - k):
                    break
                rejected[i] = True
            assert ((stats.holm(p) <= level) == rejected).all()


def literal_picks(n, stratum=0):
    return stats.resampled_seeds(n, stratum)


def test_the_mean_and_its_interval():
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    found = stats.mean(x)
    means = sorted(sum(x[i] for i in pick) / 5 for pick in literal_picks(5))
    assert found.estimate == pytest.approx(2.8)
    # the quantile by its definition, linear between order statistics
    for q, value in ((0.025, found.low), (0.975, found.high)):
        place = q * (len(means) - 1)
        k = int(place)
        assert value == pytest.approx(means[k] + (place - k) * (means[k + 1] - means[k]), abs=1e-12)
    theirs = scipy.stats.bootstrap((x,), np.mean, method="percentile", n_resamples=10_000, rng=1)
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.15)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.15)
    assert stats.mean(x) == found


def test_resamples_draw_every_seed_alike():
    counts = np.bincount(literal_picks(10).ravel(), minlength=10)
    assert scipy.stats.chisquare(counts).pvalue > 1e-6
    assert (literal_picks(10) != literal_picks(10, 1)).any()
    assert stats.seed_counts(7).sum(axis=1).tolist() == [7.0] * stats.RESAMPLES
    assert (stats.seed_counts(7)[3] == np.bincount(literal_picks(7)[3], minlength=7)).all()


@pytest.mark.parametrize(
    ("n", "normal", "exponential"),
    [(2, 0.5, 0.45), (5, 0.84, 0.79), (10, 0.91, 0.86), (20, 0.93, 0.9), (50, 0.94, 0.93)],
)
def test_intervals_hold_the_truth_as_often_as_the_reference_says(n, normal, exponential):
    """Percentile intervals of few seeds are too narrow; 1,000 trials each.

    Five standard deviations of the share are at most 0.08, of which half a percent is rounding. An
    interval of half the width holds 66 % of 20 normal values and is caught.
    """
    rng = np.random.default_rng(n)
    for values, mean, wanted in (
        (rng.normal(size=(1000, n)), 0.0, normal),
        (rng.exponential(size=(1000, n)), 1.0, exponential),
    ):
        _, low, high = stats.band(values.T)  # a trial a time: the intervals of means, all at once
        hits = ((low <= mean) & (mean <= high)).mean()
        assert abs(hits - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / 1000) + 0.005


def test_p_values_are_as_small_as_they_say_no_more_often():
    """Without a difference p <= 1/8 in one eighth of the cases: exact signs, few seeds."""
    rng = np.random.default_rng(5)
    for n in (4, 7):
        found = [stats.sign_flip_test(rng.normal(size=n)) <= 1 / 8 for _ in range(4000)]
        assert abs(np.mean(found) - 1 / 8) < 5 * np.sqrt(7 / 64 / 4000)


def test_paired_by_hand():
    found = stats.paired([3.0, 4.0, 6.0, 5.0], [1.0, 2.0, 3.0, 5.0])
    assert (found.n, found.wins, found.ties) == (4, 3, 1)
    assert found.difference.estimate == 1.75
    assert found.p_value == 0.25  # of 2, 2 and 3: all alike, or all the other way
    # pairing: noise that both share is no noise
    noise = RNG.normal(0, 100, 12)
    apart = stats.paired(noise + 1.0, noise)
    assert apart.difference.low == pytest.approx(1.0)
    assert apart.difference.high == pytest.approx(1.0)
    assert apart.p_value == 2.0**-11


def test_ratio():
    x, y = RNG.random(9) + 1, RNG.random(9) + 2
    found = stats.ratio(x, y)
    assert found.estimate == pytest.approx(x.mean() / y.mean())
    draws = [x[pick].mean() / y[pick].mean() for pick in literal_picks(9)]
    assert found.low == pytest.approx(np.quantile(draws, 0.025))
    with pytest.raises(InputError, match="not clearly positive"):
        stats.ratio([1.0, 1.0], [1.0, -1.0])


def test_interquartile_mean_is_scipys_trimmed_mean():
    for n in (1, 3, 4, 5, 8, 21, 30):
        x = RNG.normal(size=n)
        assert stats.iqm(x) == pytest.approx(scipy.stats.trim_mean(x, 0.25), abs=1e-14)
    assert stats.iqm([1.0, 2.0, 3.0, 1000.0]) == 2.5


@pytest.mark.parametrize("statistic", ["iqm", "mean", "median"])
def test_aggregate_draws_within_each_environment(statistic):
    scores = {"river": RNG.random(6), "queue": RNG.random(4) + 10, "shop": RNG.random(5) - 10}
    ours = {"iqm": lambda x: scipy.stats.trim_mean(x, 0.25), "mean": np.mean, "median": np.median}
    pooled = np.concatenate(list(scores.values()))
    draws = []
    for b in range(stats.RESAMPLES):
        parts = [x[literal_picks(x.size, k)[b]] for k, x in enumerate(scores.values())]
        draws.append(ours[statistic](np.concatenate(parts)))
        if b == 400:
            break
    found = stats.aggregate(scores, statistic, same_seeds=False)
    assert found.estimate == pytest.approx(ours[statistic](pooled))
    # strata keep their sizes: with whole environments drawn the spread would be about 4
    assert found.high - found.low < 1.5
    assert found.low <= np.quantile(draws, 0.2)
    assert found.high >= np.quantile(draws, 0.8)


def test_probability_of_improvement_is_mann_whitneys():
    x = {"river": RNG.normal(size=8), "queue": np.round(RNG.normal(size=6), 0)}
    y = {"river": RNG.normal(size=8), "queue": np.round(RNG.normal(size=6), 0)}
    each = [scipy.stats.mannwhitneyu(x[k], y[k]).statistic / x[k].size ** 2 for k in x]
    found = stats.improvement(x, y, same_seeds=False)
    assert found.estimate == pytest.approx(np.mean(each))
    one = stats.improvement({"river": x["river"]}, {"river": y["river"]})
    draws = [
        scipy.stats.mannwhitneyu(x["river"][pick], y["river"][pick]).statistic / 64
        for pick in literal_picks(8)[:400]
    ]
    assert one.low <= np.quantile(draws, 0.1) <= np.quantile(draws, 0.9) <= one.high
    assert stats.improvement(x, x, same_seeds=False).estimate == 0.5
    back = stats.improvement(y, x, same_seeds=False)
    assert back.estimate == pytest.approx(1 - found.estimate)


def test_improvement_draws_both_agents_together():
    """The quadratic form of counts is the mean over all pairs of drawn runs, one by one."""
    x, y = RNG.normal(size=5), RNG.normal(size=5)
    draws = []
    for pick in literal_picks(5):
        wins = sum((x[i] > y[j]) + 0.5 * (x[i] == y[j]) for i in pick for j in pick)
        draws.append(wins / 25)
    found = stats.improvement({"a": x}, {"a": y})
    assert found.low == pytest.approx(np.quantile(draws, 0.025))
    assert found.high == pytest.approx(np.quantile(draws, 0.975))


def test_profiles_by_hand():
    scores = {"river": [0.2, 0.4, 0.6, 0.8], "queue": [0.5, 0.5]}
    found = stats.profile(scores, [0.0, 0.5, 0.7, 1.0], same_seeds=False)
    # environments count alike: (2/4 + 0/2) / 2 above 0.5, (1/4 + 0) / 2 above 0.7
    assert found.share.tolist() == [1.0, 0.25, 0.125, 0.0]
    assert (found.low <= found.share).all()
    assert (found.share <= found.high).all()
    assert found.low[0] == found.high[0] == 1.0
    draws = [
        ((np.array(scores["river"])[pick] > 0.7).mean() + 0.0) / 2 for pick in literal_picks(4)
    ]
    assert found.high[2] == pytest.approx(np.quantile(draws, 0.975))


def test_slopes_against_linregress():
    T = np.array([1e3, 4e3, 16e3])
    values = 5 * T**0.75 * np.exp(RNG.normal(0, 0.1, (10, 3)))
    found = stats.slope(T, values)
    theirs = scipy.stats.linregress(np.log(T), np.log(values.mean(axis=0)))
    assert found.estimate == pytest.approx(theirs.slope, abs=1e-12)
    draws = [
        scipy.stats.linregress(np.log(T), np.log(values[pick].mean(axis=0))).slope
        for pick in literal_picks(10)
    ]
    assert found.low == pytest.approx(np.quantile(draws, 0.025))
    assert found.high == pytest.approx(np.quantile(draws, 0.975))
    with pytest.raises(InputError, match="T = 4,000 is not clearly positive"):
        stats.slope(T, values - np.array([0, 1e9, 0]))
    # all means are positive, but not of a draw that holds the first seed only
    with pytest.raises(InputError, match="T = 4,000 is not clearly positive"):
        stats.slope(T, [[5.0, -1.0, 8.0], [6.0, 12.0, 14.0]])


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: stats.mean([]), "values"),
        (lambda: stats.mean([1.0, np.nan]), "values"),
        (lambda: stats.mean("abc"), "values"),
        (lambda: stats.mean([1.0], level=1.0), "level"),
        (lambda: stats.paired([1.0, 2.0], [1.0]), "second"),
        (lambda: stats.holm([0.5, 1.5]), "p_values"),
        (lambda: stats.aggregate({}), "scores"),
        (lambda: stats.aggregate({"a": [1.0]}, "mode"), "statistic"),
        (lambda: stats.improvement({"a": [1.0]}, {"b": [1.0]}), "second"),
        (lambda: stats.slope([100], [[1.0]]), "horizons"),
        (lambda: stats.slope([100, 200], [[1.0]]), "values"),
        (lambda: stats.slope([100, 200], [[1.0, 2.0], [1.0]]), "values"),
        (lambda: stats.slope([100, 200], []), "values"),
        (lambda: stats.slope([100, 100], [[1.0, 2.0]]), "horizons"),
        (lambda: stats.slope([0, 100], [[1.0, 2.0]]), "horizons"),
        (lambda: stats.band([[1.0, 2.0], [1.0]]), "values"),
        (lambda: stats.holm("abc"), "p_values"),
        (lambda: stats.holm([0.5, np.nan]), "p_values"),
        (lambda: stats.improvement({}, {}), "first"),
        (lambda: stats.improvement({"a": [1.0, 2.0]}, {"a": [1.0]}), "second"),
        (lambda: stats.profile({}, [0.5]), "scores"),
        (lambda: stats.profile({"a": [1.0]}, [0.5, np.nan]), "thresholds"),
        (lambda: stats.profile({"a": [1.0]}, "half"), "thresholds"),
    ],
)
def test_bad_input(call, field):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field


@pytest.mark.parametrize(
    "width",
    [
        lambda worlds, **how: _width(stats.aggregate(worlds, "mean", **how)),
        lambda worlds, **how: _width(stats.improvement(worlds, dict.fromkeys(worlds, Y), **how)),
        lambda worlds, **how: float(
            np.ptp([(p := stats.profile(worlds, [0.5], **how)).low, p.high])
        ),
    ],
    ids=["aggregate", "improvement", "profile"],
)
def test_seeds_are_drawn_for_all_environments_or_anew_in_each(width):
    """Two that are the same on every seed tell no more than one; two with other seeds do."""
    one, two = width({"a": X}), width({"a": X, "b": X})
    assert two == pytest.approx(one, rel=1e-9)
    assert width({"a": X, "b": X}, same_seeds=False) / one == pytest.approx(0.5**0.5, abs=0.06)
    # noise that both share, with the other sign: their mean is not moved by it
    assert width({"a": X, "b": 1 - X}) < 0.75 * one
    with pytest.raises(InputError, match="100, 3 seeds are not the same ones"):
        width({"a": X, "b": X[:3]})


def test_runs_on_one_seed_are_alike_in_all_environments():
    """Why seeds are drawn together: the interval must be that of the mean of each seed."""
    worlds = [wd.envs.make("riverswim", states=states, horizon=200) for states in (5, 6)]
    earned = np.array(
        [
            [
                wd.run(world, wd.agents.make("random", world.space, horizon=200, seed=s), seed=s)
                .total_reward
                for s in range(30)
            ]
            for world in worlds
        ]
    )  # fmt: skip
    assert np.corrcoef(earned)[0, 1] > 0.9
    found = stats.aggregate(dict(zip("ab", earned, strict=True)), "mean")
    each = stats.mean(earned.mean(axis=0))
    assert (found.low, found.high) == pytest.approx((each.low, each.high))


@pytest.mark.parametrize(
    ("ends", "estimates"),
    [
        (lambda q: stats.mean(Z[0], q), lambda i: Z[0, i].mean()),
        (lambda q: stats.paired(Z[0], Z[1], q).difference, lambda i: (Z[0] - Z[1])[i].mean()),
        (lambda q: stats.ratio(Z[0], Z[1], q), lambda i: Z[0, i].mean() / Z[1, i].mean()),
        (lambda q: stats.aggregate({"a": Z[0]}, "median", q), lambda i: np.median(Z[0, i])),
        (
            lambda q: stats.improvement({"a": Z[0]}, {"a": Z[1]}, q),
            lambda i: (Z[0, i][:, None] > Z[1, i]).mean(),
        ),
        (lambda q: stats.profile({"a": Z[0]}, [0.5], q), lambda i: (Z[0, i] > 0.5).mean()),
        (
            lambda q: stats.slope([10, 100], Z.T, q),
            lambda i: np.log10(Z[1, i].mean() / Z[0, i].mean()),
        ),
        (lambda q: stats.band(Z[:1].T, q), lambda i: Z[0, i].mean()),
    ],
    ids=["mean", "paired", "ratio", "aggregate", "improvement", "profile", "slope", "band"],
)
def test_intervals_of_another_level(ends, estimates):
    """Half of the draws lie between the quarters, whatever is drawn; each by its definition."""
    found = ends(0.5)
    wanted = np.quantile([estimates(pick) for pick in literal_picks(Z.shape[1])], [0.25, 0.75])
    low, high = found[1:] if isinstance(found, tuple) else (found.low, found.high)
    assert np.ravel([low, high]) == pytest.approx(wanted, abs=1e-12)
    assert getattr(found, "level", 0.5) == 0.5


X, Y = np.random.default_rng(3).random((2, 100))
Z = np.random.default_rng(4).random((2, 9)) + 0.1


def _width(found):
    return found.high - found.low


def test_a_band_is_the_interval_of_the_mean_at_every_time():
    curves = np.random.default_rng(0).random((7, 5)).cumsum(axis=1)
    mean, low, high = stats.band(curves)
    for k in range(5):
        alone = stats.mean(curves[:, k])
        found = (mean[k], low[k], high[k])
        assert found == pytest.approx((alone.estimate, alone.low, alone.high), rel=1e-12)


@pytest.mark.parametrize("values", [[1.0, 2.0], np.empty((0, 3)), [[1.0, float("nan")]]])
def test_what_is_no_set_of_curves_is_refused(values):
    with pytest.raises(InputError, match="values: has the shape"):
        stats.band(values)


def test_horizons_of_one_environment_keep_their_oracles(tmp_path):
    study = wd.Study(
        name="two lengths",
        horizon=[50, 100],
        seeds=1,
        environments=[{"id": "two-state-cosine", "label": "world"}],
        agents=[{"id": "random"}],
    )
    study.run(tmp_path / "out", workers=1)
    oracles = load_oracles(tmp_path / "out")
    assert oracles["environment"].to_list() == ["world", "world"]
    assert sorted(oracles["horizon"].to_list()) == [50, 100]
    for row in oracles.iter_rows(named=True):
        world = wd.envs.make("two-state-cosine", horizon=row["horizon"])
        assert row["total"] == pytest.approx(world.optimal_gains().sum(), abs=1e-3)
