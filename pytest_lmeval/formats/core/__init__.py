"""CORE tasks, scored by log-probabilities, in the file formats of llm-foundry and nanochat's bundle.

``core.yaml`` lists the tasks, each with a JSONL file. A CSV file in the same folder gives the scores of random
guessing.
"""

from __future__ import annotations

from pytest_lmeval.formats.core.load import load_core
from pytest_lmeval.formats.core.task import CoreTask

__all__ = ["CoreTask", "load_core"]
