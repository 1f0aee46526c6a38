"""Tests that import scipy, scikit-learn, statsmodels, sacrebleu, rouge-score or datasets, so that one process does."""

from __future__ import annotations

import gc

from tests.formats.python.conftest import folder

__all__ = ["folder"]


def pytest_collection_finish() -> None:
    """Leave what the large libraries hold out of all later collections of garbage: statsmodels forces many."""
    gc.collect()
    gc.freeze()
