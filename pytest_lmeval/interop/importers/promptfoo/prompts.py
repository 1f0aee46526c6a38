"""The prompts of a config: texts and conversations, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.data.beside import read_data
from pytest_lmeval.data.rows import BadRows
from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.formats.yaml.document import YamlFault
from pytest_lmeval.interop.importers.promptfoo.files import Folder, is_reference
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks
from pytest_lmeval.interop.importers.promptfoo.templates import jinja
from pytest_lmeval.interop.importers.promptfoo.yaml_files import parse_config

_ALONE = Node("{{prompt}}", "promptfoo")
"""What promptfoo asks where a config has no prompt."""
_FILES = re.compile(r".*\.(txt|md|j2|json|jsonl|ya?ml|csv|js|mjs|cjs|ts|py)(:\w+)?")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_ROLES = {"developer": "system"}
_KNOWN = frozenset({"id", "label", "raw", "display"})
Text = str | list[dict[str, str]]


class Prompt(NamedTuple):
    """A prompt in the words of a data file: a template, or messages."""

    name: str
    text: Text
    node: Node


def read_prompts(config: Node, folder: Folder, remarks: Remarks) -> list[Prompt]:
    """Return the prompts, each with a name of its own; what has no counterpart is noted."""
    found: list[Prompt] = []
    names = FileNames()
    given = config.at("prompts")
    for node in given.elements() if given.value is not None else [_ALONE]:
        try:
            for label, text in _texts(node, folder, remarks):
                name = names.give(safe_name(label, f"prompt-{len(found) + 1}", dots=True))
                found.append(Prompt(name, text, node))
        except LeftOut as left:
            remarks.leave(left.node or node, left.why)
    return found


def _texts(node: Node, folder: Folder, remarks: Remarks) -> Iterator[tuple[str, Text]]:
    """Yield the texts of an entry of ``prompts`` with their labels."""
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
        for own, text in _of_file(path, node, folder):
            yield label or own or path.stem, text


def _of_file(path: Path, node: Node, folder: Folder) -> Iterator[tuple[str, Text]]:
    if path.suffix == ".csv":
        yield from _of_csv(path, node)
        return
    text = folder.text(path, node)
    if path.suffix == ".jsonl":
        yield from (("", _written(line)) for line in text.splitlines() if line.strip())
    elif path.suffix == ".txt":
        yield from (("", _written(part.strip())) for part in _SEPARATOR.split(text) if part.strip())
    elif path.suffix in (".json", ".yaml", ".yml"):
        talk = _talk(text)
        if talk is None:
            raise LeftOut(f"{path.name}: expected a list of messages, each with role and content", node)
        yield "", talk
    else:
        yield "", _written(text)


def _of_csv(path: Path, node: Node) -> Iterator[tuple[str, Text]]:
    try:
        rows = read_data(path).rows
    except BadRows as bad:
        raise LeftOut(bad.faults[0], node) from None
    for row in rows:
        # A file of one column needs no header that says "prompt".
        text = row.get("prompt") or next(iter(row.values()), "")
        if text:
            yield str(row.get("label") or ""), _written(text)


def _written(text: str) -> Text:
    """Return a text that may be a conversation in JSON or YAML."""
    begins = text.lstrip()
    talk = _talk(text) if begins.startswith(("[", "- role:")) else None
    return jinja(text) if talk is None else talk


def _talk(text: str) -> list[dict[str, str]] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _yaml(text)
    if not isinstance(value, list) or not all(isinstance(each, dict) and "role" in each for each in value):
        return None
    return _messages(value)


def _yaml(text: str) -> Any:
    try:
        return parse_config(text.encode())
    except YamlFault:
        return None


def _messages(given: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    for message in given:
        if not isinstance(message.get("content"), str):
            raise LeftOut("a message whose content is no text (images, files): prompts hold text")
        if message.keys() != {"role", "content"}:
            raise LeftOut(f"a message with {', '.join(sorted(message.keys() - {'role', 'content'}))}")
    found = [{"role": _ROLES.get(each["role"], each["role"]), "content": jinja(each["content"])} for each in given]
    roles = [each["role"] for each in found]
    if roles[-1] != "user" or "system" in roles[1:] or not {*roles} <= {"system", "user", "assistant"}:
        raise LeftOut(f"messages of {', '.join(roles)}; a data file has system at the front and user at the end")
    return found
