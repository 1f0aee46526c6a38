"""Options that choose by name, held against what the collected tasks have: what no task has is a usage error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.plugin.settings import configs_of, ini_floors

if TYPE_CHECKING:
    import pytest

    from pytest_lmeval.formats.task import LoadedFile, Task


class Wanted:
    """What ``--lm-subject``, ``--lm-num-fewshot`` and ``--lm-config`` ask for, and what the task files so far offer."""

    def __init__(self, config: pytest.Config) -> None:
        self._subjects: list[str] = config.option.lm_subject
        self._shots: int = config.option.lm_num_fewshot or 0
        self._known: set[str] = set()
        self._keyed: dict[str, Task] = {}
        self._draws = False
        self._files = 0
        self.said: list[str] = []
        self._config = config
        # A rerun of one example has the options of a run of all: those of other tasks do nothing here.
        self.picks_items = all("::" in argument for argument in config.args)

    def look_at(self, loaded: LoadedFile) -> None:
        """Note what the tasks of a file offer; files without a task do not count."""
        if loaded.tasks or loaded.subjects:
            self._files += 1
            self._known.update(*(each.names for each in loaded.subjects.values()))
            self._keyed.update((task.key, task) for task in loaded.tasks if task.key)
            self._draws = self._draws or loaded.draws_few_shots

    def check(self) -> None:
        """Raise UsageError for a subject or a value of a parameter that no task has, and few-shots that none draws.

        Not where the command line names single items, ``picks_items``. Where it names files, a value may be meant for a
        task of another one: that is ``said`` at the end of the run.
        """
        if not self._files:
            return
        unused = self._unused_values()
        if self.picks_items or any(Path(argument).suffix for argument in self._config.args):
            self.said += unused
        elif unused:
            raise UsageError(unused[0])
        if self.picks_items:
            return
        if self._subjects and not self._known:
            raise UsageError("--lm-subject: no selected task has subjects")
        for name in self._subjects:
            if name not in self._known:
                raise UnknownName("subject in --lm-subject", name, self._known)
        if self._shots and not self._draws:
            raise UsageError(f"--lm-num-fewshot={self._shots}: no selected task draws few-shots")

    def _unused_values(self) -> list[str]:
        given = configs_of(self._config)
        if not given:
            return []
        from pytest_lmeval.formats.yaml.configs import without_task

        faults = without_task(given, self._keyed.values())
        return [f"--lm-config={self._config.option.lm_config}: {fault}" for fault in faults]

    def check_names(self, collected: Collection[str], tasks: Mapping[str, Task], metrics: Collection[str]) -> None:
        """Raise UsageError for a threshold or a floor of what does not exist, and for a floor of a task without score.

        ``collected`` are the names of all tasks of the run, ``tasks`` those of which examples were selected.
        """
        from pytest_lmeval.compare.changes import OVERALL
        from pytest_lmeval.compare.remarks import ambiguous_floor, no_score_for_floor

        option = self._config.option
        # Of the ini file's tasks a run may have only some.
        for name, _ in () if self.picks_items else option.lm_threshold:
            if name not in collected and name not in metrics:
                raise UnknownName("task or metric in --lm-threshold", name, [*collected, *metrics])
        scores = {task.key: task.has_score for task in tasks.values() if task.key}
        scores |= {name: task.has_score for name, task in tasks.items()}
        known = [*collected, *(name for name in scores if name not in collected), OVERALL]
        for name, _ in option.lm_min_score:
            if name not in known:
                raise UnknownName("task in --lm-min-score", name, known)
        limited = [(limit, limit.rpartition(".")[0]) for limit, _ in option.lm_max]
        for limit, name in limited:
            if name not in known:
                raise UnknownName(f"task in --lm-max={limit}:", name, known)
        floors = [*dict(option.lm_min_score), *ini_floors(self._config)]
        keys = {name: task.key for name, task in tasks.items()}
        if refusal := ambiguous_floor(floors, keys) or no_score_for_floor(floors, scores):
            raise UsageError(refusal)
