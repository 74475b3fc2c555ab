"""The crew: jobs are handed out as there is room for them."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future

from windage.study.crew import Crew, Job
from windage.study.play import Outcome, play
from windage.study.pools import Pool


def test_workers_that_come_later_are_given_work_too():
    """A cluster may be small, or empty, when a study starts."""
    there, most = 1, 0
    asked: list[Future[Outcome]] = []

    def submit(*_):
        asked.append(Future())
        return asked[-1]

    @contextlib.contextmanager
    def pool():
        yield Pool(lambda: there, True, submit, play, lambda: None)

    def look(running):
        nonlocal there, most
        flying = [one for one in asked if not one.done()]
        most = max(most, len(flying))
        assert len(flying) <= 2 * there
        assert len(running) <= there
        there = 5
        flying[0].set_result(Outcome(b"", 0.0, 0.0, "here", 1))

    with Crew(pool) as crew:
        done = list(crew.results([Job(str(k), f"job {k}", play, ()) for k in range(30)], look))
    assert len(done) == 30
    assert most == 10  # as many run as there are workers now, and as many wait
