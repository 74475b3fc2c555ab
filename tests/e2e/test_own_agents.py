"""`windage check-agent` and `windage try` with an agent of one's own."""

from __future__ import annotations

import pytest

from tests.e2e.commands import refused, windage, windage_here
from windage.testing import findings

MODULE = '''
class Careful:
    """Always plays action 0, and checks what it is told."""

    def __init__(self, space, horizon, seed=0):
        self.space, self.pending, self.t = space, None, 1

    def act(self, s):
        self.pending = self.space.check_state(s)
        return 0

    def observe(self, s, a, reward, s_next):
        self.space.pair(s, a), self.space.check_state(s_next)
        if self.pending != s or not -1e9 < reward < 1e9:
            raise ValueError("not asked for, or no number")
        self.pending, self.t = None, self.t + 1

class Hoarder(Careful):
    past = []
    def observe(self, s, a, reward, s_next):
        super().observe(s, a, reward, s_next)
        self.kept = getattr(self, "kept", []) + [(s, a, float(reward))]

class Guessing(Careful):
    def act(self, s):
        import random
        super().act(s)
        return random.randrange(int(self.space.counts[s]))

class Counting(Careful):
    def act(self, s):
        Hoarder.past.append(super().act(s))
        return len(Hoarder.past) % int(self.space.counts[s])

class Priced(Careful):
    def __init__(self, space, horizon, price, seed=0):
        super().__init__(space, horizon)

class Wild(Careful):
    def act(self, s):
        return 7

class Crashing(Careful):
    def act(self, s):
        return [][s]
'''


@pytest.fixture
def folder(here):
    (here / "mine.py").write_text(MODULE)
    return here


def test_an_agent_that_passes_all_checks(folder):
    done = windage("check-agent", "mine:Careful", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("mine:Careful passes all 9 checks; 1 it does not offer\n")
    assert done.stdout.count("ok  ") == 9
    assert "-    saved and restored, goes on as if never stopped (not offered" in done.stdout


@pytest.mark.parametrize(
    ("name", "check", "message"),
    [
        ("Hoarder", "its memory is bounded", "keep counts or a window, not the history"),
        (
            "Counting",
            "two of them made alike act alike, side by side",
            "no state shared between agents",
        ),
        ("Wild", "plays actions that exist", "act(0) returned 7, which s=0 does not offer"),
        (
            "Crashing",
            "plays actions that exist",
            "raised IndexError: list index out of range (mine",
        ),
    ],
)
def test_a_failed_check_is_named_with_its_fix(folder, name, check, message):
    done = windage("check-agent", f"mine:{name}", "-T", "1000", cwd=folder)  # memory of its own
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    place = lines.index(f"FAIL {check}")
    assert message in lines[place + 1]
    assert f"mine:{name} fails" in lines[-1]


@pytest.mark.parametrize("name", ["Counting", "Guessing"])
def test_what_builds_on_acting_alike_is_not_checked_without_it(folder, monkeypatch, name):
    monkeypatch.syspath_prepend(str(folder))
    found = {one.check: one for one in findings(f"mine:{name}", horizon=300)}
    assert found["two of them made alike act alike, side by side"].passed is False
    rest = list(found.values())[3:]
    assert len(rest) == 6
    assert {one.passed for one in rest} == {None}
    assert {one.message for one in rest} == {"not checked: made alike, it does not act alike"}


def test_an_agent_of_ones_own_is_tried(folder):
    done = windage_here("try", "riverswim", "mine:Careful", "-T", "500", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "pseudo-regret" in done.stdout
    assert (folder / "out" / "riverswim-v0-Careful.png").stat().st_size > 1000


def test_a_required_option_is_set(folder, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    found = findings("mine:Priced", horizon=100, options={"price": 3})
    assert not [one for one in found if one.passed is False]
    assert "no such choice: 'prize'" in refused(
        capsys, "check-agent", "mine:Priced", "--set", "prize=3"
    )


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("mine:Nobody", "'mine' has no 'Nobody'. Fix: one of: Careful"),
        ("nowhere:A", "there is no module 'nowhere'"),
        ("ucrl5", "no such choice: 'ucrl5'"),
    ],
)
def test_what_is_no_agent_is_refused(folder, capsys, monkeypatch, place, said):
    monkeypatch.syspath_prepend(str(folder))
    assert said in refused(capsys, "check-agent", place)
