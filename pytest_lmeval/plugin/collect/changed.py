"""Select the evals that a change touches (``--lm-changed REF``)."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.plugin.collect.collected import collected
from pytest_lmeval.plugin.collect.locate import is_example
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.run.changed import Dependencies, git_root, touched_since


class ChangedOnly:
    """Deselects the examples in files that the change does not touch, and keeps all other tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._ref = config.option.lm_changed
        self._root = git_root(config.rootpath)
        self._dependencies = Dependencies(self._root)
        self._dependencies.watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        self._dependencies.collect(collector.path if isinstance(collector, pytest.File) else None)
        try:
            return (yield)
        finally:
            self._dependencies.collect(None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        examples: list[Any] = [item for item in items if is_example(item)]
        for item in examples:
            if path := item.task.dataset.get("path"):
                self._dependencies.add(item.path, Path.cwd() / path)
        touched = touched_since(
            self._ref,
            self._root,
            {item.path for item in examples},
            self._dependencies,
            config.getini("lm_changed_ignore"),
        )
        left_out = [] if touched.files is None else [item for item in examples if item.path not in touched.files]
        if touched.files is None:
            remark = f"--lm-changed={self._ref}: all evals run: {touched.why}"
        elif len(left_out) == len(examples):
            remark = f"no eval is touched since {self._ref} ({len(left_out)} not run)"
        else:
            remark = (
                f"--lm-changed={self._ref}: {len(examples) - len(left_out)} of {len(examples)} examples are touched"
            )
        if not examples:
            return
        tasks = collected(config)
        tasks.wanted.notes.append(remark)
        tasks.is_untouched = len(left_out) == len(examples)
        add_to_report(config, is_untouched=tasks.is_untouched)
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            gone = set(left_out)
            items[:] = [item for item in items if item not in gone]
