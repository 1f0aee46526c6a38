"""Find JSONL files that are not tasks but data for a Python file in the same folder or a folder above."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.data.local import find
from pytest_lmeval.data.rows import SUFFIXES
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import compact, spec

# The number of folders to search upwards, since data may be in OWNER/DATA_SET/SUBJECT.
_LEVELS = 4
_LONGEST_LOOK = 1 << 20
_FIELDS = compact.FIELDS | set(spec.REQUIRED)
_MOST_KEYS = 5


def is_data(path: Path) -> bool:
    """Return True if a Python file names ``path``, or a folder that contains it, as data.

    Only a plain string counts as a name. In a ``task_*.py``, the name comes after ``DATASET_PATH =``, is an argument of
    ``load_dataset``, or has the suffix of a data file. In other Python files, the name is the argument ``data`` of
    ``eval_task``. This function reads the Python files but does not run them.
    """
    file = path.absolute()
    return any(file.is_relative_to(data) for folder in file.parents[:_LEVELS] for data in _named_below(folder))


def rows_of_others(path: Path, data: bytes) -> str:
    """Return the reason why a JSONL file is probably data that a ``task_*.py`` opens by a computed path, or "".

    A file is probably data if no record has a field of task records, and a ``task_*.py`` is in its folder or a folder
    above.
    """
    files = [file for folder in path.absolute().parents[:_LEVELS] for file in sorted(folder.glob("task_*.py"))]
    if not files:
        return ""
    keys: dict[str, None] = {}
    try:
        for _, line in number_lines(data[:_LONGEST_LOOK].rpartition(b"\n")[0] or data):
            record = parse_line(line)
            if not isinstance(record, dict) or _FIELDS & record.keys():
                return ""
            keys.update(dict.fromkeys(record))
    except RecordRefused:
        return ""
    shown = ", ".join(list(keys)[:_MOST_KEYS])
    users = [file for file in files if _mentions(file, path)]
    whose = f"; rows for {users[0].name}?" if len(users) == 1 else ""
    return f"its records have {shown}, but no field of a task{whose}" if keys else ""


def _mentions(file: Path, path: Path) -> bool:
    """Return True if a Python file quotes the name of the data file, or of a folder on the path to it."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return False
    below = path.absolute().relative_to(file.absolute().parent)
    names = "|".join(re.escape(name) for name in (below.name, *below.parent.parts))
    return re.search(rf"""["'/](?:{names})["'/]""", text) is not None


def _named_below(folder: Path) -> Iterator[Path]:
    for file in folder.glob("*.py"):
        try:
            stat = file.stat()
            texts = _texts(file, stat.st_mtime_ns, stat.st_size)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # loading will refuse it
        for text in texts:
            try:
                found = find(text, folder)
            except RecordRefused:
                continue
            # Skip a folder that contains the Python file, because that folder also contains tasks.
            if found is not None and not file.is_relative_to(found.resolve()):
                yield found


@functools.lru_cache(maxsize=4096)
def _texts(file: Path, mtime_ns: int, size: int) -> frozenset[str]:
    data = file.read_bytes()
    if file.name.startswith("task_"):
        return frozenset(_named_in(ast.parse(data)))
    if b"eval_task" not in data:
        return frozenset()
    calls = [node for node in ast.walk(ast.parse(data)) if isinstance(node, ast.Call)]
    evals = [call for call in calls if ast.unparse(call.func).endswith("eval_task")]
    return frozenset(_strings(each.value for call in evals for each in call.keywords if each.arg == "data"))


def _named_in(module: ast.Module) -> Iterator[str]:
    """Yield the strings of a task file that may name data."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == "DATASET_PATH" for each in targets):
                yield from _strings([node.value])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("load_dataset", "load_hub_dataset")):
            yield from _strings((*node.args, *(each.value for each in node.keywords)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(SUFFIXES):
            yield node.value


def _strings(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
