"""Scorers: what a row's answer is worth, and what else is found out about it."""

from __future__ import annotations

from pytest_lmeval.formats.declarative.scoring.build import build_scorer
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer, ScorerOutput

__all__ = ["Scorer", "ScorerOutput", "build_scorer"]
