"""Structure: what is known of a problem, so that only the laws of its exogenous variables are not.

A *law* is the distribution of an exogenous variable (demand, arrivals, wear) over its outcomes; it
may drift. The user writes down next state and reward of a state, an action and the outcomes. Both
are tabulated once, over the joint outcomes of every state-action pair, and what a structure is from
then on is these tables: functions are never called again.
"""

from windage.structure.structure import Structure
from windage.structure.variables import ALWAYS, INFERRED, INTERVAL, INVOLVED, Exogenous

__all__ = ["ALWAYS", "INFERRED", "INTERVAL", "INVOLVED", "Exogenous", "Structure"]
