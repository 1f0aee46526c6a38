"""Task files of lm-evaluation-harness: the YAML of its tasks and groups, read as it reads them.

Nothing of that package is imported: what its files mean is written down here anew.
"""

from __future__ import annotations

from pytest_lmeval.formats.harness.load import load_harness, load_harness_file

__all__ = ["load_harness", "load_harness_file"]
