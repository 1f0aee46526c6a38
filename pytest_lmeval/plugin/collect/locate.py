"""Decide which files in a project to collect."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_lmeval.text import node_path

_File = TypeVar("_File", bound=pytest.File)


class Places:
    """The task paths, and the files and folders that the command line names."""

    def __init__(self, config: pytest.Config) -> None:
        given = config.getini("lm_task_paths")
        self._are_given = bool(given)
        self.task_paths = [config.rootpath / path for path in (given or ["tasks"])]
        named = _named_paths(config)
        self.named_files = {path for path in named if path.is_file()}
        # Naming the project's root, or a folder above it, selects nothing in particular.
        self.named = [path for path in named if path.is_dir() and not config.rootpath.is_relative_to(path)]
        self._rootpath = config.rootpath
        self._ours: dict[str, bool] = {}
        self.has_adapter = bool(config.getoption("lm_adapter") or config.getini("lm_adapter"))
        # A folder called ``tasks`` may hold anything, so require another sign of eval tasks.
        checks = bool(config.option.lm_check_formatting)
        self.implicit = self._are_given or self.has_adapter or checks
        self.adapter_or_listing = self.has_adapter or checks or config.option.collectonly
        self._config = config

    def root_of(self, path: Path, *, is_named: bool) -> Path | None:
        """Return the folder to which task names at ``path`` are relative, or None if the file must not be collected."""
        for root in self.task_paths:
            if path.is_relative_to(root):
                below = any(folder.is_relative_to(root) for folder in self.named)
                return root if is_named or self.implicit or below else None
        folders = [folder for folder in self.named if path.is_relative_to(folder)]
        if folders and (is_named or (self.adapter_or_listing and self._may_be_a_task(path))):
            return min(folders, key=lambda folder: len(folder.parts))
        return path.parent if is_named else None

    def is_below(self, path: Path) -> bool:
        """Return True if ``path`` is in one of the folders of ``lm_task_paths``."""
        return any(path.is_relative_to(folder) for folder in self.task_paths)

    def is_explicit(self, path: Path) -> bool:
        """Return True if the ini file or the command line names the task folder that contains ``path``."""
        roots = [root for root in self.task_paths if path.is_relative_to(root)]
        named = [folder for folder in self.named if path.is_relative_to(folder)]
        return bool(roots) and (
            self._are_given or any(folder.is_relative_to(root) for folder in named for root in roots)
        )

    def asks_for_run(self) -> bool:
        """Return True if an adapter, the ini file or a path indicates that the user wants to run tasks."""
        if self.has_adapter or self._are_given:
            return True
        # Without a conftest that registers formats, a project without tasks needs no registry.
        registers = self._config.hook.pytest_lmeval_register.get_hookimpls()
        suffixes = _BUILT_IN | (self.own_suffixes if registers else frozenset())
        below = [path for path in self.named if any(path.is_relative_to(root) for root in self.task_paths)]
        paths = chain(self.named_files, *(folder.rglob("*") for folder in below))
        return any(path.suffix in suffixes and not is_plain_python(path) for path in paths)

    def is_ours(self, nodeid: str) -> bool:
        """Return True for an example's node id."""
        file = nodeid.partition("::")[0]
        if file not in self._ours:
            path = Path(os.path.abspath(self._rootpath / file))
            if is_plain_python(path):
                ours = self.has_adapter and _may_hold_evals(path)
            else:
                ours = self.root_of(path, is_named=path in self.named_files) is not None
            self._ours[file] = ours
        return self._ours[file]

    def _may_be_a_task(self, path: Path) -> bool:
        return _may_be_a_task(path) if path.suffix in _BUILT_IN else path.suffix in self.own_suffixes

    @property
    def own_suffixes(self) -> frozenset[str]:
        """Return the suffixes of formats that the project or installed packages have registered so far."""
        from pytest_lmeval.plugin.settings.settings import registry_of

        return frozenset(registry_of(self._config).formats) - _BUILT_IN


_PLACES = pytest.StashKey[Places]()


def places(config: pytest.Config) -> Places:
    """Return this run's ``Places``, created on first use."""
    if _PLACES not in config.stash:
        config.stash[_PLACES] = Places(config)
    return config.stash[_PLACES]


def locate(path: Path, parent: pytest.Collector) -> Path | None:
    """Return the task root of ``path``, or None if the file must not be collected."""
    where, session = places(parent.config), parent.session
    if path in where.named_files and not session.isinitpath(path):
        from pytest_lmeval.plugin.private.items import keep_named

        keep_named(session, path)
    return where.root_of(path, is_named=session.isinitpath(path))


def file_node(kind: type[_File], parent: pytest.Collector, path: Path) -> _File:
    """Return a collector for the file at ``path``, with a printable node id and name."""
    node: _File = kind.from_parent(parent, path=path)
    shown = node_path(node.nodeid)
    if shown == node.nodeid:
        return node
    renamed: _File = kind.from_parent(parent, path=path, nodeid=shown, name=node_path(node.name))
    return renamed


