"""A crew hands out as many jobs as its pool takes, also when that changes."""

from __future__ import annotations

import contextlib
from concurrent.futures import BrokenExecutor, Future

from windage.errors import StateError
from windage.study import executors
from windage.study.executors import Crew, Job
from windage.study.task import Outcome, play


class Cluster:
    """Says how many threads it has, if it can be reached; does a job when it is asked again."""

    def __init__(self):
        self.threads, self.in_flight, self.seen = {}, [], []
        self.seats = executors._Seats(self)

    def nthreads(self):
        if self.threads is None:
            raise OSError("connection lost")
        return self.threads

    def submit(self, work, *arguments):
        future = Future()
        self.in_flight.append((future, work, arguments))
        return future

    def running(self, names):
        """Look at what is in flight, and end the first of it."""
        self.seen.append(len(self.in_flight))
        future, work, arguments = self.in_flight.pop(0)
        future.set_result(work(*arguments))

    @contextlib.contextmanager
    def opened(self):
        yield executors.Pool(self.seats, True, self.submit, play, lambda: None)


def outcome():
    return Outcome(b"", 0.0, 0.0, "here", 1)


def test_workers_that_come_and_go_while_a_study_runs(monkeypatch):
    monkeypatch.setattr(executors, "_ASK", 0.0)
    cluster = Cluster()
    ended = []
    with Crew(cluster.opened) as crew:
        for job, made in crew.results(
            [Job(str(i), f"job {i}", outcome, ()) for i in range(40)], cluster.running
        ):
            ended.append(job.key)
            assert made == outcome()
            cluster.threads = {10: {"a": 2}, 20: {"a": 2, "b": 1}, 30: None}.get(
                len(ended), cluster.threads
            )
    assert sorted(ended, key=int) == [str(i) for i in range(40)]
    assert cluster.seen[:10] == [2] * 10  # nobody is there yet: one, and one at the door
    assert cluster.seen[10:20] == [4] * 10
    assert cluster.seen[20:30] == [6] * 10
    assert cluster.seen[30:35] == [6] * 5  # as many as when it was last heard of


class Deadly(Cluster):
    """One job takes the pool down, and with it all that are in flight."""

    def running(self, names):
        self.seen.append(sorted(names))
        fatal = any(name == "job 0" for name in names)
        for future, work, arguments in self.in_flight:
            if fatal:
                future.set_exception(BrokenExecutor())
            else:
                future.set_result(work(*arguments))
        self.in_flight.clear()


def test_who_was_in_flight_with_a_deadly_job_does_not_fail_with_it(monkeypatch):
    monkeypatch.setattr(executors, "_ASK", 0.0)
    cluster = Deadly()
    cluster.threads = {"a": 2}
    jobs = [Job(str(i), f"job {i}", outcome, ()) for i in range(4)]
    with Crew(cluster.opened) as crew:
        ended = {job.key: made for job, made in crew.results(jobs, cluster.running)}
    assert isinstance(ended.pop("0"), StateError)
    assert ended == {str(i): outcome() for i in range(1, 4)}
    assert all(len(names) == 1 for names in cluster.seen[1:])  # each suspect flies alone
