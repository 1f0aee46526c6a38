"""Write plain values as readable YAML: identifiers without quotes, multi-line strings as blocks, others in quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]  # no types are published with it

# A block cannot escape characters.
_NOT_IN_A_BLOCK = re.compile("\\A[ \n]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # no types are published with it
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    is_block = "\n" in text and not _NOT_IN_A_BLOCK.search(text)
    style = None if text.isidentifier() and text.isascii() else "|" if is_block else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text