def remarks_on_named(config: pytest.Config) -> list[str]:
    """Return remarks that may explain why pytest cannot use paths on the command line."""
    from pytest_lmeval.formats.files import no_task_suffix
    from pytest_lmeval.plugin.settings.settings import registry_of

    registry = registry_of(config)
    files = sorted(places(config).named_files)
    remarks = [
        f"{path.name}: {no_task_suffix(path, registry)}"
        for path in files
        if path.suffix not in registry.formats and path.suffix != ".py"
    ]
    items = [argument for argument in config.args if "::" in argument]
    here = config.invocation_params.dir
    other = [(argument, argument.replace("\\", "/")) for argument in config.args if "\\" in argument]
    remarks += [
        f"did you mean {meant}? a backslash does not separate folders here"
        for argument, meant in other
        if not (here / argument.partition("::")[0]).exists() and (here / meant.partition("::")[0]).exists()
    ]
    return remarks + [f"pytest --collect-only -q {each.partition('::')[0]} lists what is there" for each in items]


def why_nothing(config: pytest.Config) -> str:
    """Return why a run that collected no tests found no tasks, or ""."""
    from pytest_lmeval.formats.files import has_tasks

    where = places(config)
    arguments = [Path(os.path.abspath(config.invocation_params.dir / each.partition("::")[0])) for each in config.args]
    folders = [path for path in where.task_paths if any(path.is_relative_to(each) for each in arguments)]
    shown = ", ".join(os.path.relpath(path, config.invocation_params.dir) for path in folders)
    found = [path for path in folders if path.is_dir() and has_tasks(path)]
    if where.has_adapter and folders and not found:
        fits = "task files are *.jsonl, *.yaml and task_*.py (ini lm_task_paths: the folders)"
        return f"no task file in {shown}: {fits}{_on_data(folders, config.invocation_params.dir)}"
    if found and not where.implicit:
        return (
            f"the tasks in {shown} were not collected because no model is named: pytest {shown} --lm-adapter=SPEC, "
            "or lm_adapter in the ini file"
        )
    return ""


def _on_data(folders: Sequence[Path], here: Path) -> str:
    """Return a hint on how to convert the first data file in the folders to a task, or ""."""
    data = sorted(path for folder in folders for path in folder.glob("*") if path.suffix in _DATA)
    if not data:
        return ""
    first = os.path.relpath(data[0], here)
    return f"; {first} is data: lmeval init --from {shlex.quote(first)} makes a task of it"


def is_plain_python(path: Path) -> bool:
    """Return True for a Python file whose name rules out tasks; the plugin checks every file in a project."""
    return path.suffix == ".py" and not path.name.startswith("task_")


def is_example(item: object) -> bool:
    """Return True for one of this plugin's items; other plugins' items may have an ``example``, too."""
    return getattr(item, "attach_result", None) is not None


def is_mine(item: object, label: str) -> bool:
    """Return True for an example that belongs to the model ``label``, or for any example in a single-model run."""
    return (not label or getattr(item, "label", "") == label) and is_example(item)


def is_record(item: object) -> bool:
    """Return True for an example in a task file, for which the plan sends requests early."""
    return hasattr(getattr(item, "parent", None), "task_name") and is_example(item)


def is_function(item: object) -> bool:
    """Return True for an example of an eval function that this plugin runs."""
    return is_example(item) and hasattr(item, "runs_beside")


def is_example_id(nodeid: str, config: pytest.Config) -> bool:
    """Return True for an example's node id; the function also works in processes without items."""
    return places(config).is_ours(nodeid)


def _named_paths(config: pytest.Config) -> list[Path]:
    # Only consider typed arguments: a bare ``pytest`` names nothing.
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return []
    # Like pytest: absolute, with symbolic links kept.
    folder = config.invocation_params.dir
    return [Path(os.path.abspath(folder / argument.partition("::")[0])) for argument in config.args]


def _may_be_a_task(path: Path) -> bool:
    # A named folder may hold other data, such as objects without any of the keys of task files. Read and report a file
    # whose first record is broken, or has any of these keys.
    if path.suffix == ".yaml":
        return True
    if path.suffix == ".py":
        # A module of this name outside the task paths may be unrelated, and loading would run it.
        return b"pytest_lmeval" in _content(path, b"pytest_lmeval")
    if path.name.endswith(".replay.jsonl"):
        return False
    from pytest_lmeval.formats import compact, spec
    from pytest_lmeval.formats.defaults import DEFAULTS

    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LOOK):
                stripped = line.strip()
                if stripped and not stripped.startswith(b"#"):
                    record = json.loads(stripped)
                    return not isinstance(record, dict) or any(
                        key in record for key in (DEFAULTS, *compact.FIELDS, *spec.REQUIRED)
                    )
    except (OSError, ValueError):
        pass
    return True


def _may_hold_evals(path: Path) -> bool:
    from pytest_lmeval.functions.source import may_hold_evals

    return may_hold_evals(_content(path, b""))


def _content(path: Path, unreadable: bytes) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return unreadable


_DATA = (".csv", ".parquet")
_BUILT_IN = frozenset({".jsonl", ".py", ".yaml"})
_LONGEST_LOOK = 1 << 20
