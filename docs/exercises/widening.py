# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Optimism, and why drift needs more of it
#
# You will write the heart of an optimistic learner, the *inner maximum* of extended value
# iteration, then let drift fool it, and then mend it with *confidence widening*. Every part
# ends with asserts: if a cell runs, you are done with it. Allow an hour.
#
# Read beside it: Cheung, Simchi-Levi and Zhu (2020), sections 4 and 6 and Algorithm 2.

# %%
import numpy as np
from scipy.optimize import linprog

import windage as wd
from windage.envs.proposition3 import peril_replay

# %% [markdown]
# ## 1. The inner maximum
#
# A learner has seen a state-action pair often enough to believe that the next state follows
# some q with $\|q - \hat p\|_1 \le d$. If u(s) says how good it would be to be in state s, the
# most hopeful such q maximises q . u. No solver is needed: give the best state as much mass as
# d allows, and take it from the worst states first. An L1 ball of radius d lets d/2 of the mass
# move. Mind that no entry may leave [0, 1], and that from d = 2 on everything is allowed.


# %%
def best_row(p_hat, d, u):
    """Return the q within L1 distance d of p_hat that makes q . u largest."""
    raise NotImplementedError("your turn")


# %%
u = np.array([0.0, 1.0, 3.0])
assert np.allclose(best_row([0.5, 0.5, 0.0], 0.4, u), [0.3, 0.5, 0.2])
assert np.allclose(best_row([0.1, 0.9, 0.0], 0.4, u), [0.0, 0.8, 0.2]), "the worst state ran out"
assert np.allclose(best_row([0.2, 0.3, 0.5], 0.0, u), [0.2, 0.3, 0.5]), "no radius, no hope"
assert np.allclose(best_row([0.2, 0.3, 0.5], 2.0, u), [0.0, 0.0, 1.0]), "anything goes"


def by_program(p_hat, d, u):
    """The same maximum, asked of a solver of linear programs."""
    S, eye = len(p_hat), np.eye(len(p_hat))
    found = linprog(
        np.concatenate([-np.asarray(u), np.zeros(S)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, S)), np.ones((1, S))]]),
        b_ub=np.concatenate([p_hat, -np.asarray(p_hat), [d]]),
        A_eq=np.repeat([1.0, 0.0], S)[None],
        b_eq=[1.0],
    )
    return -found.fun


rng = np.random.default_rng(0)
for _ in range(50):
    S = int(rng.integers(1, 6))
    p_hat, d, u = rng.dirichlet(np.ones(S)), float(rng.uniform(0, 2.5)), rng.normal(size=S)
    q = best_row(p_hat, d, u)
    assert np.isclose(q.sum(), 1) and (q >= -1e-12).all(), "no probabilities"
    assert np.abs(q - p_hat).sum() <= d + 1e-9, "outside the set"
    assert np.isclose(q @ u, by_program(p_hat, d, u), atol=1e-7), "not the largest"
print("1. The inner maximum is right.")

# %% [markdown]
# ## 2. Extended value iteration
#
# Repeat u <- max over a of r(s, a) + max over q of q . u until the *span* of the change is
# small: all states then gain about the same a step, the optimistic gain. Keep u small by
# subtracting its least entry. Return the gain, the largest change, and the bias, the u that was
# swept last.


# %%
def evi(rewards, p_hat, d, epsilon=1e-4):
    """Return (gain, bias); rewards[s][a], p_hat[s][a] is a row, d[s][a] a radius."""
    raise NotImplementedError("your turn")


# %%
space = wd.StateActions([2, 2, 1])
rewards = [[0.2, 0.5], [0.1, 0.9], [0.4]]
rows = rng.dirichlet(np.ones(3), size=5)
p_hat = [rows[:2], rows[2:4], rows[4:]]
for d in (0.0, 0.3, 1.0):
    gain, bias = evi(rewards, p_hat, [[d, d], [d, d], [d]])
    region = wd.ConfidenceRegion(space, np.concatenate(rewards), rows, [d] * 5, [True] * 5)
    theirs = wd.evi(region, epsilon=1e-4)
    assert abs(gain - theirs.gain) <= 1e-9, (gain, theirs.gain)
