"""Stash keys, per-model configs, and the folders that a run writes to."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_lmeval.text import item_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_lmeval.asking.hosting import Spares
    from pytest_lmeval.leaderboard.rows import TaskInfo
    from pytest_lmeval.plugin.asking.state import RunState
    from pytest_lmeval.plugin.collect.collected import Collected

_LABELLED = re.compile(r"([A-Za-z0-9_.-]+)=(.*)", re.DOTALL)
COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()
"""This process's collected tasks; absent before the first task file."""
RUN: pytest.StashKey[RunState] = pytest.StashKey()
"""This process's part of each model's run; absent if the process runs no examples."""
SPARES: pytest.StashKey[Spares] = pytest.StashKey()
"""The helper processes that were started early, if any."""
ENVIRONMENT = pytest.StashKey[Callable[[str], str | None]]()
"""Returns the value that an environment variable had when the options were parsed."""
OWN: set[Any] = {RUN}
"""Stash keys with a separate value for each model."""
_ENDING = re.compile(r"\[([A-Za-z0-9_.-]+)\]$")


def keep_environment(config: pytest.Config) -> None:
    """Save the current environment variables, before tests and their imports change any."""
    # Store the bound method, not the dict: a traceback that shows variables would reveal the secrets.
    read: Callable[[str], str | None] = dict(os.environ).get
    config.stash[ENVIRONMENT] = read


class ByModel(dict[str, Any]):
    """Holds a fixture's values for several models, by label."""


def of_model(value: Any, label: str) -> Any:
    """Return one model's part of a fixture's ``value``, or the value that all models share."""
    return value[label] if isinstance(value, ByModel) else value


def name_models(config: pytest.Config) -> None:
    """Parse ``--lm-adapter`` as one spec, or as labels and specs of several models.

    Raise pytest.UsageError for a duplicate label, or for options with an unknown label.
    """
    option = config.option
    if isinstance(option.lm_adapter, str):  # in a worker: the controller has parsed it
        return
    models = [_labelled(each) for each in option.lm_adapter]
    labels = [label for label, _ in models]
    if len(models) > 1:
        _check_labels(labels)
    for key, _ in option.lm_adapter_arg:
        label = key.rpartition(":")[0]
        if label and label not in labels:
            raise pytest.UsageError(
                f"--lm-adapter-arg={key}=...: no model has the label {label!r}; labels: {', '.join(labels)}"
            )
    option.lm_adapter = models[0][1]
    option.lm_models = models if len(models) > 1 else []
    if len(models) == 1:
        option.lm_adapter_arg = _own_options(option.lm_adapter_arg, labels[0])


def _labelled(given: str) -> tuple[str, str]:
    match = _LABELLED.fullmatch(given)
    if match is not None:
        return match[1], match[2]
    label, equals, _ = given.partition("=")
    if equals and ":" not in label:
        raise pytest.UsageError(
            f"--lm-adapter={given}: a label may contain only letters, digits, _, . and -, got {label!r}"
        )
    return item_name(given), given


def _check_labels(labels: Sequence[str]) -> None:
    """Raise pytest.UsageError for a label that cannot be used as a folder name."""
    from pytest_lmeval.file_names import LONGEST, FileNames
    from pytest_lmeval.records.boardfile import PREVIOUS, REPORTS

    reserved = FileNames((SELECTION, PREVIOUS, "ledger.jsonl", *REPORTS))
    folders = FileNames()
    fix = "give each model its own label: --lm-adapter=LABEL=SPEC"
    for label in labels:
        if first := folders.take(label):
            also = "" if first == label else f" or {label!r}, which differ only in case"
            raise pytest.UsageError(f"--lm-adapter: two models have the label {first!r}{also}; {fix}")
        if not label.strip(".") or len(label) > LONGEST or reserved.take(label):
            raise pytest.UsageError(
                f"--lm-adapter: {label!r} cannot be a label, because reports need a folder of this name; {fix}"
            )


