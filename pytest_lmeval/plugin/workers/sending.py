"""Shrink the messages between workers and the controller; check that all workers collected the same examples.

This module uses only hooks from pytest and xdist. The controller writes its needs into each worker's input.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from hashlib import blake2b
from typing import Any

import pytest

from pytest_lmeval.plugin.asking.turn import ALONE, NEEDS, is_listened_to
from pytest_lmeval.plugin.collect.collected import Collected, remarks_of
from pytest_lmeval.plugin.collect.locate import is_example, is_function
from pytest_lmeval.plugin.common.report import add_to_report
from pytest_lmeval.plugin.private.items import parameters_of
from pytest_lmeval.plugin.private.workers import Worker, input_of_worker, send_with_ids, worker_input
from pytest_lmeval.plugin.settings.models import COLLECTED, RUN, configs
from pytest_lmeval.plugin.settings.settings import label_of
from pytest_lmeval.records.shards import counted, differing


def report_runs(config: pytest.Config) -> None:
    """Add this worker's facts and remarks on each model's run to the worker's report."""
    if COLLECTED in config.stash:
        runs = {label_of(one): one for one in configs(config)}
        facts = {label: one.stash[RUN].run.facts() for label, one in runs.items() if RUN in one.stash}
        remarks = {label: remarks_of(one) for label, one in runs.items()}
        add_to_report(config, facts=facts, not_tasks=config.stash[COLLECTED].not_tasks, remarks=remarks)
        began = [one.stash[RUN].began_s for one in runs.values() if RUN in one.stash]
        add_to_report(config, cpu_s=time.thread_time() - min(began) if began else 0.0)
        # The page needs these bytes after the end of this worker.
        if spilled := sys.modules.get("pytest_lmeval.data.spilled"):
            add_to_report(config, media=spilled.hand_over())


class WorkerNeeds:
    """Lets workers send only the events that the controller's plugins need, and calls the hooks for omitted events."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell the worker if the controller needs only reports of the call phase, without logstart and logfinish."""
        option = self._config.option
        hooks = ("runtest_logstart", "runtest_logreport", "runtest_logfinish", "report_teststatus")
        calls_do = not is_listened_to(self._config.hook, hooks)
        # -v writes a line when a test begins, and progress with xdist's own schedulers needs every test's start.
        is_quiet = calls_do and getattr(option, "verbose", 0) <= 0 and option.dist == "load"
        input_of_worker(node)[NEEDS] = {"calls": calls_do, "quiet": is_quiet}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        if not report.__dict__.pop(ALONE, False):
            return (yield)
        hook, where = self._config.hook, {"nodeid": report.nodeid, "location": report.location}
        hook.pytest_runtest_logstart(**where)
        outcome = yield
        hook.pytest_runtest_logfinish(**where)
        return outcome


_MARK = "lmeval-contents:"
_FIRST = pytest.StashKey[tuple[str, dict[str, str]]]()
"""The first worker's name, and its examples' hashes by node id."""


def send_contents(session: pytest.Session, tasks: Collected) -> None:
    """Send a hash of each example with the node ids, because some rows' ids are only their numbers."""
    kinds: dict[str, set[str]] = {}
    as_text: dict[str, Callable[[Any], str]] = {}

    def contents(item: Any) -> str:
        if not is_function(item):
            example = item.example
            return "\0".join([example.prompt, *example.targets])
        name = item.task.name
        if name not in as_text:
            from pytest_lmeval.functions.declare import json_values

            as_text[name] = json_values(kinds.setdefault(name, set()))
        return as_text[name](parameters_of(item))

    hashes = [_hash(contents(item)) if is_example(item) else "" for item in session.items]
    if any(hashes):
        send_with_ids(session.config, _MARK + json.dumps(hashes))
    if worker_input(session.config).get("workercount", 1) > 1:
        tasks.wanted.notes += [
            f"{name}: the workers' rows hold values that are not JSON ({', '.join(sorted(found))}); only their types "
            "were compared"
            for name, found in sorted(kinds.items())
            if found
        ]


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def check_contents(config: pytest.Config, worker: Worker, ids: list[str]) -> None:
    """Remove the hashes from a worker's node ids; raise UsageError if they differ from the first worker's."""
    if not ids or not ids[-1].startswith(_MARK):
        return
    hashes: Sequence[str] = json.loads(ids.pop().removeprefix(_MARK))
    here, there = worker.gateway.id, {nodeid: each for nodeid, each in zip(ids, hashes, strict=True) if each}
    first, expected = config.stash.setdefault(_FIRST, (here, there))
    if others := [nodeid for nodeid, each in there.items() if expected.get(nodeid, each) != each]:
        raise pytest.UsageError(
            f"the workers collected different examples: {differing(first, here)}: {counted(others)}. Some might run "
            "twice and others never: make the data the same in each process (sort sets, seed random draws), or run "
            "without -n"
        )
