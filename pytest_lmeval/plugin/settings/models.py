"""What a run keeps on pytest's config, and the config of each of several models: that of a run of it alone."""

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
"""What this process has collected; not there where it met no task file."""
RUN: pytest.StashKey[RunState] = pytest.StashKey()
"""This process's part of the run, of each model its own; not there where it has none."""
SPARES: pytest.StashKey[Spares] = pytest.StashKey()
"""The helper processes that were begun ahead; not there where none was."""
ENVIRONMENT = pytest.StashKey[Callable[[str], str | None]]()
"""What reads an environment variable as it was when the options were read."""
OWN: set[Any] = {RUN}
"""The keys of the stash of which each model's run has a value of its own."""
_ENDING = re.compile(r"\[([A-Za-z0-9_.-]+)\]$")


def keep_environment(config: pytest.Config) -> None:
    """Keep the environment variables as they are now: what tests and their imports change is theirs alone."""
    # As a method of the dict: tracebacks that show variables would show a dict with all its secrets.
    read: Callable[[str], str | None] = dict(os.environ).get
    config.stash[ENVIRONMENT] = read


class ByModel(dict[str, Any]):
    """What a fixture provides for each of several models, by label."""


def of_model(value: Any, label: str) -> Any:
    """Return what a fixture's ``value`` is for one model: its own part, or the value that all models have."""
    return value[label] if isinstance(value, ByModel) else value


def name_models(config: pytest.Config) -> None:
    """Make of what ``--lm-adapter`` was given one spec, or the labels and specs of several models.

    Raise pytest.UsageError for equal labels, and for options of a label that no model has.
    """
    option = config.option
    given = option.lm_adapter
    if given is None or isinstance(given, str):  # in a worker: the controller has done it
        return
    models = [_labelled(each) for each in given]
    labels = [label for label, _ in models]
    if len(models) > 1:
        _check_labels(labels)
    for key, _ in option.lm_adapter_arg:
        label = key.rpartition(":")[0]
        if label and label not in labels:
            raise pytest.UsageError(f"--lm-adapter-arg={key}=...: no model is called {label!r} ({', '.join(labels)})")
    option.lm_adapter = models[0][1]
    option.lm_models = models if len(models) > 1 else []
    if len(models) == 1:
        option.lm_adapter_arg = _own_options(option.lm_adapter_arg, labels[0])


def _labelled(given: str) -> tuple[str, str]:
    """Return label and spec of ``[LABEL=]SPEC``."""
    match = _LABELLED.fullmatch(given)
    if match is not None:
        return match[1], match[2]
    label, equals, _ = given.partition("=")
    if equals and ":" not in label:
        raise pytest.UsageError(f"--lm-adapter={given}: a label has letters, digits and _.- only, got {label!r}")
    return item_name(given), given


def _check_labels(labels: Sequence[str]) -> None:
    """Raise pytest.UsageError unless every label is the name of a folder that is its model's alone."""
    from pytest_lmeval.file_names import LONGEST, FileNames
    from pytest_lmeval.records.boardfile import PREVIOUS, REPORTS

    reserved = FileNames((SELECTION, PREVIOUS, "ledger.jsonl", *REPORTS))
    folders = FileNames()
    fix = "give each a label of its own: --lm-adapter=LABEL=SPEC"
    for label in labels:
        if first := folders.take(label):
            also = "" if first == label else f" and {label!r}: they differ in case only"
            raise pytest.UsageError(f"--lm-adapter: two models are called {first!r}{also}; {fix}")
        if not label.strip(".") or len(label) > LONGEST or reserved.take(label):
            raise pytest.UsageError(
                f"--lm-adapter: no model can be called {label!r}, the folder of its reports in the report dir; {fix}"
            )


def labels_of(config: pytest.Config) -> list[str]:
    """Return the labels of the models; none where the run has but one."""
    return [*dict(getattr(config.option, "lm_models", ()))]


def label_in(nodeid: str, config: pytest.Config) -> str:
    """Return the label in a node id; empty in a run of one model."""
    found = _ENDING.search(nodeid) if labels_of(config) else None
    return found[1] if found is not None and found[1] in labels_of(config) else ""


def by_label(nodeids: Sequence[str], config: pytest.Config) -> dict[str, list[str]]:
    """Return the node ids of the examples of each of several models by its label."""
    found: dict[str, list[str]] = {label: [] for label in labels_of(config)}
    for nodeid in nodeids:
        # As label_in does, the labels looked up once.
        label = _ENDING.search(nodeid)
        if label is not None and label[1] in found:
            found[label[1]].append(nodeid)
    return found


def configs(config: pytest.Config) -> list[pytest.Config]:
    """Return the config of each model's own run; ``config`` itself in a run of one model."""
    labels = labels_of(config)
    return [config_of(config, label) for label in labels] if labels else [config]


