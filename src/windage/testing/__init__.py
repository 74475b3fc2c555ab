"""Conformance suites, public: run them over models and agents of your own."""

from __future__ import annotations

from windage.testing.agents import Finding, agent_checks, check_agent, findings
from windage.testing.models import check_drifting_mdp

__all__ = ["Finding", "agent_checks", "check_agent", "check_drifting_mdp", "findings"]
