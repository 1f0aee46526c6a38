"""``lmeval validate PATH...``: list every invalid record in every file, with its line, rule and field."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.cli.ini import load_options, test_files
from pytest_lmeval.cli.output import add_format, show, show_json
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.files import find_misnamed, find_task_files, has_tasks, load_file
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.formats.yaml.claims import is_data_set
from pytest_lmeval.formats.yaml.configs import read_configs, without_task
from pytest_lmeval.functions.checking import CheckedFile, FoundFunction, check_files, find_eval_files
from pytest_lmeval.pages import page
from pytest_lmeval.project import registering_conftest
from pytest_lmeval.run.library import ExampleUnit
from pytest_lmeval.run.plan import lacking_packages, needs_of
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.formats.harness.static import FolderCheck
    from pytest_lmeval.formats.lint import LintWarning
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.types import RecordError

_MOST = 20
_STEP = 100
_WIDTH = 40
_KINDS = "task files are *.jsonl, *.yaml and task_*.py"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="task files, test files with eval functions, or folders"
    )
    add_format(parser, "text", "json")
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML values for the parameters of tasks")
    parser.add_argument("--lint", action="store_true", help="also warn of valid records that look like mistakes")
    parser.add_argument(
        "--import",
        dest="imports",
        action="store_true",
        help="also import the modules of a folder of lm-evaluation-harness that are in trusted paths",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print errors and warnings; return 1 if there is an error or a folder without a task."""
    if len(options.paths) == 1 and options.paths[0].is_dir() and not has_tasks(options.paths[0]):
        from pytest_lmeval.formats.harness.static import is_harness_folder

        if is_harness_folder(options.paths[0]):
            return _of_harness(options.paths[0], options.format, imports=options.imports)
    if options.imports:
        raise UsageError("--import takes one folder of lm-evaluation-harness; the check of a task file imports anyway")
    registry = Project().registry
    configs = read_configs(options.config) if options.config else ()
    limits = load_options(options.paths, configs)
    functions = check_files(find_eval_files(options.paths, test_files(options.paths)))
    files: dict[Path, LoadedFile] = {}
    empty = []
    misnamed: dict[Path, str] = {}
    for given in options.paths:
        if given in functions:
            continue
        found = {
            path: load_file(
                path,
                name,
                registry,
                options=limits,
                is_named=path == given and not _is_data_set(path),
                # The working folder, or a folder above it, is not an explicit choice of files.
                is_explicit=not Path.cwd().is_relative_to(given.absolute()),
            )
            for path, name in find_task_files([given], registry)
        }
        files.update(found)
        if given.is_dir():
            misnamed.update(find_misnamed(given))
            has_task = any(loaded.tasks or loaded.errors for loaded in found.values())
            if not has_task and not any(path.is_relative_to(given) for path in functions):
                empty.append(given)
    has_errors = any(loaded.errors for loaded in files.values())
    tasks = [task for loaded in files.values() for task in loaded.tasks]
    unused = without_task(configs, tasks) if configs and not has_errors else ()
    checked = _Checked(
        {path: loaded for path, loaded in files.items() if loaded.tasks or loaded.errors},
        functions,
        {path: loaded.no_task for path, loaded in files.items() if loaded.no_task} | misnamed,
        empty,
        [f"{options.config}: {fault}" for fault in unused],
        [*_lacking(files, registry)],
    )
    warnings: Sequence[LintWarning] | None = None
    if options.lint:
        from pytest_lmeval.formats.lint import lint

        warnings = lint(checked.files, registry)
    if options.format == "json":
        show_json(_as_json(checked, warnings))
    else:
        show(_as_text(checked, warnings))
    has_errors = has_errors or any(file.errors for file in functions.values())
    return int(has_errors or bool(empty or checked.config))


