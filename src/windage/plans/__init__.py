"""What the theory promises for a problem, before a step is spent: `windage.plan(...)`."""

from __future__ import annotations

from windage.confidence.adapting import Blocks
from windage.plans.bound import Bound
from windage.plans.summary import Plan, plan
from windage.plans.visits import Visits

__all__ = ["Blocks", "Bound", "Plan", "Visits", "plan"]
