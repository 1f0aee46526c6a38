"""Who said what on the page, and what judged it and why: of simulated users, turns, scorers, checks and judges."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import NEEDLESS, MadeOnce, RunModule
from tests.report.html.browser import Browser
from tests.sources import PROJECTS

_MODELS = ("--lm-adapter=model:Model", "--lm-user=model:User", "--lm-judge=model:Judge")
_PLUGINS = [f"-pno:{name}" for name in NEEDLESS]
_BEGUN = ["Where is it?", "What is the number?"]
_REASON = "It says when, and nothing else."


def write_page(run_module: RunModule, folder: Path) -> None:
    """Run the project in ``folder``, which then has its page in ``reports``."""
    shutil.copytree(PROJECTS / "talks", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    run_module(folder, "pytest", "tasks", "tests", "-q", "--lm-gate=none", *_PLUGINS, *_MODELS)


@pytest.fixture(scope="module")
def page(made_once: MadeOnce, run_module: RunModule) -> Path:
    return made_once("talks", partial(write_page, run_module)) / "reports" / "report.html"


def _facts(browser: Browser) -> dict[str, str]:
    return dict(zip(browser.texts(".detail dt"), browser.texts(".detail dd"), strict=True))


def test_the_talk_of_a_simulated_user_is_a_transcript_with_its_end_and_the_judges_reason(
    browser: Browser, page: Path
) -> None:
    browser.open(page, "#/task/told?id=silent")
    assert ["User", "Model", "User", "Model"] == browser.texts(".message h4")
    assert [*_BEGUN, "You know it.", _BEGUN[1]] == browser.texts(".message pre")
    assert "The user had not said that it was done." in browser.texts(".detail > .note")
    assert f"0 decides {_REASON}" == _facts(browser)["kind"]
    # A rubric is recorded by its beginning: it ends between two letters.
    assert browser.text(".detail li:not(.timeline li)").endswith(f"and promises nothing...': {_REASON}")
    # In the list: what it was answered last, and why that is not enough.
    said = ("A17: in three days.", _BEGUN[1])
    assert [text for each in said for text in (each, _REASON)] == browser.texts(".examples td .gist")
    browser.open(page, "#/all?q=You+know+it")
    assert ["1", "silent"] == browser.texts(".examples a")


@pytest.mark.again
def test_a_talk_that_is_no_output_is_read_from_the_users_steps(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/silent?id=knows")
    assert [*_BEGUN, "A17"] == browser.texts(".message pre")[:3]
    assert "Conversation with the simulated user" in browser.texts(".detail h3")
    assert "A17: in three days." in browser.texts("h3 + pre")
    browser.js("document.querySelectorAll('.step summary')[2].click()")
    browser.wait_for("document.querySelector('.inside pre') !== null")
    assert "A17" == browser.texts(".inside pre")[-1]


@pytest.mark.again
def test_a_user_in_yaml_has_its_end_and_scorers_their_reasons(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/played?id=1")
    assert [*_BEGUN, "You know it.", _BEGUN[1]] == browser.texts(".detail ol pre")
    assert ["The user was not done after as many messages as it may say."] == browser.texts(".detail > .note")
    found = _facts(browser)
    assert ("0 decides", f"0 {_REASON}") == (found["said"], found["kind"])
    assert {"scorers", "judge", "user", "ended", "score_field"}.isdisjoint(found)
    assert ["As recorded: scorers, judge, user"] == browser.texts(".detail > .fold summary")


@pytest.mark.again
def test_checks_are_listed_with_what_they_wanted_and_why_they_failed(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/checked?id=two")
    found = _facts(browser)
    assert ("1 passed", "0 failed wanted in a week", f"0 failed {_REASON}") == tuple(
        found[name] for name in ("number", "when", "kind")
    )


@pytest.mark.again
def test_a_conversation_is_listed_with_what_its_first_failed_turn_wanted(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/turns?id=asked")
    assert ["A17: in three days.", "wanted in a week"] == browser.texts(".examples .gist")[-2:]
    assert "Prediction" not in browser.texts(".detail h3")
