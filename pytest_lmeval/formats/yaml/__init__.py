"""Task files in YAML: read with the place of every key, and passed to the format that their keys name.

The parser is imported only for files that look like a task.
"""

from __future__ import annotations

from pytest_lmeval.formats.yaml.dispatch import load
from pytest_lmeval.formats.yaml.document import Location, YamlDocument, YamlFault

__all__ = ["Location", "YamlDocument", "YamlFault", "load"]
