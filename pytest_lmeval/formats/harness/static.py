"""Check the tasks of a folder without reading their data or running their code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.files import files_below
from pytest_lmeval.formats.harness.aggregates import CORPUS
from pytest_lmeval.formats.harness.config import Config, read_document
from pytest_lmeval.formats.harness.documents import template_of
from pytest_lmeval.formats.harness.functions import is_missing, needs_of
from pytest_lmeval.formats.harness.load import checked_parts
from pytest_lmeval.formats.harness.names import index_of
from pytest_lmeval.formats.yaml.claims import is_of_harness
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.pages import page

_TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")
_LOOK = 40


@dataclass(frozen=True, slots=True)
class StaticCheck:
    """A task, its file, and the fault that prevents it from running, "" if none was found.

    ``needs`` has the third-party packages that its functions import; ``has_code`` is true if it has functions.
    """

    name: str
    path: Path
    fault: str = ""
    needs: tuple[str, ...] = ()
    has_code: bool = False


def is_harness_folder(folder: Path) -> bool:
    """Return True if one of the folder's first files is a task of lm-evaluation-harness."""
    files = (path for path in files_below(folder) if path.suffix == ".yaml")
    return any(is_of_harness(path.read_bytes()) for path in islice(files, _LOOK))


def check_folder(folder: Path) -> list[StaticCheck]:
    """Check every task in the folder; return the results sorted by task name."""
    index = index_of(folder)
    return [_checked(name, Path(path), index.root) for name, path in sorted(index.tasks.items())]


def _checked(name: str, path: Path, root: Path) -> StaticCheck:
    try:
        config = Config(name, path, (root,), read_document(path))
        measures, *_ = checked_parts(config, lambda *given: None)
        for key in _TEMPLATES:
            if isinstance(config.get(key), str):
                template_of(config.get(key))
        needs = dict.fromkeys(package for ref in config.functions for package in needs_of(ref, (root,)))
        if any(measure.aggregation in CORPUS for measure in measures):
            needs["sacrebleu"] = None
    except RecordRefused as refused:
        return StaticCheck(name, path, str(refused))
    missing = [each for each in needs if is_missing(each)]
    fault = f"needs {', '.join(missing)}: pip install {' '.join(missing)}" if missing else ""
    return StaticCheck(name, path, fault, tuple(needs), bool(config.functions))


def as_text(folder: Path, tasks: Sequence[StaticCheck]) -> list[str]:
    """Return a line for each task that cannot run, and a summary by kind."""
    lines = [f"{task.path}: {task.name}: {task.fault}" for task in tasks if task.fault]
    good = [task for task in tasks if not task.fault]
    counts = Counter("with functions" if task.has_code else "without Python" for task in good)
    share = f" ({len(good) / len(tasks):.1%})" if tasks else ""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    summary = f"{folder}: {len(tasks):,} tasks of lm-evaluation-harness: {len(good):,} can run{share}: {kinds}"
    return [*lines, summary, f"to run them, name them in a file with the key harness: {page('harness-tasks.md')}"]


def as_json(tasks: Sequence[StaticCheck]) -> list[Mapping[str, Any]]:
    """Return every task with its file, its fault (or None), and the packages that it needs."""
    return [
        {"task": task.name, "path": str(task.path), "fault": task.fault or None, "needs": list(task.needs)}
        for task in tasks
    ]
