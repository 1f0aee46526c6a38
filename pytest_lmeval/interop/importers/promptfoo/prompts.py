"""Read a config's prompts, by name: strings and conversations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.formats.yaml.document import YamlFault
from pytest_lmeval.formats.yaml.parse import DocumentReader
from pytest_lmeval.interop.importers.promptfoo.config import MAPPINGS, Folder, LeftOut, Node, Remarks, is_reference
from pytest_lmeval.interop.importers.promptfoo.templates import checked, filled

_ALONE = Node("{{prompt}}", "promptfoo")
"""The prompt for a config without prompts."""
_FILES = re.compile(r".*\.(txt|md|j2|json|jsonl|ya?ml|csv|js|mjs|cjs|ts|py)(:\w+)?")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_KNOWN = frozenset({"id", "label", "raw", "display"})


class Prompt(NamedTuple):
    """A prompt as roles and contents; plain text is one message without a role."""

    name: str
    messages: Sequence[tuple[str, str]]

    def check(self, row: dict[str, Any]) -> None:
        """Raise LeftOut if a row cannot fill the prompt."""
        try:
            for _, text in self.messages:
                filled(text, row)
        except LeftOut as left:
            raise LeftOut(f"prompt {self.name}: {left.why}") from None


def read_prompts(config: Node, folder: Folder, remarks: Remarks) -> list[Prompt]:
    """Return the prompts, each with a unique name; add remarks about prompts without a counterpart."""
    found: list[Prompt] = []
    names = FileNames()
    given = config.at("prompts")
    for node in given.elements() if given.value is not None else [_ALONE]:
        try:
            for label, messages in _texts(node, folder, remarks):
                name = names.give(safe_name(label, f"prompt-{len(found) + 1}", dots=True))
                found.append(Prompt(name, messages))
        except LeftOut as left:
            remarks.leave_for(left, node)
    return found


def _texts(node: Node, folder: Folder, remarks: Remarks) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    label = ""
    if isinstance(node.value, dict):
        remarks.leave_others(node, _KNOWN)
        label = str(node.value.get("label") or node.value.get("display") or "")
        node = node.at("raw" if "raw" in node.value else "id")
    if not isinstance(node.value, str) or not node.value.strip():
        raise LeftOut(f"expected a text or the name of a file, got {node.value!r:.60}")
    if not is_reference(node.value) and not _FILES.fullmatch(node.value):
        yield label, _written(node.value)
        return
    for path in folder.find(node):
        yield from ((label or path.stem, text) for text in _of_file(path, node, folder))


def _of_file(path: Path, node: Node, folder: Folder) -> Iterator[list[tuple[str, str]]]:
    if path.suffix in (".csv", ".jsonl"):
        raise LeftOut(f"{path.name}: prompts are read from text, YAML and JSON; write each prompt of it as one", node)
    text = folder.text(path, node)
    if path.suffix in MAPPINGS:
        talk = _talk(text)
        if talk is None:
            raise LeftOut(f"{path.name}: expected a list of messages, each with role and content", node)
        yield talk
    else:
        parts = [part.strip() for part in _SEPARATOR.split(text) if part.strip()] if path.suffix == ".txt" else [text]
        yield from map(_written, parts)


def _written(text: str) -> list[tuple[str, str]]:
    talk = _talk(text) if text.lstrip().startswith(("[", "- role:")) else None
    return [("", checked(text))] if talk is None else talk


def _talk(text: str) -> list[tuple[str, str]] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = DocumentReader(text.encode()).read()
        except YamlFault:
            return None
    if not isinstance(value, list) or not all(isinstance(each, dict) and "role" in each for each in value):
        return None
    for message in value:
        if message.keys() != {"role", "content"} or not isinstance(message["content"], str):
            raise LeftOut("a message with more than a role and a text (images, files, tools): prompts hold text")
    roles = ["system" if each["role"] == "developer" else each["role"] for each in value]
    if not roles or roles[-1] != "user" or "system" in roles[1:] or not {*roles} <= {"system", "user", "assistant"}:
        raise LeftOut(f"messages of {', '.join(roles)}; a data file has system at the front and user at the end")
    return [(role, checked(each["content"])) for role, each in zip(roles, value, strict=True)]
