"""The room that each bound of a figure of the tree leaves, so that a line more is not a change of the bound."""

from __future__ import annotations

__all__ = ["SLACK"]

SLACK = 1.02
