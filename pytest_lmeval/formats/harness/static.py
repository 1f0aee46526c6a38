"""What can be said of the tasks of a folder without their data, and without running any code of theirs."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.files import files_below
from pytest_lmeval.formats.harness.config import Config, check_config
from pytest_lmeval.formats.harness.document import FunctionRef, read_document
from pytest_lmeval.formats.harness.filters import pipelines
from pytest_lmeval.formats.harness.generation import generation_of
from pytest_lmeval.formats.harness.index import Index, index_of
from pytest_lmeval.formats.harness.measures import measures_of
from pytest_lmeval.formats.harness.templates import template_of
from pytest_lmeval.formats.yaml.claims import is_of_harness
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.pages import page

_TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")
_SUBSTITUTED = (
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
    looked = 0
    for path in files_below(folder):
        if path.suffix == ".yaml":
            looked += 1
            if is_of_harness(path.read_bytes()):
                return True
            if looked >= _LOOK:
                break
    return False


def check_folder(folder: Path) -> list[StaticCheck]:
    """Return every task of the folder, sorted by name, with what is wrong with it."""
    index = index_of(folder)
    return [check_task(name, Path(path), index) for name, path in sorted(index.tasks.items())]


def check_task(name: str, path: Path, index: Index) -> StaticCheck:
    """Return what is wrong with the task ``name`` of the file at ``path``."""
    try:
        config = Config(name, path, index.root, read_document(path))
        check_config(config)
        measures_of(config)
        generation_of(config)
        pipelines(config.get("filter_list"), lambda *given: None)
        for key in _TEMPLATES:
            if isinstance(config.get(key), str):
                template_of(config.get(key))
    except RecordRefused as refused:
        return StaticCheck(name, path, f"{refused.rule} {refused.field}: {refused.detail.removeprefix(f'{name}: ')}")
    needs: dict[str, None] = {}
    for ref in config.functions:
        fault, own = _function(ref, index.root)
        if fault:
            return StaticCheck(name, path, fault, has_code=True)
        needs |= dict.fromkeys(own)
    missing = [each for each in needs if importlib.util.find_spec(each) is None]
    fault = f"needs {', '.join(missing)}: pip install {' '.join(missing)}" if missing else ""
    return StaticCheck(name, path, fault, tuple(needs), bool(config.functions))


def _function(ref: FunctionRef, root: Path) -> tuple[str, Sequence[str]]:
    """Return what is wrong with a function's module, and the packages that it imports."""
    file = ref.folder.joinpath(*ref.module.split(".")).with_suffix(".py")
    if not file.is_file():
        top = ref.module.partition(".")[0]
        return ("", ()) if ref.module.startswith(_SUBSTITUTED) else ("", (top,))
    module = _module(file)
    if isinstance(module, str):
        return f"import_error !function: {module}", ()
    names, imported = module
    # A module that makes names while it runs may have any.
    if ref.name not in names and "*" not in names:
        return f"bad_value !function: {ref.module} has no {ref.name}", ()
    unknown = sorted(each for each in imported if each.startswith("lm_eval") and not each.startswith(_SUBSTITUTED))
    if unknown:
        return f"not_supported !function: {ref.module} imports {unknown[0]}", ()
    packages = dict.fromkeys(each.partition(".")[0] for each in sorted(imported))
    known = sys.stdlib_module_names | {"lm_eval", "datasets"}
    return "", [each for each in packages if each not in known]


@lru_cache(maxsize=2048)
def _module(file: Path) -> tuple[frozenset[str], frozenset[str]] | str:
    """Return the names that a module sets and the modules that it imports at once; a text where it cannot be read."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        return f"{file.name}: {type(error).__name__}: {error}"
    names: set[str] = set()
    imported: set[str] = set()
    for node in tree.body:
        names.update(_names(node))
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module or "")
    return frozenset(names), frozenset(imported)


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
    bad = [task for task in tasks if task.fault]
    lines = [f"{task.path}: {task.name}: {task.fault}" for task in bad]
    counts = Counter("without Python" if not task.has_code else "with functions" for task in tasks if not task.fault)
    good = len(tasks) - len(bad)
    share = f" ({good / len(tasks):.1%})" if tasks else ""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    summary = f"{folder}: {len(tasks):,} tasks of lm-evaluation-harness: {good:,} can run{share}: {kinds}"
    return [*lines, summary, f"to run them, name them in a file with the key harness: {page('harness-tasks.md')}"]


def as_json(tasks: Sequence[StaticCheck]) -> list[Mapping[str, Any]]:
    """Return every task with its file, its fault or null, and the packages that it needs."""
    return [
        {"task": task.name, "path": str(task.path), "fault": task.fault or None, "needs": list(task.needs)}
        for task in tasks
    ]
