"""Check which tools an example called, how often, in which order, and in how many steps."""

from __future__ import annotations

from pytest_lmeval.functions.calls import Finding, called, in_order, match, max_steps, never_called
from pytest_lmeval.metrics.parts.call import Call

__all__ = ["Call", "Finding", "called", "in_order", "match", "max_steps", "never_called"]
