"""Parameters no environment has: refused by `make` and by `facts`, in the same words."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

import windage as wd
from windage.envs.registry import REGISTERED, register
from windage.errors import InputError, WindageError

NOISY = [id for id, entry in REGISTERED.items() if "noise" in entry.parameters]
assert len(NOISY) >= 11


@pytest.mark.parametrize(
    ("name", "parameters", "field"),
    [
        *[(each, {"horizon": 0}, "horizon") for each in wd.envs.names()],
        *[(each, {"noise": "loud"}, "noise") for each in NOISY],
        ("two-state-cosine", {"reward_cycles": -1}, "reward_cycles"),
        ("two-state-cosine", {"transition_cycles": 0.5}, "transition_cycles"),
        ("peril", {"tau": 0}, "tau"),
        ("peril", {"repeats": 0}, "repeats"),
        ("peril", {"tau": True}, "tau"),
        ("peril", {"tau": 1, "horizon": 2**40 - 1}, "horizon"),
        ("riverswim", {"states": 1}, "states"),
        ("riverswim", {"states": 10**12}, "states"),
        ("random-drift", {"states": 0}, "states"),
        ("random-drift", {"actions": 0}, "actions"),
        ("random-drift", {"mixing": 0}, "mixing"),
        ("random-drift", {"shape": "square"}, "shape"),
        ("random-drift", {"seed": -1}, "seed"),
        ("random-drift", {"reward_budget": -1}, "reward_budget"),
        ("random-drift", {"states": 10**6}, "states"),
        ("random-drift", {"states": 1}, "transition_budget"),
        ("random-drift", {"actions": 1, "mixing": 1}, "transition_budget"),
        ("inventory", {"unit_cost": 1e200}, "unit_cost"),
        ("epidemic", {"cycles": 0}, "cycles"),
        ("inventory", {"capacity": 0}, "capacity"),
        ("inventory", {"capacity": 9.0}, "capacity"),
        ("inventory", {"capacity": 50_000}, "capacity"),
        ("inventory", {"seasons": 0}, "seasons"),
        ("inventory", {"order_cost": -1}, "order_cost"),
        ("inventory", {"unit_cost": math.nan}, "unit_cost"),
        ("inventory", {"holding_cost": -0.1}, "holding_cost"),
        ("inventory-v0", {"shortage_cost": 0}, "shortage_cost"),
        ("inventory", {"price": 0}, "price"),
        ("inventory", {"seen": "stock"}, "seen"),
        ("inventory", {"zeta": 0}, "zeta"),
        ("inventory", {"zeta": 0.11}, "zeta"),
        ("queue", {"capacity": 0}, "capacity"),
        ("wireless", {"capacity": 0}, "capacity"),
        ("wireless", {"capacity": 10**7}, "capacity"),
        ("wireless", {"cycles": -1}, "cycles"),
        ("treatment", {"levels": 0}, "levels"),
        ("treatment", {"levels": 10**7}, "levels"),
        ("treatment", {"cycles": -1}, "cycles"),
        ("assortment", {"case_cost": -0.1}, "case_cost"),
        ("assortment", {"case_cost": math.inf}, "case_cost"),
        ("assortment", {"last": 0}, "last"),
        ("assortment", {"last": 1.1}, "last"),
        ("assortment", {"cycles": -1}, "cycles"),
        ("queue", {"capacity": 10**7}, "capacity"),
        ("queue", {"cycles": -1}, "cycles"),
        ("bidding", {"budget": 0}, "budget"),
        ("bidding", {"budget": 10**7}, "budget"),
        ("bidding", {"refill": 0}, "refill"),
        ("bidding", {"refill": 1}, "refill"),
        ("bidding", {"cycles": math.inf}, "cycles"),
        ("ride", {"zones": 3}, "zones"),
        ("ride", {"zones": 10**7}, "zones"),
        ("ride", {"days": 0}, "days"),
        ("epidemic", {"population": 1}, "population"),
        ("epidemic", {"population": 10**7}, "population"),
        ("epidemic", {"cycles": 1.5}, "cycles"),
        ("epidemic", {"variant": 0.9}, "variant"),
        ("epidemic", {"variant": 2.6}, "variant"),
        ("epidemic", {"importation": 0}, "importation"),
        ("replacement", {"wear": 0}, "wear"),
        ("replacement", {"wear": 10**7}, "wear"),
        ("bandit", {"shape": "wave"}, "shape"),
        ("bandit", {"cycles": -1}, "cycles"),
    ],
)
def test_bad_parameters(name, parameters, field):
    """Neither the model nor the closed forms exist for them, and both say so in the same words."""
    messages = set()
    for ask in (wd.envs.make, wd.envs.facts):
        with pytest.raises(WindageError) as caught:
            ask(name, **parameters)
        assert caught.value.field == field
        assert caught.value.fix
        messages.add(re.sub("[0-9.]+ .iB are free", "", str(caught.value)))
    assert len(messages) == 1


NONSENSE = [0, -1, True, 2.5, "x", [1], {}, 1j, math.nan, math.inf, 10**400, object()]


@pytest.mark.parametrize("name", wd.envs.names())
def test_nonsense_never_ends_in_a_raw_error(name):
    refused = []
    for parameter in wd.envs.get(name).parameters:
        for value in NONSENSE:
            for ask in (wd.envs.make, wd.envs.facts):
                try:
                    ask(name, **{parameter: value})
                except WindageError as error:
                    refused.append((parameter, error))
    assert all(error.field == parameter and error.fix for parameter, error in refused)
    assert len(refused) >= 2 * 8 * (len(wd.envs.get(name).parameters) - 1)


@pytest.mark.parametrize("id", [7, None, ["riverswim"], {}, "", "riverswim-v99", "RIVERSWIM"])
def test_ids_that_do_not_exist(id):
    for ask in (wd.envs.get, wd.envs.make, wd.envs.facts):
        with pytest.raises(InputError, match="^environment: no such choice") as error:
            ask(id)
        assert "one of: " in error.value.fix


def test_unknown_parameters_are_named():
    for ask in (wd.envs.make, wd.envs.facts):
        said = r"^riverswim\.state: no such parameter; did you mean states\? Fix: one of: horizon, "
        with pytest.raises(InputError, match=said):
            ask("riverswim", state=4)


def test_the_newest_version_has_the_largest_number(monkeypatch):
    """Version 10 comes after version 9, though not in a dictionary."""
    river = REGISTERED["riverswim-v0"]
    for number in (9, 10, 2):
        entry = dataclasses.replace(river, id=f"riverswim-v{number}")
        monkeypatch.setitem(REGISTERED, entry.id, entry)
    assert wd.envs.get("riverswim").id == "riverswim-v10"
    assert wd.envs.get("riverswim-v9").id == "riverswim-v9"
    assert wd.envs.get("riverswim").version == 10
    assert wd.envs.names().count("riverswim") == 1
    assert wd.envs.make("riverswim", horizon=9).name == "riverswim-v10"


@pytest.mark.parametrize("id", ["river", "river-v", "river-vx", "-v1x", "River-v0"])
def test_an_id_has_a_version(id):
    with pytest.raises(InputError, match="has no version"):
        register(id)


def test_peril_is_not_told_two_lengths():
    with pytest.raises(InputError, match="^repeats: 5 cycles of 4 tau are 1000 steps") as error:
        wd.envs.make("peril", horizon=900, repeats=5)
    assert error.value.fix == "give the horizon or the repeats, not both"
    with pytest.raises(InputError, match="^repeats: 2 cycles of 4 tau are 80 steps"):
        wd.envs.facts("peril", horizon=100, repeats=2, tau=10)
    assert wd.envs.make("peril", horizon=80, repeats=2, tau=10).horizon == 80
    assert wd.envs.make("peril", horizon=900).horizon == 900
    assert wd.envs.make("peril", repeats=2).horizon == 400
    assert wd.envs.make("peril").horizon == 1000
    assert wd.envs.get("peril").parameters["repeats"] is None
    assert wd.envs.make("peril").horizon == 1000


def test_one_state_has_nowhere_to_drift():
    for ask in (wd.envs.make, wd.envs.facts):
        with pytest.raises(InputError, match="model with one state") as error:
            ask("random-drift", states=1, transition_budget=0.5)
        assert error.value.field == "transition_budget"
        with pytest.raises(InputError, match="rows that are all uniform"):
            ask("random-drift", actions=1, mixing=1.0)
    assert wd.envs.facts("random-drift", states=1, transition_budget=0).transition_budget == 0
    still = wd.envs.make("random-drift", actions=1, mixing=1.0, transition_budget=0)
    assert still.budgets().transition == 0
