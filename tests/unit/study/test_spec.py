"""Study files: what they may say, what is refused, and how they unroll."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import windage as wd
from windage.errors import InputError, StateError, WindageError
from windage.study.expand import expand
from windage.study.spec import read_spec

BASE = {
    "horizon": 100,
    "seeds": 2,
    "environments": [{"id": "riverswim"}],
    "agents": [{"id": "random"}],
}


def agents(*tables, **more):
    return read_spec(BASE | {"agents": list(tables)} | more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizn": 5}, "horizn: no such key; did you mean horizon? Fix: one of: "),
        ({"horizon": "long"}, "horizon: 'long' is of the wrong type. Fix: write an integer, or"),
        ({"horizon": 2.5}, "horizon: 2.5 is of the wrong type"),
        ({"horizon": True}, "horizon: True is of the wrong type"),
        ({"horizon": 0}, "horizon: 0 is not an integer from 1 to"),
        ({"horizon": []}, "horizon: an empty list"),
        ({"horizon": [100, 0]}, "horizon[1]: 0 is not"),
        ({"horizon": [100, 100]}, "horizon[1]: 100 is there twice"),
        ({"seeds": 0}, "seeds: 0 seeds"),
        ({"seeds": []}, "seeds: an empty list"),
        ({"seeds": [1, -1]}, "seeds[1]: -1 is not"),
        ({"seeds": [1, 1]}, "seeds[1]: 1 is there twice"),
        ({"seeds": [1, "two"]}, "seeds[1]: 'two' is of the wrong type. Fix: write an integer"),
        ({"seeds": 10**9}, "seeds: 1,000,000,000 seeds are too many"),
        ({"name": 5}, "name: 5 is of the wrong type. Fix: write a text in quotes"),
        ({"name": " "}, "name: ' ' is not a name"),
        ({"agents": []}, "agents: there are none. Fix: add a [[agents]] table"),
        ({"environments": []}, "environments: there are none"),
        ({"agents": "ucrl2"}, "agents: 'ucrl2' is of the wrong type"),
        ({"agents": ["ucrl2"]}, "agents[0]: 'ucrl2' is of the wrong type. Fix: write a table"),
        ({"agents": [{"label": "x"}]}, 'agents[0]: has no id. Fix: write id = "..."'),
        ({"agents": [{"id": 5}]}, "agents[0].id: 5 is not a name"),
        ({"agents": [{"id": ["psrl", "ucrl2"]}]}, "agents[0].id: is a list. Fix: write one table"),
        (
            {"environments": [{"file": ["a.npz"]}]},
            "environments[0].file: is a list. Fix: write one",
        ),
        (
            {"agents": [{"id": "ucrl5"}]},
            "agents[0].id: no such choice: 'ucrl5'. Fix: did you mean 'ucrl3'?",
        ),
        ({"environments": [{"id": "riversim"}]}, "environments[0].id: no such choice: 'riversim'"),
        (
            {"environments": [{"id": "riverswim", "state": 4}]},
            "environments[0].state: no such parameter; did you mean states? Fix: one of: horizon, ",
        ),
        (
            {"environments": [{"id": "riverswim", "states": []}]},
            "environments[0].states: an empty list sweeps",
        ),
        (
            {"environments": [{"id": "riverswim", "oracle": 1}]},
            "environments[0].oracle: 1 is no yes or no",
        ),
        (
            {"environments": [{"file": "no.npz"}]},
            "environments[0].file no.npz: there is no such file",
        ),
        ({"environments": [{"file": 7}]}, "environments[0].file: 7 is not the name of a file"),
        (
            {"environments": [{"file": "a.npz", "horizon": 7}]},
            "environments[0].horizon: a file has its own",
        ),
        ({"agents": [{"id": "random", "seed": 4}]}, "agents[0].seed: is given by the study itself"),
        (
            {"agents": [{"id": "random", "horizon": 4}]},
            "agents[0].horizon: is given by the study itself",
        ),
        (
            {"agents": [{"id": "random", "seeds": 4}]},
            "agents[0].seeds: is given by the study itself",
        ),
        (
            {"agents": [{"id": "random", "lable": "x"}]},
            "agents[0].lable: no such parameter; did you mean label? Fix: one of: id, label",
        ),
        (
            {"environments": [{"id": "riverswim", "orcale": False}]},
            "environments[0].orcale: no such parameter; did you mean oracle?",
        ),
        (
            {"environments": [{"fil": "a.npz"}]},
            "environments[0].fil: no such parameter; did you mean file?",
        ),
        ({"agents": [{"ID": "random"}]}, "agents[0].ID: no such parameter; did you mean id?"),
        (
            {"environments": [{"label": "x"}]},
            "environments[0]: has no id. Fix: write id or file = ",
        ),
        ({"agents": [{"id": "UCRL2"}]}, "agents[0].id: no such choice: 'UCRL2'. Fix: did you mean"),
        ({"agents": [{"id": "random", "label": ""}]}, "agents[0].label: '' is not a name"),
        ({"agents": [{"id": "nowhere:Agent"}]}, "agents[0].id: there is no module 'nowhere'"),
        (
            {"environments": [{"id": "nowhere:W"}]},
            "environments[0].id: there is no module 'nowh",
        ),
        ({"environments": [{"id": "math:W"}]}, "environments[0].id: 'math' has no 'W'"),
        ({"environments": [{"id": "math:pi"}]}, "environments[0].id: 'math:pi' makes nothing"),
        ({"agents": [{"id": "math:Agent"}]}, "agents[0].id: 'math' has no 'Agent'"),
        ({"agents": [{"id": "math:pi"}]}, "agents[0].id: 'pi' is a float, not a class"),
        (
            {"agents": [{"id": "ucrl2", "delta": float("nan")}]},
            "agents[0].delta: nan is no parameter",
        ),
        (
            {"agents": [{"id": "ucrl2"}, {"id": "ucrl2"}]},
            "agents[1].label: 'ucrl2' is also what agents[0]",
        ),
        (
            {"agents": [{"id": "ucrl2", "radii": ["paper", "papper"]}]},
            "agents[0].radii.kind: no such choice",
        ),
    ],
)
def test_refused(change, message):
    with pytest.raises(WindageError) as caught:
        read_spec(BASE | change)
    assert str(caught.value).startswith(message)


def test_a_file_of_another_editor_is_read(tmp_path):
    """Editors put a mark before UTF-8 that nobody sees, or end lines in their own way."""
    text = 'horizon = 9\n[[environments]]\nid = "riverswim"\n[[agents]]\nid = "random"\n'
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_spec(path).agents[0].id == "random"


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000 + "]" * 3000], ids=["digits", "lists"])
def test_what_python_cannot_read_is_refused(tmp_path, value):
    path = tmp_path / "study.toml"
    path.write_text(f"horizon = {value}\n")
    with pytest.raises(InputError, match=r"study.toml: cannot be read .* Fix: shorten it"):
        read_spec(path)


def test_the_sentence_of_the_design():
    tables = [{"id": "random"}, {"id": "borl"}, {"id": "swucrl2-cw", "widow": 5}]
    with pytest.raises(InputError) as caught:
        agents(*tables)
    assert str(caught.value).startswith(
        "agents[2].widow: no such parameter; did you mean window? Fix: one of: "
    )


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"id": "swucrl2-cw", "window": 0}], "agents[0].window: 0 is not an integer from 1 to"),
        ([{"id": "swucrl2-cw", "window": [5, "long"]}], "agents[0].window: no such choice: 'long'"),
        ([{"id": "ucrl2", "reward_range": [0, 1]}], "agents[0].reward_range: 0 is not a range"),
        (
            [{"id": "ucrl2", "radii": {"kind": "laplace", "bounded": 1}}],
            "agents[0].radii.bounded: 1 is no yes or no",
        ),
        (
            [{"id": "ucrl2", "radii": {"kind": "paper", "bounded": True}}],
            "agents[0].radii.bounded: the paper radii have no form",
        ),
        ([{"id": "ucrl2", "delta": {"a": 1}}], "agents[0].delta: {'a': 1} is not a number"),
    ],
)
def test_values_are_tried_before_anything_runs(tables, message):
    with pytest.raises(InputError) as caught:
        expand(agents(*tables))
    assert str(caught.value).startswith(message)
    assert "riverswim" in str(caught.value)


def test_what_is_no_parameter_is_refused_before_it_is_compared():
    arrays = [np.array([0, 1]), np.array([0, 2])]
    with pytest.raises(InputError, match=r"agents\[0\].reward_range\[0\]: array.* is no parameter"):
        agents({"id": "ucrl2", "reward_range": arrays})


def test_a_name_too_long_for_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read .*too long"):
        wd.Study(BASE["environments"], BASE["agents"], horizon=5).run(tmp_path / ("a" * 300))


def test_a_list_that_is_no_sweep_is_explained():
    with pytest.raises(InputError, match=r"a list is a sweep, .* \[\[...\]\]"):
        expand(agents({"id": "ucrl2", "reward_range": [0, 1]}))
    expand(agents({"id": "ucrl2", "reward_range": [[0, 1]]}))


def test_an_environment_that_cannot_be_made_is_named():
    with pytest.raises(InputError, match=r"environments\[0\].states"):
        expand(read_spec(BASE | {"environments": [{"id": "riverswim", "states": 1}]}))


def test_lists_form_the_product_and_labels_tell_them_apart():
    spec = agents(
        {"id": "swucrl2-cw", "window": [10, 2000], "widening": [0.1, "tuned"], "delta": 0.1},
        {"id": "ucrl2", "label": "U", "radii": ["ucrl2", {"kind": "laplace", "scale": 0.3}]},
    )
    assert [entry.label for entry in spec.agents] == [
        "swucrl2-cw, window 10, widening 0.1",
        "swucrl2-cw, window 10, widening tuned",
        "swucrl2-cw, window 2,000, widening 0.1",
        "swucrl2-cw, window 2,000, widening tuned",
        "U, radii ucrl2",
        "U, radii laplace x0.3",
    ]
    assert spec.agents[3].parameters == {"window": 2000, "widening": "tuned", "delta": 0.1}


def test_two_tables_with_one_id_are_told_apart_by_what_they_say():
    spec = agents({"id": "ucrl2", "delta": 0.1}, {"id": "ucrl2", "delta": 0.2})
    assert [entry.label for entry in spec.agents] == ["ucrl2, delta 0.1", "ucrl2, delta 0.2"]


def test_long_lists_do_not_make_long_labels():
    first, second = list(range(2, 90)), [5, 6]
    spec = agents(
        {"id": "ucrl2-restarts", "restarts": [first, second]}, {"id": "ucrl2", "delta": [0.1]}
    )
    assert [entry.label for entry in spec.agents] == [
        "ucrl2-restarts, restarts [2, ..., 89]", "ucrl2-restarts, restarts [5, 6]", "ucrl2"
    ]  # fmt: skip
    with pytest.raises(
        InputError, match=r"agents\[0\].label: .* is also what agents\[0\] is called"
    ):
        agents({"id": "ucrl2-restarts", "restarts": [first, [*first[:-2], 89]]})


def test_horizons_and_seeds():
    spec = read_spec(BASE | {"horizon": [50, 100], "seeds": [3, 1]})
    assert spec.seeds == (3, 1)
    assert [config.parameters["horizon"] for _, config, _ in spec.environments] == [50, 100]
    assert [entry.label for entry, _, _ in spec.environments] == ["riverswim", "riverswim"]
    study = wd.Study(BASE["environments"], BASE["agents"], horizon=[50, 100], seeds=3)
    assert repr(study) == "Study('study': 1 environment, 2 horizons, 1 agent, 3 seeds, 6 runs)"
    own = read_spec(BASE | {"environments": [{"id": "riverswim", "horizon": 70}]})
    assert own.environments[0][1].parameters["horizon"] == 70
    default = read_spec({k: v for k, v in BASE.items() if k != "horizon"})
    assert default.environments[0][1].parameters["horizon"] == 20_000


def test_long_lists_are_read_whole_and_at_once():
    """One look at each number, not at each pair of them, which took 10 s."""
    start = time.process_time()
    spec = read_spec(BASE | {"horizon": list(range(1, 10_002)), "seeds": 1})
    assert len(spec.environments) == 10_001
    assert read_spec(BASE | {"seeds": list(range(30_000))}).seeds[-1] == 29_999
    assert time.process_time() - start < 3
    with pytest.raises(InputError, match=r"seeds\[30000\]: 7 is there twice"):
        read_spec(BASE | {"seeds": [*range(30_000), 7]})


def test_defaults_are_written_out():
    said = read_spec(
        BASE | {"environments": [{"id": "riverswim-v0", "states": 6, "noise": "bernoulli"}]}
    )
    unsaid = read_spec(BASE)
    assert said.environments[0][1] == unsaid.environments[0][1]
    assert unsaid.environments[0][1].id == "riverswim-v0"


def keys(**change):
    return [asked.key for asked in expand(read_spec(BASE | change)).manifest.runs]


def test_keys_follow_what_determines_a_run_and_nothing_else():
    base = keys()
    assert len(set(base)) == 2
    assert keys(name="other", agents=[{"id": "random", "label": "dice"}]) == base
    assert keys(environments=[{"id": "riverswim-v0", "label": "river", "states": 6}]) == base
    assert keys(seeds=[0, 1]) == base
    changed = [
        keys(seeds=[2, 3]),
        keys(horizon=101),
        keys(environments=[{"id": "riverswim", "states": 5}]),
        keys(environments=[{"id": "queue"}]),
        keys(agents=[{"id": "random", "reward_range": [[0, 1]]}]),
        keys(agents=[{"id": "ucrl2"}]),
        keys(agents=[{"id": "ucrl2", "delta": 0.1}]),
    ]
    found = [key for some in [base, *changed] for key in some]
    assert len(set(found)) == len(found)


def test_words_that_mean_the_same_have_one_key_and_numbers_chosen_by_hand_another():
    model = wd.envs.make("riverswim", horizon=100)
    made = wd.agents.make("swucrl2-cw", model.space, horizon=100, budgets=model.budgets())
    tuned = keys(agents=[{"id": "swucrl2-cw", "window": "tuned", "widening": "tuned"}])
    numbers = keys(agents=[{"id": "swucrl2-cw", "window": made.window, "widening": made.widening}])
    assert tuned == keys(agents=[{"id": "swucrl2-cw"}])
    assert not set(tuned) & set(numbers)  # a file says what its agent was told: here, nothing


def test_one_configuration_has_one_name():
    """Written in other words it is the same: a page would show it twice, and test it twice."""
    twice = "is 'ucrl2' of agents[0] under another name: all their runs are the same"
    for other in ({"label": "U"}, {"delta": 0.05}, {"radii": "ucrl2", "label": "U"}):
        with pytest.raises(InputError, match=re.escape(twice)) as caught:
            expand(agents({"id": "ucrl2"}, {"id": "ucrl2", "label": "U"} | other))
        assert caught.value.field == "agents[1]"
    worlds = [{"id": "riverswim"}, {"id": "riverswim-v0", "label": "river", "states": 6}]
    with pytest.raises(InputError, match=re.escape("'river' is 'riverswim' of environments[0]")):
        expand(read_spec(BASE | {"environments": worlds}))


def test_what_is_the_same_only_in_one_environment_keeps_both_names():
    """Theorem 1's window at one horizon is a number that somebody may also have chosen."""
    model = wd.envs.make("riverswim", horizon=100)
    window = wd.agents.make("swucrl2-cw", model.space, horizon=100, budgets=model.budgets()).window
    by_hand = {"id": "swucrl2-cw", "window": window, "label": "W"}
    with pytest.raises(InputError, match="under another name"):
        expand(agents({"id": "swucrl2-cw"}, by_hand))
    both = expand(
        read_spec(BASE | {"horizon": [100, 200], "agents": [{"id": "swucrl2-cw"}, by_hand]})
    )
    assert len(both.manifest.runs) == 8
    assert len(both.tasks) == 6  # those at T = 100 are made once


