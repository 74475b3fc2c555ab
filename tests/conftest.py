"""Settings shared by all tests: hypothesis profiles, fixed and larger in `make reliability`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

RELIABILITY = os.environ.get("WINDAGE_RELIABILITY") == "1"


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
