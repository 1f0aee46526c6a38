"""Adapters of a user's own that no request could be answered by are refused before any is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_lmeval.adapters.facts import check_adapter
from pytest_lmeval.errors import UsageError
from pytest_lmeval.registry import Registry
from tests.conftest import Project
from tests.tables import each_row


class AsyncGenerate:
    async def generate(self, prompts: Any) -> Any:
        return prompts


class NoArgument:
    async def complete(self) -> str:
        return "x"


class TwoArguments:
    def generate(self, prompts: Any, temperature: float) -> Any:
        return prompts


class Yields:
    def generate(self, prompts: Any) -> Iterator[Any]:
        yield from prompts


@each_row(
    ("made", "wanted"),
    [
        (AsyncGenerate, "generate is async, and is not awaited: write `async def complete(self, request)`"),
        (NoArgument, "complete cannot be called: too many positional arguments; expected complete(self, request)"),
        (TwoArguments, "generate cannot be called: missing a required argument: 'temperature'; expected generate(self"),
        (Yields, "generate is a generator: return the answer"),
    ],
)
def test_an_adapter_that_cannot_be_called_is_refused(made: Any, wanted: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"adapter 'own': {wanted}")):
        check_adapter(made(), "own")


def test_a_metric_that_cannot_be_called_is_refused() -> None:
    wanted = r"the metric 'm' cannot be called: too many positional arguments; expected a function \(pred"
    with pytest.raises(UsageError, match=wanted):
        Registry().add_metric("m", lambda prediction: 1.0)


SYNC = "class Sync:\n    def complete(self, request):\n        return 'x'\n\ndef plain(prompt):\n    return 'x'\n"


def test_a_complete_that_is_not_async_ends_the_run_and_says_its_reason_once(project: Project) -> None:
    project.write("own.py", SYNC)
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "x") for number in range(40)])
    result = project.run_pytest("--lm-adapter=own:Sync")
    assert 3 == result.ret
    assert 2 == project.board()["counts"]["errors"]
    assert 1 == result.stdout.str().count("expected `async def complete(self, request)`")
    result.stdout.fnmatch_lines(["  no result: 35 more examples", "*Interrupted: stopped: the reason is under the*"])


def test_a_function_in_place_of_an_adapter_is_a_usage_error(project: Project) -> None:
    project.write("own.py", SYNC)
    project.task("tasks/t.jsonl", project.record("a", "x"))
    result = project.run_pytest("--lm-adapter=own:plain")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*plain is called with the options of --lm-adapter-arg, and returns an adapter*"])