def labels_of(config: pytest.Config) -> list[str]:
    """Return the labels of several models, or an empty list in a single-model run."""
    return [*dict(getattr(config.option, "lm_models", ()))]


def label_in(nodeid: str, config: pytest.Config) -> str:
    """Return the label in a node id, or "" in a single-model run."""
    labels = labels_of(config)
    found = _ENDING.search(nodeid) if labels else None
    return found[1] if found is not None and found[1] in labels else ""


def by_label(nodeids: Sequence[str], config: pytest.Config) -> dict[str, list[str]]:
    """Group node ids by model label; in a single-model run, the label is ""."""
    if not labels_of(config):
        return {"": list(nodeids)}
    found: dict[str, list[str]] = {label: [] for label in labels_of(config)}
    for nodeid in nodeids:
        if label := label_in(nodeid, config):
            found[label].append(nodeid)
    return found


def configs(config: pytest.Config) -> list[pytest.Config]:
    """Return the config of each model's run, or only ``config`` itself in a single-model run."""
    labels = labels_of(config)
    return [config_of(config, label) for label in labels] if labels else [config]


def config_of(config: pytest.Config, label: str) -> pytest.Config:
    """Return one model's config, created on first use, or the run's config for an empty label."""
    if not label:
        return config
    views = config.stash.setdefault(_VIEWS, {})
    if label not in views:
        views[label] = _ModelConfig(config, label)
    return cast(pytest.Config, views[label])


def whole(config: pytest.Config) -> pytest.Config:
    """Return the config of the run that includes all models."""
    return cast(pytest.Config, getattr(config, "lm_whole", config))


class _ModelConfig:
    """A config with one model's options; it shares everything else with the run."""

    def __init__(self, config: pytest.Config, label: str) -> None:
        self.lm_whole = config
        self.lm_label = label
        self.lm_models_named = len(labels_of(config))
        self.stash = _Stash(config.stash)
        option = self.option = copy.copy(config.option)
        option.lm_adapter = dict(option.lm_models)[label]
        option.lm_adapter_arg = _own_options(option.lm_adapter_arg, label)
        option.lm_models = []
        if option.lm_baseline:
            self._take_baseline(config, label)
        option.lm_report_dir = str(report_dir(config) / label)

    def _take_baseline(self, config: pytest.Config, label: str) -> None:
        """Compare with this model's baseline; if only other models have a baseline, do not gate this model."""
        from pytest_lmeval.records.folders import own_baseline

        option, here = self.option, config.invocation_params.dir
        given = str(option.lm_baseline)
        # A baseline to be written need not exist.
        others = () if option.lm_update_baseline else labels_of(config)
        option.lm_baseline = own_baseline(here, given, label, others)
        if not option.lm_baseline:
            self.lm_without_baseline = (
                f"no baseline for {label} in {given}: no comparison, and no baseline gates this model"
            )
            option.lm_gate = option.lm_gate if option.lm_gate not in (None, "baseline") else "tasks"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lm_whole, name)


class _Stash:
    """A multi-model run's stash, with separate values for one model."""

    def __init__(self, shared: pytest.Stash) -> None:
        self._shared = shared
        self._own = pytest.Stash()

    def _stash(self, key: Any) -> pytest.Stash:
        return self._own if key in OWN else self._shared

    def __contains__(self, key: Any) -> bool:
        return key in self._stash(key)

    def __getitem__(self, key: Any) -> Any:
        return self._stash(key)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._stash(key)[key] = value

    def setdefault(self, key: Any, default: Any) -> Any:
        return self._stash(key).setdefault(key, default)

    def get(self, key: Any, default: Any) -> Any:
        return self._stash(key).get(key, default)


def _own_options(given: Sequence[tuple[str, Any]], label: str) -> list[tuple[str, Any]]:
    parts = [(key.rpartition(":"), value) for key, value in given]
    return [(key, value) for (of, _, key), value in parts if of in ("", label)]