def _of_harness(folder: Path, format: str, *, imports: bool) -> int:
    """Check a folder of lm-evaluation-harness tasks, but not their data."""
    from pytest_lmeval.formats.harness import static

    trusts = load_options([folder]).trusts if imports else None
    is_shown = sys.stderr.isatty()

    def progress(done: int, of: int) -> None:
        if is_shown and done % _STEP == 0:
            print(f"\r{done:,} of {of:,} tasks checked ", end="", file=sys.stderr, flush=True)

    if is_shown:
        print("reading the files of the folder ", end="", file=sys.stderr, flush=True)
    found = static.check_folder(folder, trusts, progress)
    if is_shown:
        print("\r" + " " * _WIDTH + "\r", end="", file=sys.stderr, flush=True)
    if format == "json":
        show_json(_json_of_harness(found))
    else:
        show(_text_of_harness(folder, found, imports=imports))
    return int(any(task.fault for task in found.tasks))


def _text_of_harness(folder: Path, found: FolderCheck, *, imports: bool) -> Iterator[str]:
    """Yield a line for each task with an error, and a summary that counts tasks by kind."""
    good = [task for task in found.tasks if not task.fault]
    yield from (f"{task.path}: {task.name}: {task.fault}" for task in found.tasks if task.fault)
    yield from (f"{path}: {name}: not read: task files end in .yaml" for name, path in found.misnamed.items())
    counts = Counter("with functions" if task.has_code else "without Python" for task in good)
    share = f" ({len(good) / len(found.tasks):.1%})" if found.tasks else ""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    all_tasks = f"{folder}: {len(found.tasks):,} tasks of lm-evaluation-harness"
    yield f"{all_tasks}: nothing known against {len(good):,}{share}: {kinds}"
    if left := sum(fault is None for fault in found.modules.values()):
        remedy = "they are outside of the trusted paths" if imports else "--import imports those in trusted paths"
        yield f"not imported: {left:,} module(s) with functions; {remedy}"
    yield f"to run them, name them in a file with the key harness: {page('harness-tasks.md')}"


def _json_of_harness(found: FolderCheck) -> Mapping[str, Any]:
    """Return the tasks with their errors and required packages, and the numbers of modules, as JSON values."""
    tasks = [
        {"task": task.name, "path": str(task.path), "fault": task.fault or None, "needs": list(task.needs)}
        for task in found.tasks
    ]
    imported = sum(fault is not None for fault in found.modules.values())
    not_read = [{"task": name, "path": path} for name, path in found.misnamed.items()]
    return {"tasks": tasks, "modules": {"found": len(found.modules), "imported": imported}, "not_read": not_read}


@dataclass(frozen=True, slots=True)
class _Checked:
    """The results of a check.

    ``not_tasks`` maps files to the reasons why they are not tasks, and ``empty`` lists the folders without tasks.
    ``config`` lists errors in the parameter file. ``lacking`` lists the required packages that are not installed.
    """

    files: Mapping[Path, LoadedFile]
    functions: Mapping[Path, CheckedFile]
    not_tasks: Mapping[Path, str]
    empty: Sequence[Path]
    config: Sequence[str] = ()
    lacking: Sequence[tuple[Path, int, str]] = ()


def _is_data_set(path: Path) -> bool:
    return path.suffix == ".yaml" and is_data_set(path.read_bytes())


def _as_text(checked: _Checked, warnings: Sequence[LintWarning] | None) -> list[str]:
    files = checked.files
    errors = [(path, loaded.errors) for path, loaded in files.items()]
    errors += [(path, file.errors) for path, file in checked.functions.items()]
    bad = [error.at(path) for path, found in errors for error in found]
    left = [f"{path}:{line}: warning: {remark}" for path, line, remark in _remarks(checked)]
    left += [f"not a task: {path} ({reason})" for path, reason in checked.not_tasks.items()]
    nothing = [f"no task found in {folder}: {_KINDS}" for folder in checked.empty]
    nothing += _of_conftest(files)
    nothing += [_unchecked(path, each) for path, file in checked.functions.items() for each in file.functions]
    good = sum(_valid(loaded) for loaded in files.values()) + sum(map(_rows, checked.functions.values()))
    functions = sum(len(file.functions) for file in checked.functions.values())
    summary = f"{len(errors)} file(s): {good} valid record(s), {len(bad)} bad"
    summary += f", {functions} eval function(s)" if functions else ""
    before = [line for line in (*bad, *left, *nothing, *checked.config) if line]
    if warnings is None:
        return [*before, summary]
    return [*before, *_warning_lines(warnings), f"{summary}, {len(warnings)} warning(s)"]


