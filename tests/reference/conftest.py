"""Tests that import scipy, scikit-learn, statsmodels, sacrebleu, rouge-score or datasets, so that one process does."""

from __future__ import annotations

from tests.formats.python.conftest import folder

__all__ = ["folder"]