def test_a_value_is_swept_once():
    with pytest.raises(InputError, match=re.escape("agents[0].delta[2]: 0.05 is there twice")):
        agents({"id": "ucrl2", "delta": [0.05, 0.1, 0.05]})


def test_blanks_in_labels_make_no_difference():
    assert agents({"id": "random", "label": " a  b "}).agents[0].label == "a b"
    with pytest.raises(InputError, match="'a b' is also what"):
        agents({"id": "random", "label": "a b "}, {"id": "ucrl2", "label": "a b"})


def test_a_file_is_known_by_its_content(tmp_path):
    model = wd.envs.make("two-state-cosine", horizon=60)
    for name in ("a.npz", "b.npz"):
        model.save(tmp_path / name)
    wd.envs.make("two-state-cosine", horizon=61).save(tmp_path / "c.npz")
    (tmp_path / "study.toml").write_text(
        '[[environments]]\nfile = "a.npz"\n[[environments]]\nfile = "b.npz"\n'
        '[[environments]]\nfile = "c.npz"\n[[agents]]\nid = "random"\n'
    )
    spec = read_spec(tmp_path / "study.toml")
    a, b, c = (world for _, world, _ in spec.environments)
    assert a.key == b.key != c.key
    assert [entry.label for entry, _, _ in spec.environments] == ["a", "b", "c"]
    assert a.parameters == {"horizon": 60}
    wd.envs.make("peril", horizon=60, tau=3).save(tmp_path / "b.npz")
    _, (_, other, _), _ = read_spec(tmp_path / "study.toml").environments
    assert other.parameters == b.parameters
    assert other.key != b.key
    with pytest.raises(StateError, match="holds another model than when the study was planned"):
        b.build()


