"""What can be said of the tasks of a folder without their data, and without running any code of theirs."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.files import files_below
from pytest_lmeval.formats.harness.config import Config, FunctionRef, read_document
from pytest_lmeval.formats.harness.documents import template_of
from pytest_lmeval.formats.harness.functions import SUBSTITUTED
from pytest_lmeval.formats.harness.load import checked_parts
from pytest_lmeval.formats.harness.names import index_of
from pytest_lmeval.formats.yaml.claims import is_of_harness
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.pages import page

_TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")
# Modules of the harness with a substitute, and that of the data sets.
_SUBSTITUTES = (
    *("lm_eval.utils", "lm_eval.tasks", "datasets", "lm_eval.filters.extraction"),
    *("lm_eval.api.filter", "lm_eval.api.metrics", "lm_eval.api.registry"),
)
_LOOK = 40


@dataclass(frozen=True, slots=True)
class StaticCheck:
    """A task, its file, and why it cannot run; "" where nothing is known against it.

    ``needs`` are the packages of third parties that its functions import, ``has_code`` says that it has any.
    """

    name: str
    path: Path
    fault: str = ""
    needs: tuple[str, ...] = ()
    has_code: bool = False


def is_harness_folder(folder: Path) -> bool:
    """Tell by a look at some files whether a folder holds tasks of lm-evaluation-harness."""
    files = (path for path in files_below(folder) if path.suffix == ".yaml")
    return any(is_of_harness(path.read_bytes()) for path in islice(files, _LOOK))


def check_folder(folder: Path) -> list[StaticCheck]:
    """Return every task of the folder, sorted by name, with what is wrong with it."""
    index = index_of(folder)
    return [_checked(name, Path(path), index.root) for name, path in sorted(index.tasks.items())]


def _checked(name: str, path: Path, root: Path) -> StaticCheck:
    try:
        config = Config(name, path, root, read_document(path))
        checked_parts(config, lambda *given: None)
        for key in _TEMPLATES:
            if isinstance(config.get(key), str):
                template_of(config.get(key))
        needs = dict.fromkeys(package for ref in config.functions for package in _needs(ref))
    except RecordRefused as refused:
        return StaticCheck(name, path, str(refused))
    missing = [each for each in needs if importlib.util.find_spec(each) is None]
    fault = f"needs {', '.join(missing)}: pip install {' '.join(missing)}" if missing else ""
    return StaticCheck(name, path, fault, tuple(needs), bool(config.functions))


def _needs(ref: FunctionRef) -> Sequence[str]:
    """Return the packages of third parties that a function's module imports; raise RecordRefused for a bad one."""
    file = ref.file
    if not file.is_file():
        return () if ref.module.startswith(_SUBSTITUTES) else (ref.module.partition(".")[0],)
    names, imported = _module(file)
    # A module that makes names while it runs may have any.
    if ref.name not in names and "*" not in names:
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}")
    unknown = sorted(each for each in imported if each.startswith("lm_eval") and not each.startswith(_SUBSTITUTES))
    if unknown:
        raise RecordRefused("not_supported", "!function", f"{ref.module} imports {unknown[0]}")
    packages = dict.fromkeys(each.partition(".")[0] for each in sorted(imported))
    return [each for each in packages if each not in sys.stdlib_module_names and each not in SUBSTITUTED]


@lru_cache(maxsize=2048)
def _module(file: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a module sets and the modules that it imports at once."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        detail = f"{file.name}: {type(error).__name__}: {error}"
        raise RecordRefused("import_error", "!function", detail) from None
    imported: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module or "")
    return frozenset(name for node in tree.body for name in _names(node)), frozenset(imported)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.For | ast.While | ast.With | ast.Expr):
        yield "*"
    elif isinstance(node, ast.If | ast.Try):
        for each in [*node.body, *node.orelse]:
            yield from _names(each)


def as_text(folder: Path, tasks: Sequence[StaticCheck]) -> list[str]:
    """Return a line per task that cannot run, and how many there are of each kind."""
    lines = [f"{task.path}: {task.name}: {task.fault}" for task in tasks if task.fault]
    good = [task for task in tasks if not task.fault]
    counts = Counter("with functions" if task.has_code else "without Python" for task in good)
    share = f" ({len(good) / len(tasks):.1%})" if tasks else ""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    summary = f"{folder}: {len(tasks):,} tasks of lm-evaluation-harness: {len(good):,} can run{share}: {kinds}"
    return [*lines, summary, f"to run them, name them in a file with the key harness: {page('harness-tasks.md')}"]


def as_json(tasks: Sequence[StaticCheck]) -> list[Mapping[str, Any]]:
    """Return every task with its file, its fault or null, and the packages that it needs."""
    return [
        {"task": task.name, "path": str(task.path), "fault": task.fault or None, "needs": list(task.needs)}
        for task in tasks
    ]
