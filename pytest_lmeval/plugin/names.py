"""Names for items and files that pytest's own syntax leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from pytest_lmeval.text import item_name, node_path

__all__ = ["ItemNames", "file_node"]

_File = TypeVar("_File", bound=pytest.File)


def file_node(kind: type[_File], parent: pytest.Collector, path: Path) -> _File:
    """Return the collector of the file at ``path``; pytest prints its node id and its name as they are."""
    node: _File = kind.from_parent(parent, path=path)
    shown = node_path(node.nodeid)
    if shown == node.nodeid:
        return node
    renamed: _File = kind.from_parent(parent, path=path, nodeid=shown, name=node_path(node.name))
    return renamed


class ItemNames:
    """Item names: the raw id with every character that pytest's own syntax might use replaced, kept unique."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, raw: str) -> str:
        """Return a name for the example with the id ``raw`` that no other item of the file has."""
        name = base = item_name(raw)
        number = 2
        while name in self._taken:
            name = f"{base}-{number}"
            number += 1
        self._taken.add(name)
        return name
