"""Agents that run other agents: in blocks, in copies, or for ever."""