def test_files_that_are_no_studies(tmp_path):
    for text, message in (
        ("\nhorizon 5", "is not TOML .*line 2"),
        ("[[agents]]\nid = 'random'\n", "environments: is missing"),
        (
            "[[agents]]\nid = 'random'\nwidow = 1\n[[environments]]\nid='riverswim'\n",
            r"s.toml: agents\[0\].widow",
        ),
    ):
        (tmp_path / "s.toml").write_text(text)
        with pytest.raises(InputError, match=message) as caught:
            read_spec(tmp_path / "s.toml")
        assert str(tmp_path / "s.toml") in str(caught.value)
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path / "s.toml")
    with pytest.raises(InputError, match="no such file"):
        read_spec(tmp_path / "t.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path)


def test_from_python_tuples_radii_and_numpy_numbers_are_values():
    study = wd.Study(
        [{"id": "riverswim"}],
        [
            {
                "id": "ucrl2",
                "reward_range": (0, 1),
                "delta": np.float64(0.1),
                "radii": [wd.Radii.paper(), wd.Radii.laplace().scaled(0.5)],
            }
        ],
        horizon=50,
        seeds=range(3),
    )
    assert [entry.label for entry in study.spec.agents] == [
        "ucrl2, radii paper",
        "ucrl2, radii laplace x0.5",
    ]
    assert study.spec.seeds == (0, 1, 2)
    assert len(expand(study.spec).tasks) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 2.5}, "seeds: 2.5 is of the wrong type. Fix: write an integer, or a list of"),
        ({"seeds": np.float64(2.5)}, "seeds: 2.5 is of the wrong type"),
        ({"seeds": None}, "seeds: None is of the wrong type"),
        ({"seeds": "3"}, "seeds: '3' is of the wrong type"),
        ({"seeds": [0, 1.5]}, "seeds[1]: 1.5 is of the wrong type"),
        ({"seeds": {"a": 1}}, "seeds: {'a': 1} is of the wrong type"),
        ({"horizon": 1e3}, "horizon: 1000.0 is of the wrong type"),
        ({"horizon": "long"}, "horizon: 'long' is of the wrong type"),
        ({"agents": {"id": "random"}}, "agents: {'id': 'random'} is no list of tables. Fix: pass"),
        ({"agents": ["random"]}, "agents[0]: 'random' is no table. Fix: pass a dict"),
        ({"agents": [{1: 2}]}, "agents[0]: {1: 2} is no table"),
        ({"environments": "riverswim"}, "environments: 'riverswim' is no list of tables"),
        ({"environments": 7}, "environments: 7 is no list of tables"),
        ({"name": 7}, "name: 7 is of the wrong type"),
    ],
)
def test_wrong_types_from_python_are_named(change, message):
    given = {"environments": [{"id": "riverswim"}], "agents": [{"id": "random"}], "horizon": 100}
    with pytest.raises(InputError) as caught:
        wd.Study(**given | change)
    assert str(caught.value).startswith(message)


