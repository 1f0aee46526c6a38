"""Twelve planted regressions fail a run or are named beside its verdict; twelve harmless edits fail none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.applications.changes import HARMLESS, PLANTED, Change
from tests.applications.conftest import APPS, BASELINE, Application

Made = Callable[[str], Application]
# Each run takes two seconds on an idle machine.
QUICK = ("a rule taken out of the prompt", "another model")


def named(names: Mapping[str, Any], *quick: str) -> list[Any]:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def compared(app: Application, *changes: Change) -> tuple[pytest.RunResult, dict[str, Any]]:
    """Make the changes and run the evals against the baseline; return the result and the verdict."""
    for change in changes:
        for before, after in change.edits.items():
            app.project.edit(change.file, before, after)
    result = app.run(*BASELINE)
    gate: dict[str, Any] = app.project.board()["gate"]
    return result, gate


@pytest.mark.parametrize("name", named(PLANTED, *QUICK))
def test_a_planted_regression_fails_the_run_with_its_number(application: Made, name: str) -> None:
    change = PLANTED[name]
    result, gate = compared(application(change.app), change)
    assert (change.verdict, 1) == (gate["verdict"], result.ret), result.stdout.str()
    missing = [words for words in change.words if not any(each.startswith(words) for each in gate["reasons"])]
    assert [] == missing, gate["reasons"]
    assert all(words in result.stdout.str() for words in change.words)


@pytest.mark.parametrize("name", named(HARMLESS))
def test_a_harmless_edit_fails_nothing_and_is_named_if_amounts_change(application: Made, name: str) -> None:
    change = HARMLESS[name]
    result, gate = compared(application(change.app), change)
    is_harmless(result, gate, change.words)


@pytest.mark.parametrize("app", named(dict.fromkeys(APPS), "desk"))
def test_harmless_edits_together_are_not_named(application: Made, app: str) -> None:
    together = [change for change in HARMLESS.values() if change.app == app and not change.words]
    is_harmless(*compared(application(app), *together), ())


def is_harmless(result: pytest.RunResult, gate: Mapping[str, Any], words: tuple[str, ...]) -> None:
    assert ("pass", 0, []) == (gate["verdict"], result.ret, gate["warnings"]), result.stdout.str()
    assert words == tuple(each for each in gate["reasons"] if " now, in the baseline " in each)
    assert all(each in result.stdout.str() for each in words)


def test_there_are_twelve_of_each() -> None:
    assert (12, 12) == (len(PLANTED), len(HARMLESS))
    assert {*APPS} == {each.app for each in PLANTED.values()} == {each.app for each in HARMLESS.values()}
