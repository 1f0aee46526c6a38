"""Options that choose by name, held against what the collected tasks have: what no task has is a usage error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.errors import UnknownName, UsageError

if TYPE_CHECKING:
    import pytest

    from pytest_lmeval.formats.task import LoadedFile

__all__ = ["Wanted"]


class Wanted:
    """What ``--lm-subject`` and ``--lm-num-fewshot`` ask for, and what the task files so far offer."""

    def __init__(self, config: pytest.Config) -> None:
        self._subjects: list[str] = config.option.lm_subject
        self._shots: int = config.option.lm_num_fewshot or 0
        self._known: set[str] = set()
        self._draws = False
        self._files = 0
        # A rerun of one example has the options of a run of all: those of other tasks do nothing here.
        self.picks_items = all("::" in argument for argument in config.args)

    def look_at(self, loaded: LoadedFile) -> None:
        """Note what the tasks of a file offer; files without a task do not count."""
        if loaded.tasks or loaded.subjects:
            self._files += 1
            self._known.update(*(each.names for each in loaded.subjects.values()))
            self._draws = self._draws or loaded.draws_few_shots

    def check(self) -> None:
        """Raise UsageError for a subject that no task has, and for few-shots that no task draws.

        Not where the command line names single items, ``picks_items``.
        """
        if not self._files or self.picks_items:
            return
        if self._subjects and not self._known:
            raise UsageError("--lm-subject: no selected task has subjects")
        for name in self._subjects:
            if name not in self._known:
                raise UnknownName("subject in --lm-subject", name, self._known)
        if self._shots and not self._draws:
            raise UsageError(f"--lm-num-fewshot={self._shots}: no selected task draws few-shots")
