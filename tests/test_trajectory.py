"""What an example did, asked in asserts: each finding is true or false, and says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.trajectory import Finding, called, in_order, max_steps, never_called
from tests.conftest import Project

TRACE = (
    Step("request", "stub.v1", "What?", "search"),
    Step("tool", "search", {"q": "tea", "n": 1, "in": ["a", {"b": True}]}, ["hit"]),
    Step("span", "rank"),
    Step("tool", "open", '{"id": 3}', "text"),
    Step("tool", "search", {"q": "cup"}, []),
    Step("tool", "say", "no arguments"),
)
CALLS = 'calls: search("q": "tea", "n": 1, "in": ["a", {"b": true}]), open({"id": 3}), search("q": "cup"), '
CALLS += "say(no arguments)"
_NAMES = st.lists(st.sampled_from("abc"), max_size=6)


@pytest.mark.parametrize(
    ("finding", "holds", "why"),
    [
        (called(TRACE, "search"), True, "search was called 2 times"),
        (called(TRACE, "rank"), False, "rank was not called"),
        (called(TRACE, "search", times=2), True, "search was called 2 times"),
        (called(TRACE, "search", times=1), False, "search was called 2 times, not once"),
        (called(TRACE, "rank", times=0), True, "rank was not called"),
        (called(TRACE, "rank", times=3), False, "rank was not called, not 3 times"),
        (called(TRACE, "search", arguments={"q": "cup"}), True, 'search("q": "cup") was called once'),
        (called(TRACE, "search", arguments={"q": "ale"}), False, 'search("q": "ale") was not called'),
        (called(TRACE, "search", times=1, arguments={}), False, "search() was called 2 times, not once"),
        (called(TRACE, "search", arguments={"n": True}), False, 'search("n": true) was not called'),
        (called(TRACE, "search", arguments={"n": 1.0}), True, 'search("n": 1.0) was called once'),
        (
            called(TRACE, "search", arguments={"in": ("a", {"b": True})}),
            True,
            'search("in": ["a", {"b": true}]) was called once',
        ),
        (
            called(TRACE, "search", arguments={"in": ["a", {"b": 1}]}),
            False,
            'search("in": ["a", {"b": 1}]) was not called',
        ),
        (called(TRACE, "open", arguments={"id": 3}), True, 'open("id": 3) was called once'),
        (called(TRACE, "say", arguments={"id": 3}), False, 'say("id": 3) was not called'),
        (never_called(TRACE, "delete", "rank"), True, "delete and rank were not called"),
        (never_called(TRACE, "delete", "open", "say"), False, "open and say were called"),
        (in_order(TRACE, "search", "say"), True, "search and say were called in this order"),
        (in_order(TRACE, "open", "search", "search"), False, "search was not called after search"),
        (in_order(TRACE, "delete"), False, "delete was not called"),
    ],
)
def test_a_finding_holds_or_not_and_says_why(finding: Finding, holds: bool, why: str) -> None:
    assert (holds, f"{why}; {CALLS}") == (bool(finding), repr(finding))


def test_steps_are_counted_all_or_of_a_kind() -> None:
    assert max_steps(TRACE, 6)
    assert "2 steps, at most 1 wanted: stub.v1, search" == str(max_steps(TRACE[:2], 1))
    assert "4 tool steps, at most 0 wanted: search, open, search, say" == str(max_steps(TRACE, 0, kind="tool"))


def test_without_a_call_a_finding_says_so() -> None:
    assert "search was not called; no tool was called" == str(called(TRACE[:1], "search"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: called(TRACE, ""),
        lambda: called(TRACE, "search", times=-1),
        lambda: called(TRACE, "search", times=True),
        lambda: called(TRACE, "search", arguments={"n": float("nan")}),
        lambda: never_called(TRACE),
        lambda: in_order(TRACE, ["search", "say"]),  # type: ignore[arg-type]  # wrong on purpose
        lambda: max_steps(TRACE, -1),
    ],
)
def test_a_question_that_asks_nothing_is_refused(ask: Callable[[], Finding]) -> None:
    with pytest.raises(UsageError):
        ask()


def test_what_a_model_wrote_gives_a_terminal_no_orders_and_is_cut() -> None:
    shown = repr(called([Step("tool", "a\x1b[31m\n::error::", {"q": "x" * 1000})] * 9, "b"))
    assert shown.isprintable()
    assert len(shown) <= 240


@given(_NAMES, _NAMES.filter(bool))
def test_an_order_holds_where_the_names_are_among_the_calls_one_after_the_other(
    names: list[str], wanted: list[str]
) -> None:
    trace = [Step("tool", name) for name in names]
    assert (tuple(wanted) in set(combinations(names, len(wanted)))) == bool(in_order(trace, *wanted))


@given(_NAMES, st.sampled_from("abc"), st.integers(0, 6))
def test_calls_are_counted_and_none_is_never(names: list[str], name: str, times: int) -> None:
    trace = [Step("tool", each) for each in names]
    assert (names.count(name) == times) == bool(called(trace, name, times=times))
    assert bool(called(trace, name)) != bool(never_called(trace, name))


def test_an_assert_in_an_eval_says_what_was_called_instead(project: Project) -> None:
    project.write(
        "test_agent.py",
        """
from pytest_lmeval import eval_task
from pytest_lmeval.trajectory import called

@eval_task("agent", data=[{"id": "a"}])
async def test_agent(row, lm):
    lm.step("tool", "look_up", {"q": "tea"}, 0)
    assert called(lm.trace, "search", arguments={"q": "tea"})
""",
    )
    done = project.run("test_agent.py")
    done.assert_outcomes(failed=1)
    said = 'search("q": "tea") was not called; calls: look_up("q": "tea")'
    assert f"E       assert {said}" in done.outlines
    lines = (project.path / "reports" / "ledger.jsonl").read_text("utf-8").splitlines()
    details = json.loads(lines[1])["details"]
    assert said in details["reason"]
    # An output of 0 is one.
    assert 0 == details["steps"][0]["output"]
