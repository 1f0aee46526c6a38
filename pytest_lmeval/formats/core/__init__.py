"""CORE: tasks scored by log-probabilities, in the file formats of llm-foundry and of nanochat's bundle.

``core.yaml`` lists the tasks, a CSV file beside it has the scores of random guessing, and each task has a JSONL file.
"""

from __future__ import annotations

from pytest_lmeval.formats.core.load import load_core
from pytest_lmeval.formats.core.task import CoreTask

__all__ = ["CoreTask", "load_core"]
