"""Settings shared by all tests: what is larger in `make reliability`, and Ctrl-C for children."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

RELIABILITY = os.environ.get("WINDAGE_RELIABILITY") == "1"


@pytest.fixture(scope="session", autouse=True)
def hears_ctrl_c() -> Iterator[None]:
    """Undo an ignored SIGINT, which a background job of a shell hands down to every child."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep ten thousand tests out of every collection of garbage."""
    gc.collect()
    gc.freeze()


def one_of(*scenes: Any) -> tuple[Any, ...]:
    """Scenes that cost seconds: the first one, and all of them in `make reliability`."""
    return scenes if RELIABILITY else scenes[:1]


settings.register_profile(
    "quick",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "reliability",
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reliability" if RELIABILITY else "quick")