def test_numbers_of_numpy_are_numbers():
    def seeds(given):
        return wd.Study([{"id": "riverswim"}], [{"id": "random"}], seeds=given).spec.seeds

    assert seeds(np.int64(3)) == seeds(range(3)) == seeds(np.arange(3)) == (0, 1, 2)
    wd.Study([{"id": "riverswim"}], [{"id": "random"}], horizon=np.array([10, 20]), seeds=1)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ('radii = {kind = "laplace", scal = 0.3}', "agents[0].radii.scal: no such choice: 'scal'"),
        ('radii = {kind = "laplace", scale = -1}', "agents[0].radii.scale: -1.0 is not a number"),
        ("delta = 7", "agents[0].delta: 7.0 is not a number"),
        ("reward_range = [[1, 0]]", "agents[0].reward_range: "),
    ],
)
def test_an_error_of_a_value_names_the_file_and_the_whole_way_to_it(agent, message, tmp_path):
    path = tmp_path / "b16.toml"
    path.write_text(
        'horizon = 100\n[[environments]]\nid = "riverswim"\n[[agents]]\nid = "ucrl2"\n' + agent
    )
    with pytest.raises(InputError) as caught:
        wd.Study.load(path).run(tmp_path / "results")
    assert str(caught.value).startswith(f"{path}: {message}")
    assert not (tmp_path / "results").exists()


def test_an_environment_that_cannot_be_made_names_the_file(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(
        'horizon = 100\n[[environments]]\nid = "riverswim"\nstates = 1\n[[agents]]\nid = "random"'
    )
    with pytest.raises(InputError) as caught:
        wd.Study.load(path).run(tmp_path / "results")
    assert str(caught.value).startswith(f"{path}: environments[0].states: 1 is not an integer")