def _unchecked(path: Path, function: FoundFunction) -> str:
    """Return a line that names the unchecked parts of an eval function, or an empty string."""
    if not function.unchecked:
        return ""
    named = " and ".join(function.unchecked)
    return printable(f"not checked: {path}:{function.line}: {named} of {function.function}: made by code", keep="")


def _of_conftest(files: Mapping[Path, LoadedFile]) -> list[str]:
    """Return a hint for unknown names that a ``conftest.py`` may register in runs of pytest."""
    unknown = [path for path, loaded in files.items() if any(map(_is_unknown_name, loaded.errors))]
    found = next((path for each in unknown if (path := registering_conftest(each, Path.cwd()))), None)
    if found is None:
        return []
    return [
        f"{found} registers names for runs of pytest only; for commands, too, move the function "
        'pytest_lmeval_register to a module and add to pyproject.toml: [tool.lmeval] plugins = ["MODULE"]'
    ]


def _is_unknown_name(error: RecordError) -> bool:
    return error.detail.startswith("unknown ") or error.field.endswith("post_process")


def _warning_lines(warnings: Sequence[LintWarning]) -> Iterator[str]:
    """Yield the first 20 warnings of each rule in each file, and count the other warnings."""
    groups: dict[tuple[Path, str], list[LintWarning]] = {}
    for warning in warnings:
        groups.setdefault((warning.path, warning.rule), []).append(warning)
    for (path, rule), group in groups.items():
        yield from (warning.at() for warning in group[:_MOST])
        if len(group) > _MOST:
            yield f"{path}: and {len(group) - _MOST} more of {rule} (--format json has them all)"


def _remarks(checked: _Checked) -> list[tuple[Path, int, str]]:
    of_files = [(path, line, remark) for path, loaded in checked.files.items() for line, remark in loaded.remarks]
    return [*of_files, *checked.lacking]


def _lacking(files: Mapping[Path, LoadedFile], registry: Registry) -> Iterator[tuple[Path, int, str]]:
    """Yield a warning for each package that a task needs but that is not installed."""
    for path, loaded in files.items():
        units = [ExampleUnit(task, example) for task in loaded.tasks for example in task.examples]
        for name, needs in needs_of(units, registry).items():
            yield from ((path, 1, f"task {name!r}{fault}") for fault in lacking_packages(needs))


def _as_json(checked: _Checked, warnings: Sequence[LintWarning] | None) -> dict[str, Any]:
    report = [
        {"path": str(path), "valid": _valid(loaded), "errors": [asdict(error) for error in loaded.errors]}
        for path, loaded in checked.files.items()
    ]
    report += [
        {
            "path": str(path),
            "valid": _rows(file),
            "errors": [asdict(error) for error in file.errors],
            "functions": [function.to_json() for function in file.functions],
        }
        for path, file in checked.functions.items()
    ]
    left = [{"path": str(path), "reason": reason} for path, reason in checked.not_tasks.items()]
    empty = [str(folder) for folder in checked.empty]
    remarks = [{"path": str(path), "line_number": line, "detail": remark} for path, line, remark in _remarks(checked)]
    linted = {} if warnings is None else {"warnings": [{**asdict(each), "path": str(each.path)} for each in warnings]}
    return {
        "files": report,
        "not_tasks": left,
        "without_tasks": empty,
        "config": list(checked.config),
        "remarks": remarks,
        **linted,
    }


def _rows(file: CheckedFile) -> int:
    return sum(function.rows or 0 for function in file.functions)


def _valid(loaded: LoadedFile) -> int:
    return sum(len(task.examples) for task in loaded.tasks)