print("2. Extended value iteration agrees with the library's.")

# %% [markdown]
# ## 3. Drift fools it
#
# Two states, two actions each. Under the first kernel one action stays and the other changes
# state; under the second they have changed places. Either way the other state is one step away:
# both models have *diameter* 1. The kernels take turns every tau steps, and `peril_replay`
# follows the trajectory of Proposition 3: what does a window of 4 tau steps hold in the end?

# %%
tau = 100
window = peril_replay(tau)
print("visits of a1, a2, b1, b2:", window.counts)
print("p-hat:", window.p_hat.round(4).tolist())

# %% [markdown]
# Both actions of both states look as if they led nowhere. Suppose that state 2 pays 1 and state
# 1 nothing, that this is known, and that the learner believes p-hat (d = 0). How many steps
# does it think the way from state 1 to state 2 takes? Compute the span of the bias, for several
# tau.


# %%
def span_of(tau, d):
    """Return the span of the optimistic bias after the replay; d is a radius, or one a row."""
    raise NotImplementedError("your turn")


# %%
for tau in (10, 30, 100):
    span = span_of(tau, 0.0)
    print(f"tau = {tau}: span {span:.1f}")
    assert abs(span - (tau + 1)) < 0.05, "one way out in tau + 1 tries"
print("3. The learner believes in a diameter of tau + 1 that is not there.")

# %% [markdown]
# ## 4. Widening
#
# Confidence widening adds eta to every radius, whatever the data say: a little more optimism.
# The radii of the four rows, of a1, a2, b1 and b2, are given.
#
# From every state at least eta/2 of the mass may then go to the best one. Why does that bound
# the span by max(1, 2/eta)? (Hint: if a coin that shows heads with probability eta/2 brings you
# there, how long do you wait?)


# %%
def widened_span(tau, radii, eta):
    """Return the span where each of the four rows has its radius, widened by eta."""
    raise NotImplementedError("your turn")


# %%
for eta in (1.0, 0.5, 0.2):
    spans = [widened_span(tau, np.zeros(4), eta) for tau in (10, 100, 1000)]
    print(f"eta = {eta}: spans {np.round(spans, 2)}, cap {max(1, 2 / eta):g}")
    assert max(spans) <= max(1, 2 / eta) + 1e-3
    assert spans[-1] > 0.9 * 2 / eta, "the cap is nearly attained when tau is large"

# With radii that shrink with the visits of a row, beside the library's own widening.
pair = wd.StateActions([2, 2])
for tau, eta in ((100, 0.0), (100, 0.2), (1000, 0.2)):
    window = peril_replay(tau)
    radii = 0.5 / np.sqrt(window.counts)
    region = wd.ConfidenceRegion(pair, [0, 0, 1, 1], window.p_hat, radii, [True] * 4, eta)
    theirs = wd.evi(region, epsilon=1e-5).span
    assert np.isclose(widened_span(tau, radii, eta), theirs, rtol=1e-3), (tau, eta, theirs)
print("4. With widening the bias stays below 2 / eta, however long the phases are.")

# %% [markdown]
# ## 5. To think about
#
# `windage paper perils` plays the drift for real. Widening caps the spans there too; does it
# lower the regret? What does a shorter window do? And why does the theorem need the cap, if the
# regret of this one world does not?

# %%
model = wd.envs.make("peril", tau=100, repeats=10)
lost = {}
for W in (50, 400):
    for eta in (0.0, 0.3):
        options = {"window": W, "widening": eta, "radii": {"kind": "laplace", "scale": 0.1}}
        agent = wd.agents.make("swucrl2-cw", model.space, horizon=model.horizon, **options)
        lost[W, eta] = wd.dynamic_regret(wd.run(model, agent, seed=0), model).total
        print(f"W = {W}, eta = {eta}: regret {lost[W, eta]:.0f} of {model.horizon}")
assert max(lost[50, eta] for eta in (0.0, 0.3)) < min(lost[400, eta] for eta in (0.0, 0.3))