_VIEWS = pytest.StashKey[dict[str, Any]]()


SELECTION = "selection"
"""The report dir's subfolder for runs of selected examples, to preserve the whole run's board."""


def report_dir(config: pytest.Config) -> Path:
    """Return the folder set by ``--lm-report-dir``, which is by default ``reports`` in the project's root."""
    given: str | None = config.option.lm_report_dir
    here = config.invocation_params.dir
    if given is not None:
        return here / given
    # An ini file in a task folder makes that folder the root, but reports do not belong there.
    return (config.rootpath if here.is_relative_to(config.rootpath) else here) / "reports"


def shown_report_dir(config: pytest.Config) -> str:
    """Return the report dir as given by the user, or else relative to the working folder."""
    if config.option.lm_report_dir is not None:
        return str(config.option.lm_report_dir)
    folder, here = report_dir(config), config.invocation_params.dir
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def rerun_facts(config: pytest.Config) -> dict[str, Any]:
    """Return the part of the manifest that determines the rerun command."""
    from pytest_lmeval.redaction import redact_arguments

    return {
        "argv": redact_arguments(["pytest", *map(str, config.invocation_params.args)]),
        "rootdir": Path(os.path.relpath(config.rootpath, config.invocation_params.dir)).as_posix(),
        "report_dir": shown_report_dir(config),
    }


def picked_by(config: pytest.Config) -> str:
    """Return the name of the first option that picks examples, or "" if no option does."""
    option = config.option
    chosen = {
        "-k": option.keyword,
        "-m": option.markexpr,
        "--deselect": option.deselect,
        "--lm-changed": option.lm_changed,
        "--lf or --sw": any(config.getoption(each, False) for each in ("--lf", "--sw", "--sw-skip")),
        "a node id": any("::" in str(argument) for argument in config.args),
    }
    return next((name for name, value in chosen.items() if value), "")


def selection_of(option: Any, infos: Sequence[TaskInfo]) -> dict[str, Any]:
    """Return the options that deselected examples, and each task's counts, or {} if all examples are selected."""
    if all(info.selected == info.available for info in infos) and option.lm_shard is None:
        return {}
    named = {
        "limit": option.lm_limit,
        "sample": option.lm_sample,
        "seed": None if option.lm_sample is None else option.lm_seed,
        "keyword": option.keyword or None,
        "markexpr": option.markexpr or None,
        "deselect": option.deselect or None,
        "changed": option.lm_changed,
        "subjects": option.lm_subject or None,
        "without_subjects": sorted(info.name for info in infos if info.whole) or None,
        "shard": "{}/{}".format(*option.lm_shard) if option.lm_shard else None,
    }
    counts = {info.name: {"available": info.available, "selected": info.selected} for info in infos}
    return {**{name: value for name, value in named.items() if value is not None}, "tasks": counts}


def folder_of_run(config: pytest.Config, examples: int) -> Path:
    """Return the folder for a run of ``examples`` examples; selections must not replace a larger run's board."""
    folder = report_dir(config)
    return folder / SELECTION if picked_by(config) and examples < _whole(folder) else folder


def held_ledger(config: pytest.Config, examples: int) -> Path:
    """Return the ledger, of the selection or the whole run, whose answers a run of ``examples`` examples reuses."""
    own = folder_of_run(config, examples) / "ledger.jsonl"
    return own if own.exists() else report_dir(config) / "ledger.jsonl"


def _whole(folder: Path) -> int:
    """Return the number of examples on a folder's board (for several models, the largest), or 0 without a board."""
    models = _read(folder / "comparison.json").get("models")
    boards = [_read(folder / "leaderboard.json"), *(models if isinstance(models, list) else ())]
    return max(map(_collected, boards))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _collected(board: Any) -> int:
    counts = board.get("counts") if isinstance(board, dict) else None
    count = counts.get("collected") if isinstance(counts, dict) else None
    return count if isinstance(count, int) and not board.get("selection") else 0
