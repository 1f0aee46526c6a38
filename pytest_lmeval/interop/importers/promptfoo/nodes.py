"""A value of a config with its place, and what was said of such places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_lmeval.formats.yaml.document import Keys, YamlDocument, field_name
from pytest_lmeval.interop.importers.imported import Remark

REFERENCE = "$ref"


class LeftOut(Exception):
    """Why something has no counterpart; ``node`` is the part that is at fault, if it is not the whole."""

    def __init__(self, why: str, node: Node | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.node = node


@dataclass(frozen=True, slots=True)
class Node:
    """A value, the file that it is in, as messages name it, and the keys that lead to it."""

    value: Any
    file: str
    document: YamlDocument | None = None
    keys: Keys = ()
    first_line: int = 1

    @property
    def line(self) -> int:
        """The line of the value, from 1."""
        above = 0 if self.document is None else self.document.place(self.keys).line - 1
        return max(1, above + self.first_line)

    @property
    def name(self) -> str:
        """The keys, as people write them."""
        of_list = self.document is not None and [*self.document] == ["root"]
        return field_name(self.keys[1:] if of_list else self.keys).replace("_root", "the file")

    def at(self, key: str | int) -> Node:
        """Return the value under a key, or None."""
        value = self.value
        if isinstance(value, dict):
            inner = value.get(str(key))
        else:
            inner = value[key] if isinstance(value, list) and isinstance(key, int) else None
        return replace(self, value=inner, keys=(*self.keys, key))

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; nothing of any other value."""
        if isinstance(self.value, dict):
            yield from ((key, self.at(key)) for key in self.value)

    def elements(self) -> list[Node]:
        """Return the elements of a list; of another value, that value alone, and nothing for nothing."""
        if isinstance(self.value, list):
            return [self.at(number) for number in range(len(self.value))]
        return [] if self.value is None else [self]

    def written_out(self) -> Node:
        """Return this; raise LeftOut if it refers to another part of the config."""
        if isinstance(self.value, dict) and REFERENCE in self.value:
            pointer = self.value[REFERENCE]
            raise LeftOut(f"$ref {pointer!r:.80} is not followed; write out what it names, or use a YAML anchor", self)
        return self


@dataclass(frozen=True, slots=True)
class Remarks:
    """What is said of a config while it is read."""

    left_out: list[Remark] = field(default_factory=list)
    differs: list[Remark] = field(default_factory=list)

    def leave(self, node: Node, why: str, what: str = "") -> None:
        """Note that something has no counterpart."""
        self.left_out.append(Remark(node.file, node.line, what or node.name, why))

    def leave_for(self, left: LeftOut, node: Node, what: str = "") -> None:
        """Note what was raised for ``node`` or a part of it."""
        self.leave(left.node or node, left.why, what)

    def differ(self, node: Node, why: str, what: str) -> None:
        """Note that something means something else; of one kind, the first place is enough."""
        if not any((what, why) == (each.what, each.why) for each in self.differs):
            self.differs.append(Remark(node.file, node.line, what, why))

    def leave_others(
        self, node: Node, known: frozenset[str], why: Mapping[str, str] | str = "nothing here reads it"
    ) -> None:
        """Note every entry of a mapping that is not among the ``known``, and why, by its key or for all."""
        for key, inner in node.items():
            if key not in known:
                self.leave(inner, why if isinstance(why, str) else why.get(key, "nothing here reads it"))
