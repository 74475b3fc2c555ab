"""Fixtures of the tests of live agents."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "orders.journal"
