"""Makes what travels between workers and the controller small: of each example, and at the end.

Only hooks of pytest and xdist are used. The controller says what it needs when it sets a worker up.
"""

from __future__ import annotations

import json
import marshal
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
from pytest_lmeval.records.shards import asks_else, counted

_PACKED = "lmeval_packed"


def send_little(config: pytest.Config) -> None:
    """Have workers send no more than this process, their controller, needs."""
    config.pluginmanager.register(Unpacking(config), "lmeval-unpacking")


def pack_reports(config: pytest.Config) -> None:
    """Pack what this worker reports, if the Python of the controller is the same."""
    if worker_input(config).get(NEEDS, {}).get("python") == sys.version:
        config.pluginmanager.register(Packing(), "lmeval-packing")


def report_runs(config: pytest.Config) -> None:
    """Add to the report what only this worker knows of its runs, one for each model."""
    if COLLECTED in config.stash:
        runs = {label_of(one): one for one in configs(config)}
        facts = {label: one.stash[RUN].run.facts() for label, one in runs.items() if RUN in one.stash}
        remarks = {label: remarks_of(one) for label, one in runs.items()}
        # Files that are no tasks are the same for all models.
        add_to_report(config, facts=facts, not_tasks=config.stash[COLLECTED].not_tasks, remarks=remarks)
        began = [one.stash[RUN].began_s for one in runs.values() if RUN in one.stash]
        add_to_report(config, cpu_s=time.thread_time() - min(began) if began else 0.0)


class Unpacking:
    """The controller's side."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Say which Python unpacks, whether anybody needs all reports of an example, and its beginning and end."""
        option = self._config.option
        hooks = ("runtest_logstart", "runtest_logreport", "runtest_logfinish", "report_teststatus")
        calls_do = not is_listened_to(self._config.hook, hooks)
        # With -v a line is written when a test begins; and which tests run is known to no scheduler of xdist's own.
        is_quiet = calls_do and getattr(option, "verbose", 0) <= 0 and option.dist == "load"
        input_of_worker(node)[NEEDS] = {"python": sys.version, "calls": calls_do, "quiet": is_quiet}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> Generator[None, Any, Any]:
        packed = data.pop(_PACKED, None)
        if packed is not None:
            data.update(marshal.loads(packed))
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        if not report.__dict__.pop(ALONE, False):
            return (yield)
        hook, where = self._config.hook, {"nodeid": report.nodeid, "location": report.location}
        hook.pytest_runtest_logstart(**where)
        outcome = yield
        hook.pytest_runtest_logfinish(**where)
        return outcome


class Packing:
    """A worker's side."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        data = yield
        try:
            # execnet takes a microsecond or two for each value.
            return {_PACKED: marshal.dumps(data)}
        except ValueError:  # something of another plugin, which execnet takes or refuses
            return data


_MARK = "lmeval-contents:"
_FIRST = pytest.StashKey[tuple[str, dict[str, str]]]()
"""The name of the first worker, and the hash of each of its examples by node id."""


def send_contents(session: pytest.Session, tasks: Collected) -> None:
    """Send a hash of the contents of each item with its node id, empty for what is no example."""
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
            f"{name}: the workers' rows hold values that are no JSON ({', '.join(sorted(found))}), which were compared "
            "by their type alone"
            for name, found in sorted(kinds.items())
            if found
        ]


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def check_contents(config: pytest.Config, worker: Worker, ids: list[str]) -> None:
    """Take what a worker sent with its node ids off them.

    Raise UsageError if examples with the ids of the first worker's ask something else.
    """
    if not ids or not ids[-1].startswith(_MARK):
        return
    hashes: Sequence[str] = json.loads(ids.pop().removeprefix(_MARK))
    here, there = worker.gateway.id, {nodeid: each for nodeid, each in zip(ids, hashes, strict=True) if each}
    first, expected = config.stash.setdefault(_FIRST, (here, there))
    if others := [nodeid for nodeid, each in there.items() if expected.get(nodeid, each) != each]:
        raise pytest.UsageError(
            f"the workers collected different examples: {asks_else(first, here)}: {counted(others)}. Some might run "
            "twice and others never: make the data the same in each process (sort what comes from a set, seed what is "
            "drawn), or run without -n"
        )
