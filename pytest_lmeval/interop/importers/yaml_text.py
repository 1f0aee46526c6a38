"""Write plain values as readable YAML: texts of several lines as blocks, all other texts in quotes."""

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

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        node = super().represent_mapping(tag, mapping, flow_style=not any(map(_is_large, mapping.values())))
        for key, _ in node.value:
            key.style = None if key.value.isidentifier() and key.value.isascii() else '"'
        return node

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        return super().represent_sequence(tag, sequence, flow_style=not _is_large(sequence))


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if _is_block(text) else '"'),
)


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return the text of a mapping; collections of plain values take one line each."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text


def _is_large(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping) or (isinstance(value, str) and _is_block(value))


def _is_block(text: str) -> bool:
    return "\n" in text and not _NOT_IN_A_BLOCK.search(text)
