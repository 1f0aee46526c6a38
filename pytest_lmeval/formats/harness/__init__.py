"""Task files of lm-evaluation-harness: the YAML of its tasks and groups, read as the harness reads it.

That package is never imported: its rules are reimplemented here.
"""

from __future__ import annotations

from pytest_lmeval.formats.harness.load import load_harness, load_harness_file

__all__ = ["load_harness", "load_harness_file"]
