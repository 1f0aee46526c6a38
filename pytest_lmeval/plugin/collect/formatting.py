"""For ``--lm-check-formatting``, collect one item per task and formatter; an item fails if its prompt has changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.collect.collected import collected
from pytest_lmeval.plugin.collect.locate import file_node
from pytest_lmeval.plugin.private.workers import worker_input
from pytest_lmeval.task import Task
from pytest_lmeval.text import item_name, printable, unique

_TAIL = 1200


def collect_formatting_file(path: Path, root: Path, parent: pytest.Collector) -> FormattingFile | None:
    """Return a collector for a task file's formatting items, or None if no format accepts the file."""
    from pytest_lmeval.formats.files import task_name

    if not collected(parent.config).may_read(path, is_named=parent.session.isinitpath(path)):
        return None
    file: FormattingFile = file_node(FormattingFile, parent, path)
    file.task_name = task_name(path, root)
    file.root = root
    return file


class FormattingFile(pytest.File):
    """A task file whose prompts are checked against recorded hashes."""

    task_name: str
    root: Path

    def collect(self) -> Iterable[pytest.Item]:
        """Return an item per task and formatter; with ``--lm-check-formatting=update``, record the hashes first."""
        try:
            return self._items()
        except LmevalError as error:
            raise self.CollectError(str(error)) from None

    def _items(self) -> list[pytest.Item]:
        from pytest_lmeval.formats.formatting import FILE, formatting_hashes, read_hashes, update_hashes

        is_named = self.session.isinitpath(self.path)
        loaded = collected(self.config).load(self.path, self.task_name, is_named=is_named)
        if loaded.errors and not (self.config.option.lm_allow_bad_tasks and loaded.tasks):
            raise self.CollectError("\n".join(error.at(self.nodeid) for error in loaded.errors))
        hashes, path = formatting_hashes(loaded.tasks), self.root / FILE
        if self._records():
            update_hashes(path, hashes)
        recorded, names = read_hashes(path), set[str]()
        return [
            FormattingItem.from_parent(
                self,
                name=unique(item_name(f"{task.name}.{formatter}"), names),
                task=task,
                formatter=formatter,
                recorded=recorded.get(task.name, {}).get(formatter),
                found=found,
            )
            for task in loaded.tasks
            for formatter, found in hashes[task.name].items()
        ]

    def _records(self) -> bool:
        option = self.config.option
        # All workers collect all files, but only one writes.
        writes = worker_input(self.config).get("workerid", "gw0") == "gw0"
        return option.lm_check_formatting == "update" and not option.collectonly and writes


class FormattingItem(pytest.Item):
    """Checks one task's first prompt in one format."""

    def __init__(self, *, task: Task, formatter: str, recorded: str | None, found: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.task = task
        self.formatter = formatter
        self.recorded = recorded
        self.found = found
        self.extra_keyword_matches.update({task.name, formatter})

    def runtest(self) -> None:
        """Fail if the prompt's hash differs from the recorded hash."""
        # With =update one worker may still be writing.
        if self.config.option.lm_check_formatting != "update" and self.found != self.recorded:
            raise _Changed(self._explained())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> Any:
        """Return only the explanation."""
        return str(excinfo.value) if isinstance(excinfo.value, _Changed) else super().repr_failure(excinfo, *args)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the task file, the line of the task's first example, and the item's name."""
        return self.path, max(0, self.task.examples[0].line - 1), self.name

    def _explained(self) -> str:
        from pytest_lmeval.formats.formatting import formatted

        what = "is not recorded yet" if self.recorded is None else f"was {self.recorded[:12]}, is {self.found[:12]}"
        prompt = printable(formatted(self.task, self.formatter)[-_TAIL:])
        return "\n".join(
            [
                f"{printable(self.task.name)}: the first prompt in the format {self.formatter} {what}",
                *[f"    | {line}" for line in prompt.split("\n")],
                "  accept it with --lm-check-formatting=update",
            ]
        )


class _Changed(Exception):
    """An exception that fails an item; reports show only the exception's text."""
