"""`windage try` and `windage agents` as people meet them."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import windage as wd
from tests.e2e.commands import png_size, refused, windage
from windage.cli import main


def table(out):
    """The rows of a printed table, by their first column."""
    found = {}
    for line in out.splitlines():
        name, _, value = line.partition("  ")
        if value:
            found[name.strip()] = value.strip()
    return found


def tried(capsys, *arguments, said=""):
    assert main(["try", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(said) if said else err == ""
    assert err.count("\n") == bool(said)
    return out, table(out)


def amount(cell):
    return float(cell.split()[0].replace(",", "").rstrip("%,"))


# --- one run -------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_linear_programs(here, capsys):
    out, rows = tried(capsys, "riverswim", "random", "-T", "300", "--seed", "5")
    model = wd.envs.make("riverswim", horizon=300)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=300, seed=5), seed=5)
    rho = math.fsum(wd.gain_lp(model.at(t)).primal for t in range(1, 301))
    paid = sum(
        model.at(t).rewards[model.space.pair(run.states[t - 1], run.actions[t - 1])]
        for t in range(1, 301)
    )
    assert out.startswith("riverswim-v0: A river whose current")
    assert "random: Plays every action of a state with equal probability.\n" in out
    assert "T = 300, seed 5" in out
    assert amount(rows["total reward"]) == run.rewards.sum()
    optimal, plus_minus, error = rows["optimal gain"].split()
    assert plus_minus == "+-"
    assert 0 < float(error) <= 300 * 1e-6
    assert float(optimal) == pytest.approx(rho, abs=0.006)
    assert rows["share of it"] == f"{paid / rho:.1%}, noise apart"
    assert amount(rows["pseudo-regret"]) == pytest.approx(rho - paid, abs=0.006)
    assert amount(rows["observed regret"]) == pytest.approx(rho - run.rewards.sum(), abs=0.006)
    assert rows["steps per second"].endswith(" (with the time to load)")
    assert "episodes" not in rows
    assert out.endswith("\npicture: out/riverswim-v0-random.png\n")
    assert png_size("out/riverswim-v0-random.png")[0] == 1200


def test_a_learner_is_tuned_to_the_budgets_and_labelled(here, capsys):
    _, rows = tried(capsys, "two-state-cosine", "swucrl2-cw", "-T", "5000")
    model = wd.envs.make("two-state-cosine", horizon=5000)
    budgets = model.budgets()
    window = 3 * 2 ** (2 / 3) * math.sqrt(2 * 5000 / (budgets.reward + budgets.transition + 1))
    widening = math.sqrt((budgets.transition + 1) * window / 5000)
    assert rows["window"] == f"{round(window):,}"
    assert rows["widening"] == f"{widening:.4g}"
    assert rows["radii"] == "paper"
    assert rows["ties"] == "random"
    assert rows["given"] == "B_r, B_p"
    count, reasons = rows["episodes"].split(" ", 1)
    parts = reasons.strip("()").split(", ")
    assert int(count) == sum(int(part.split()[1]) for part in parts)
    assert {part.split()[0] for part in parts} == {"visits", "boundary", "open"}
    assert 50 < amount(rows["share of it"]) < 95


BANDITS = ("bob", "d-ucb", "exp3-s", "rexp3", "sw-ucb", "ucb1")
FORGETTING = ("multi-scale", "multi-scale-guarded", "certainty-equivalent")


@pytest.mark.filterwarnings("always:exp3p. gamma = :windage.errors.GuaranteeWarning")
@pytest.mark.filterwarnings("always:.* is a bandit:windage.errors.GuaranteeWarning")
@pytest.mark.parametrize("name", wd.agents.names())
def test_every_agent_can_be_tried(here, capsys, name):
    world = ["peril", name, "-T", "400", "--env-set", "tau=25"]  # few changes, for who counts them
    anchored = name in ("borl", "multi-scale-guarded")
    said = "windage: warning: exp3p: gamma = 4.69 > 1" if anchored else ""
    said = f"windage: warning: {name} is a bandit: with 2 states" if name in BANDITS else said
    out, rows = tried(capsys, *world, "-o", "deep/er/p.svg", said=said)
    weights = "effective memory: deep/er/p-memory.svg\n" if name in FORGETTING else ""
    assert out.endswith(f"\npicture: deep/er/p.svg\n{weights}")
    for picture in Path("deep/er").iterdir():
        assert picture.read_bytes().startswith(b"<?xml")
    assert len(list(Path("deep/er").iterdir())) == 1 + bool(weights)
    assert 0 < amount(rows["share of it"]) < 130
    assert ("given" in rows) == bool(wd.agents.get(name).requires)
    assert not list(Path().rglob("*.tmp"))


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("swucrl2-cw", ["window=50", "widening=0.1"], "nothing"),
        ("swucrl2-cw", ["window=50"], "B_r, B_p"),
        ("ucrl2-restarts", ["restarts=100"], "nothing"),
        ("ucrl2-restarts", ["restarts=changes"], "the times of the changes"),
        ("sw-ucrl", ["window=tuned"], "l, D"),
    ],
)
def test_a_result_says_what_the_agent_was_told(here, capsys, name, settings, told):
    args = [word for one in settings for word in ("--set", one)]
    _, rows = tried(capsys, "peril", name, "-T", "400", "--env-set", "tau=25", *args)
    assert rows["given"] == told


def test_a_structure_is_that_of_the_environment(here, capsys):
    world = ["queue", "certainty-equivalent", "-T", "200"]
    _, rows = tried(capsys, *world, "--set", "structure=environment")
    model = wd.envs.make("queue", horizon=200)
    agent = wd.CertaintyEquivalent(model.space, horizon=200, structure=model.structure)
    assert rows["given"] == "the structure"
    assert amount(rows["total reward"]) == pytest.approx(wd.run(model, agent).total_reward, abs=0.1)
    _, rows = tried(capsys, *world)
    assert "given" not in rows


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (["riverswim", "psrl"], "structure: the environment riverswim-v0 has no structure."),
        (["queue", "ucrl2"], "ucrl2.structure: ucrl2 learns no laws"),
    ],
)
def test_a_structure_where_there_is_none_is_refused(here, capsys, world, says):
    assert main(["try", *world, "-T", "200", "--set", "structure=environment"]) == 2
    assert capsys.readouterr().err.startswith(f"windage: {says}")
    assert not list(here.iterdir())


@pytest.mark.filterwarnings("always::windage.errors.GuaranteeWarning")
def test_settings_reach_the_agent_and_the_environment(here, capsys):
    settings = ["--set", "window=50", "--set", 'radii={"kind": "laplace", "scale": 0.5}']
    settings += ["--set", "ties=lowest", "--env-set", "tau=10", "--env-set", "noise=none"]
    assert main(["try", "peril", "swucrl2-cw", "-T", "400", *settings]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("windage: warning: laplace x0.5 radii do not cover")
    assert err.count("\n") == 1
    rows = table(out)
    assert rows["window"] == "50"
    assert rows["radii"] == "laplace x0.5"
    assert rows["ties"] == "lowest"
    assert rows["pseudo-regret"].split()[0] == rows["observed regret"]  # no noise
    model = wd.envs.make("peril", horizon=400, tau=10, noise="none")
    best = wd.agents.make("oracle", model.space, horizon=400, problem=model)
    lost = wd.dynamic_regret(wd.run(model, best), model).total
    _, rows = tried(capsys, "peril", "oracle", "-T", "400", "--env-set", "tau=10")
    assert amount(rows["pseudo-regret"]) == pytest.approx(lost, abs=1e-6)


def test_a_long_run_is_recorded_coarsely_and_is_as_exact(here, capsys):
    _, rows = tried(capsys, "riverswim", "random", "-T", "250000")
    model = wd.envs.make("riverswim", horizon=250_000)
    run = wd.run(model, wd.agents.make("random", model.space, horizon=250_000))
    rho = model.optimal_gains().sum()
    assert amount(rows["pseudo-regret"]) == pytest.approx(
        rho - math.fsum(run.mean_rewards), abs=0.006
    )
    assert amount(rows["total reward"]) == run.rewards.sum()
    assert "load" not in rows["steps per second"]
    assert amount(rows["steps per second"]) > 1000


def test_the_same_words_give_the_same_picture(here, capsys):
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        tried(capsys, "bandit", "random", "-T", "300", "-o", f"{name}.png", "--seed", seed)
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()
    assert Path("a.png").read_bytes() != Path("c.png").read_bytes()


def test_a_file_can_be_tried_and_negative_regret_is_explained(here, capsys):
    spring = wd.MDP(wd.StateActions([1, 1]), [1.0, 0.0], [[0.0, 1.0], [0.05, 0.95]])
    wd.DriftingMDP.stationary(spring, horizon=2, noise="none").save("spring.npz")
    out, rows = tried(capsys, "spring.npz", "random")
    assert out.startswith("spring\nrandom: ")
    assert amount(rows["pseudo-regret"]) == pytest.approx(2 / 21 - 1, abs=1e-4)
    assert "and so does a lucky path.\npicture: out/spring-random.png\n" in out
    poor = wd.MDP(wd.StateActions([1]), [0.0], np.ones((1, 1)))
    wd.DriftingMDP.stationary(poor, horizon=9).save("poor.npz")
    assert tried(capsys, "poor.npz", "random")[1]["share of it"] == "nothing is to be earned"


def test_a_model_that_falls_apart_is_tried_and_it_is_said(here, capsys):
    swap, stuck = [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    wd.DriftingMDP(
        wd.StateActions([1, 1]), [1, 5, 7], [[0.1, 0.2]] * 3, [swap, stuck, swap],
        horizon=9, interpolation="step",
    ).save("apart.npz")  # fmt: skip
    out, _ = tried(capsys, "apart.npz", "random")
    assert (
        "apart does not communicate at t=5..6: no policy leads from s=1 to s=0: agents may still "
        "run, but no guarantee applies to such a model"
    ) in " ".join(out.split())
    assert "communicate" not in tried(capsys, "bandit", "random", "-T", "50")[0]


def test_without_t_a_hundred_thousand_steps_are_played(here, capsys):
    assert "T = 100,000, seed 0" in tried(capsys, "bandit", "random")[0]


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rivrswim", "random"], "environment: no such choice: 'rivrswim'"),
        (["riverswim", "randm"], "agent: no such choice: 'randm'. Fix: did you mean 'random'?"),
        (["riverswim", "random", "-T", "0"], "horizon: 0 is not"),
        (["riverswim", "random", "--seed", "-1"], "seed: -1 is not"),
        (["riverswim", "random", "--set", "widow=3"], "random.widow: no such parameter"),
        (["riverswim", "random", "--set", "widow"], "--set: 'widow' sets nothing"),
        (["riverswim", "random", "--set", "horizon=3"], "--set: 'horizon' is given by"),
        (["riverswim", "oracle", "--set", "problem=3"], "--set: 'problem' is given by"),
        (["riverswim", "random", "--set", "space=3"], "--set: 'space' is given by"),
        (["riverswim", "random", "--env-set", "state=3"], "riverswim.state: no such parameter"),
        (["riverswim", "random", "--env-set", "horizon=3"], "--env-set: the horizon is set with"),
        (["riverswim", "random", "--env-set", "=3"], "--env-set: '=3' sets nothing"),
        (["riverswim", "random", "-o", "picture.gif"], "picture.gif: 'gif' is no kind of picture"),
        (["riverswim", "swucrl2-cw", "--set", "window=0"], "window: 0 is not"),
        (["riverswim", "swucrl2-cw", "--set", "radii=wide"], "radii"),
        (["gone.npz", "random"], "gone.npz: there is no such file"),
        (["gone.npz", "random", "-T", "5"], "gone.npz: a file has its own horizon"),
        (["gone.npz", "random", "--env-set", "a=5"], "gone.npz: a file has its own horizon"),
    ],
)
def test_what_is_refused_and_that_nothing_is_left(here, capsys, arguments, says):
    said = refused(capsys, "try", *arguments)
    assert said.startswith(says)
    assert "Fix: " in said
    assert not list(Path().iterdir())


def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(here, monkeypatch, capsys):
    def work(*_, **__):
        raise AssertionError("the run was made first")

    monkeypatch.setattr(wd, "run", work)
    assert refused(capsys, "try", "riverswim", "random", "-o", "picture").startswith("picture: ")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/nonexistent-folder/x.png", "there is no folder /nonexistent-folder"),
        ("/nonexistent-folder/deeper/x.png", "there is no folder /nonexistent-folder"),
        ("taken/x.png", "its folder is a file"),
        ("folder.png", "it is a folder"),
    ],
)
def test_a_picture_without_a_place_is_refused_before_the_work(
    here, monkeypatch, capsys, target, why
):
    def work(*_, **__):
        raise AssertionError("the work was done first")

    Path("taken").touch()
    Path("folder.png").mkdir()
    monkeypatch.setattr(wd.envs, "make", work)
    said = refused(capsys, "try", "riverswim", "random", "-o", target)
    assert said.startswith(f"{target}: cannot be written ({why})")
    assert not Path("/nonexistent-folder").exists()


@pytest.mark.parametrize("arguments", [[], ["riverswim"], ["riverswim", "random", "-T", "x"]])
def test_words_that_are_missing_or_wrong(capsys, arguments):
    assert main(["try", *arguments]) == 2
    err = capsys.readouterr().err
    assert "Usage: windage try" in err
    assert "Traceback" not in err


def test_refusals_of_the_program_itself(here):
    done = windage("try", "riverswim", "randm", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("windage: agent: no such choice: 'randm'")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_in_the_middle_of_a_run_is_quiet(here):
    code = (
        "import sys, pathlib, windage as wd\n"
        "from windage.cli import main\n"
        "run = wd.run\n"
        "def told(model, agent, seed, *, record, progress):\n"
        "    def mark(done, steps):\n"
        "        pathlib.Path('playing').touch()\n"
        "        progress(done, steps)\n"
        "    return run(model, agent, seed, record=record, progress=mark)\n"
        "wd.run = told\n"
        "sys.exit(main(['try', 'riverswim', 'random', '-T', '100000000000', '-o', 'x.png']))\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not Path("playing").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
    assert not Path("x.png").exists()


def test_a_terminal_shows_a_bar_that_is_gone_at_the_end(here, terminal, capsys):
    screen = terminal()
    assert main(["try", "riverswim", "random", "-T", "50000"]) == 0
    shown = screen.history
    assert "the optimal gain of every t ..." in shown
    bars = [line for line in shown if line.startswith("playing")]
    assert re.fullmatch(r"playing +━+ 50000/50000 .* steps/s  0:00 left", bars[-1])
    assert not any("\n" in line for line in shown)
    assert shown[-1] == ""


# --- the list ------------------------------------------------------------------------------------


def test_agents_in_a_pipe_has_one_whole_line_an_agent(here):
    done = windage("agents", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split("  ")[-1].strip() == "regret bound (source)"
    assert header.split()[:3] == ["id", "requires", "drift"]
    names = wd.agents.names()
    assert [line.split()[0] for line in lines[: len(names)]] == names
    oracle = next(line for line in lines if line.startswith("oracle"))
    assert "the model" in oracle
    assert oracle.endswith(wd.agents.OracleAgent.bound)
    laws = next(line for line in lines if line.startswith("With a structure, "))
    assert laws.endswith(": certainty-equivalent, multi-scale, psrl, sw-psrl.")
    learner = next(line for line in lines if line.startswith("swucrl2-cw"))
    assert "B_r, B_p" in learner
    assert "nothing" in next(line for line in lines if line.startswith("random"))


@pytest.mark.parametrize("name", wd.agents.names())
def test_an_agent_tells_its_parameters(capsys, name):
    assert main(["agents", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{name}: ")
    for parameter in wd.agents.parameters(wd.agents.get(name)):
        assert f"\n{parameter} " in out
    assert out.endswith(f"`windage try ENV {name} --set NAME=VALUE` runs it.\n")


def test_agents_as_json(capsys):
    assert main(["agents", "--json"]) == 0
    entries = {entry["id"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert list(entries) == wd.agents.names()
    assert entries["oracle"]["told"] == ["the model"]
    assert entries["oracle"]["parameters"]["problem"] == "the model"
    assert entries["swucrl2-cw"]["parameters"]["window"] == "tuned to B_r and B_p"
    assert entries["swucrl2-cw"]["parameters"]["delta"] == "0.05"
    assert entries["swucrl2-cw"]["parameters"]["radii"] == "paper"
    assert entries["ucrl2"]["parameters"]["radii"] == "ucrl2"
    assert entries["swucrl2-cw"]["covers_drift"] is True
    assert entries["random"]["covers_drift"] is None
    assert "structure" in entries["multi-scale"]["parameters"]
    assert "structure" not in entries["ucrl2"]["parameters"]


@pytest.mark.filterwarnings("ignore:exp3p. gamma = :windage.errors.GuaranteeWarning")
def test_the_radii_that_are_listed_are_those_an_agent_has(capsys):
    assert main(["agents", "--json"]) == 0
    space = wd.StateActions([2, 2])
    seen = []
    for entry in json.loads(capsys.readouterr().out):
        if "radii" in entry["parameters"]:
            options = wd.agents.facts(entry["id"], wd.envs.make("peril", horizon=100, tau=25))
            made = wd.agents.make(entry["id"], space, horizon=100, **options)
            assert made.radii.label == entry["parameters"]["radii"]
            seen.append(entry["id"])
    assert {"swucrl2-cw", "ucrl2"} <= set(seen)


@pytest.mark.parametrize(
    "arguments",
    [["agents"], ["agents", "swucrl2-cw"], ["try", "two-state-cosine", "swucrl2-cw", "-T", "300"]],
)
def test_no_line_is_wider_than_the_terminal(here, monkeypatch, capsys, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    piped = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(arguments) == 0
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)  # bold has no width
    assert max(map(len, shown.splitlines())) <= 80
    if arguments != ["agents", "swucrl2-cw"]:
        assert max(map(len, piped.splitlines())) > 80  # in a pipe nothing is wrapped


def test_an_unknown_agent_is_refused_with_a_suggestion(capsys):
    said = refused(capsys, "agents", "orcle")
    assert said.startswith("agent: no such choice: 'orcle'. Fix: did you mean 'oracle'?")


def test_a_terminal_gets_a_drawn_table(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["agents"]) == 0
    assert "finite-horizon" in capsys.readouterr().out


def test_master_says_whether_its_tests_fired(here, capsys):
    _, rows = tried(capsys, "two-state-cosine", "master", "-T", "300")
    assert rows["test 1 fired"] == rows["test 2 fired"] == "0 times, and cannot at this T"
    easy = ["--set", "test_1=0.001", "--set", "test_2=0.001", "--set", "log_factor=0.01"]
    _, rows = tried(capsys, "two-state-cosine", "master", "-T", "300", *easy)
    assert sum(int(rows[f"test {k} fired"].split()[0].replace(",", "")) for k in (1, 2)) > 0
    _, rows = tried(capsys, "two-state-cosine", "ucrl2", "-T", "300")
    assert "test 1 fired" not in rows