def config_of(config: pytest.Config, label: str) -> pytest.Config:
    """Return the configuration of the run of one model, made when it is first asked for; that of all for no label."""
    if not label:
        return config
    views = config.stash.setdefault(_VIEWS, {})
    if label not in views:
        views[label] = _ModelConfig(config, label)
    return cast(pytest.Config, views[label])


def whole(config: pytest.Config) -> pytest.Config:
    """Return the configuration of the run of all models, of which ``config`` may be one's own."""
    return cast(pytest.Config, getattr(config, "lm_whole", config))


class _ModelConfig:
    """A config in which the options about the model are those of one of several; all else is the run's."""

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
        """Compare with the model's own baseline; one without any, beside others that have theirs, is not gated."""
        from pytest_lmeval.records.folders import own_baseline

        option, here = self.option, config.invocation_params.dir
        given = str(option.lm_baseline)
        # One that is to be written need not be there.
        others = () if option.lm_update_baseline else labels_of(config)
        option.lm_baseline = own_baseline(here, given, label, others)
        if not option.lm_baseline:
            self.lm_without_baseline = f"no baseline of {label} in {given}: compared with nothing, and not gated by one"
            option.lm_gate = option.lm_gate if option.lm_gate not in (None, "baseline") else "tasks"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lm_whole, name)


class _Stash:
    """The stash of a run of several models, but for what each has of its own."""

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
"""The folder, in the report dir, of a run of some examples that leaves the board of a whole run where it is."""


def report_dir(config: pytest.Config) -> Path:
    """Return the folder that ``--lm-report-dir`` names; ``reports`` below the project's root where it is not given."""
    given: str | None = config.option.lm_report_dir
    here = config.invocation_params.dir
    if given is not None:
        return here / given
    # An ini file in a folder of tasks makes that the root of the run: no place for reports.
    return (config.rootpath if here.is_relative_to(config.rootpath) else here) / "reports"


def shown_report_dir(config: pytest.Config) -> str:
    """Return the report dir as people read it: as it was given, or from the folder in which the command was."""
    if config.option.lm_report_dir is not None:
        return str(config.option.lm_report_dir)
    folder, here = report_dir(config), config.invocation_params.dir
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def rerun_facts(config: pytest.Config) -> dict[str, Any]:
    """Return the part of the manifest that the command to run an example again is made of."""
    from pytest_lmeval.redaction import redact_arguments

    return {
        "argv": redact_arguments(["pytest", *map(str, config.invocation_params.args)]),
        "rootdir": Path(os.path.relpath(config.rootpath, config.invocation_params.dir)).as_posix(),
        "report_dir": shown_report_dir(config),
    }


def picked_by(config: pytest.Config) -> str:
    """Return the first thing that picks, as the command line has it; "" where nothing does."""
    option = config.option
    chosen = {
        "-k": option.keyword,
        "-m": option.markexpr,
        "--deselect": option.deselect,
        "--lf or --sw": any(config.getoption(each, False) for each in ("--lf", "--sw", "--sw-skip")),
        "a node id": any("::" in str(argument) for argument in config.args),
    }
    return next((name for name, value in chosen.items() if value), "")


def selection_of(option: Any, infos: Sequence[TaskInfo]) -> dict[str, Any]:
    """Return which options left which tasks how many of their examples; empty if nothing was left out."""
    if all(info.selected == info.available for info in infos) and option.lm_shard is None:
        return {}
    named = {
        "limit": option.lm_limit,
        "sample": option.lm_sample,
        "seed": None if option.lm_sample is None else option.lm_seed,
        "keyword": option.keyword or None,
        "markexpr": option.markexpr or None,
        "deselect": option.deselect or None,
        "subjects": option.lm_subject or None,
        "without_subjects": sorted(info.name for info in infos if info.whole) or None,
        "shard": "{}/{}".format(*option.lm_shard) if option.lm_shard else None,
    }
    counts = {info.name: {"available": info.available, "selected": info.selected} for info in infos}
    return {**{name: value for name, value in named.items() if value is not None}, "tasks": counts}


def folder_of_run(config: pytest.Config, examples: int) -> Path:
    """Return where a run of so many ``examples`` writes.

    One whose command picks examples leaves the board of a run of more of them alone.
    """
    folder = report_dir(config)
    return folder / SELECTION if picked_by(config) and examples < _whole(folder) else folder


def held_ledger(config: pytest.Config, examples: int) -> Path:
    """Return the ledger whose answers a run of so many ``examples`` uses again: its own, or the whole run's."""
    own = folder_of_run(config, examples) / "ledger.jsonl"
    return own if own.exists() else report_dir(config) / "ledger.jsonl"


def _whole(folder: Path) -> int:
    """Return how many examples the board in a folder is of, or each of several models that are compared there.

    0 where that is of a selection, or does not exist.
    """
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
