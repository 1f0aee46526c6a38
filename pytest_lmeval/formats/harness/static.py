"""Check the tasks in a folder without reading their data; import the tasks' modules only on request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.files import files_below
from pytest_lmeval.formats.harness.aggregates import CORPUS
from pytest_lmeval.formats.harness.config import Config, FunctionRef, read_document
from pytest_lmeval.formats.harness.documents import template_of
from pytest_lmeval.formats.harness.functions import Roots, function_of, is_missing, needs_of
from pytest_lmeval.formats.harness.load import checked_parts
from pytest_lmeval.formats.harness.names import index_of
from pytest_lmeval.formats.yaml.claims import is_of_harness
from pytest_lmeval.frozen import dataclass

_TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")
_LOOK = 40


@dataclass(frozen=True, slots=True)
class StaticCheck:
    """A task, its file, and the error that prevents the task from running ("" for none).

    ``needs`` lists the third-party packages that the task's functions import. ``has_code`` is true if the task has
    functions.
    """

    name: str
    path: Path
    fault: str = ""
    needs: tuple[str, ...] = ()
    has_code: bool = False


def is_harness_folder(folder: Path) -> bool:
    """Return True if any of the folder's first files is a task of lm-evaluation-harness."""
    files = (path for path in files_below(folder) if path.suffix in (".yaml", ".yml"))
    return any(is_of_harness(path.read_bytes()) for path in islice(files, _LOOK))


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """The checks of a folder's tasks, by name.

    ``modules`` maps each module with functions of the tasks to its import error, or to None if it was not imported.
    ``misnamed`` contains the task files that the harness does not read because their names end in ``.yml``.
    """

    tasks: Sequence[StaticCheck]
    modules: Mapping[Path, str | None]
    misnamed: Mapping[str, str]


def check_folder(
    folder: Path, trusts: Callable[[Path], bool] | None, progress: Callable[[int, int], object]
) -> FolderCheck:
    """Check every task in the folder; if ``trusts`` is given, import the function modules that it accepts.

    Calls ``progress`` with the number of checked tasks and the total number of tasks.
    """
    index = index_of(folder)
    modules: dict[Path, str | None] = {}
    tasks: list[StaticCheck] = []
    for name, path in sorted(index.tasks.items()):
        progress(len(tasks), len(index.tasks))
        tasks.append(_checked(name, Path(path), index.root, modules, trusts))
    return FolderCheck(tasks, modules, index.misnamed)


def _checked(
    name: str, path: Path, root: Path, modules: dict[Path, str | None], trusts: Callable[[Path], bool] | None
) -> StaticCheck:
    try:
        config = Config(name, path, (root,), read_document(path))
        measures, *_ = checked_parts(config, lambda *given: None)
        for key in _TEMPLATES:
            if isinstance(config.get(key), str):
                template_of(config.get(key))
        needs = dict.fromkeys(package for ref in config.functions for package in needs_of(ref, (root,)))
        if any(measure.aggregation in CORPUS for measure in measures):
            needs["sacrebleu"] = None
        for ref in config.functions:
            if ref.file.is_file() and ref.file not in modules:
                wanted = trusts is not None and trusts(path) and trusts(ref.file)
                modules[ref.file] = _import_fault(ref, (root,)) if wanted else None
    except RecordRefused as refused:
        return StaticCheck(name, path, str(refused))
    missing = [each for each in needs if is_missing(each)]
    fault = f"needs {', '.join(missing)}: pip install {' '.join(missing)}" if missing else ""
    fault = fault or next(filter(None, (modules.get(ref.file) for ref in config.functions)), "")
    return StaticCheck(name, path, fault, tuple(needs), bool(config.functions))


def _import_fault(ref: FunctionRef, roots: Roots) -> str:
    try:
        # The module may print, but only the report may go to standard output.
        with redirect_stdout(sys.stderr):
            function_of(ref, roots)
    except RecordRefused as refused:
        return str(refused)
    return ""
