"""``lm.calls``: what the model asked for, compared as a whole, and ``trajectory.match``."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.calls import asked_in
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.trajectory import Call, match
from pytest_lmeval.types import Completion, ToolCall
from tests.conftest import Project
from tests.tables import each_row

TEA, CUP, OPEN = ("search", {"q": "tea"}), ("search", {"q": "cup"}), ("open", {"id": 3, "in": [1, True]})
MADE = [Call(each) for each in (TEA, OPEN, CUP)]


@each_row(
    ("made", "expected", "mode", "why"),
    [
        (MADE, [TEA, OPEN, CUP], "strict", "3 calls as expected (strict)"),
        (MADE, [TEA, "open", "search"], "strict", "3 calls as expected (strict)"),
        (MADE, [["search", {"q": "tea"}], ("open", {"in": (1.0, True), "id": 3}), CUP], "strict", "3 calls"),
        ([], [], "strict", "0 calls as expected (strict); no tool was called"),
        (MADE[:1], [TEA], "strict", "1 call as expected (strict)"),
        (MADE, [CUP, OPEN, TEA], "unordered", "3 calls as expected (unordered)"),
        (MADE, ["search", CUP, "open"], "unordered", "3 calls as expected (unordered)"),
        (MADE, [TEA, CUP, OPEN, "say"], "subset", "3 calls as expected (subset)"),
        ([], [TEA], "subset", "0 calls as expected (subset)"),
        ([], [], "subset", "0 calls as expected (subset)"),
        (MADE, [CUP], "superset", "3 calls as expected (superset)"),
        ([Call(("say", "{broken"))], [("say", "{broken")], "strict", "1 call as expected"),
    ],
)
def test_calls_that_are_as_expected(made: list[Call], expected: list[Any], mode: Any, why: str) -> None:
    found = match(made, expected, mode)
    assert found
    assert str(found).startswith(why)


@each_row(
    ("made", "expected", "mode", "why"),
    [
        (MADE, [TEA, CUP, OPEN], "strict", 'call 2 is open("id": 3, "in": [1, true]), not search("q": "cup"); calls: '),
        (MADE, [TEA, OPEN], "strict", 'call 3 is not expected: search("q": "cup")'),
        (MADE[:1], [TEA, "open"], "strict", "call 2 is missing: open"),
        (
            MADE[:1],
            [("search", {"q": "tea", "n": 1})],
            "strict",
            'call 1 is search("q": "tea"), not search("q": "tea",',
        ),
        (MADE[1:2], [("open", {"id": 3, "in": [1, 1]})], "strict", "call 1 is open"),
        (MADE[1:2], [("open", {"id": True, "in": [1, True]})], "strict", "call 1 is open"),
        (MADE, [TEA, OPEN, TEA], "unordered", 'not called: search("q": "tea"); not expected: search("q": "cup")'),
        (MADE, [TEA, OPEN], "unordered", 'not expected: search("q": "cup")'),
        ([], [TEA], "unordered", 'not called: search("q": "tea"); no tool was called'),
        (MADE, [TEA, OPEN], "subset", 'not expected: search("q": "cup")'),
        ([MADE[0]] * 2, [TEA], "subset", 'not expected: search("q": "tea")'),
        (MADE, [TEA, TEA], "superset", 'not called: search("q": "tea")'),
        (MADE, ["search"] * 3, "superset", "not called: search; calls: "),
        ([Call(("say", "{broken"))], [("say", {})], "strict", "call 1 is say({broken), not say()"),
    ],
)
def test_calls_that_are_not_say_what_differs(made: list[Call], expected: list[Any], mode: Any, why: str) -> None:
    found = match(made, expected, mode)
    assert not found
    assert str(found).startswith(why)


@each_row(
    ("calls", "expected", "mode", "said"),
    [
        (MADE, [TEA], "strikt", "mode: 'strikt' is not one of strict, unordered, subset, superset; did you mean"),
        (MADE, [], "superset", "any calls are a superset of none"),
        (MADE, TEA, "strict", "expected .name, arguments. pairs or names, got {'q': 'tea'}"),
        (MADE, "search", "strict", "expected, got 'search'"),
        (MADE, {"search": {}}, "strict", "expected, got"),
        (MADE, [("search", 3)], "strict", "got .'search', 3."),
        (MADE, [("search", {"q": float("nan")}, 1)], "strict", "pairs or names"),
        ([Step("tool", "search", {})], [TEA], "strict", "calls: expected lm.calls, got Step"),
        (None, [TEA], "strict", "calls: expected lm.calls, got None"),
    ],
)
def test_what_is_no_question_is_refused(calls: Any, expected: Any, mode: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        match(calls, expected, mode)


@each_row(
    ("step", "expected"),
    [
        (("request", '{"q": "tea"}'), [("search", {"q": "tea"})]),
        (("request", "{broken"), [("search", "{broken")]),
        (("request", "[1]"), [("search", "[1]")]),
        (("request", '{"q": NaN}'), [("search", '{"q": NaN}')]),
        (("request", ""), [("search", {})]),
        (("request", "null"), [("search", {})]),
        (("judge", "{}"), []),
        (("tool", "{}"), []),
    ],
)
def test_calls_are_what_answers_to_requests_ask_for(step: tuple[str, str], expected: list[Any]) -> None:
    kind, arguments = step
    output = Completion("", tool_calls=(ToolCall("x", "search", arguments),)).output
    assert expected == [*asked_in(Step(kind, "model", "?", output))]


AGENT = """
from pytest_lmeval import Completion, ToolCall, eval_task
from pytest_lmeval.trajectory import in_order, match

class Model:
    name = "caller.v1"

    def generate_requests(self, requests):
        return [self.answer(each.prompt) for each in requests]

    def answer(self, talk):
        if talk[-1].role == "tool":
            return Completion("It is " + talk[-1].content)
        asked = [ToolCall("1", "look", '{"q": "tea"}'), ToolCall("2", "open", "{broken")]
        return Completion("", tool_calls=tuple(asked))

@eval_task("agent", data=[{"id": "right", "q": "tea"}, {"id": "wrong", "q": "ale"}])
async def test_agent(row, lm):
    assert [] == lm.calls
    talk = [{"role": "user", "content": "Tea?"}]
    while (answer := await lm.ask(talk, tools=[{"name": "look"}, {"name": "open"}])).tool_calls:
        talk.append({"role": "assistant", "content": answer.text, "tool_calls": answer.tool_calls})
        talk += [{"role": "tool", "content": "hot", "tool_call_id": call.id} for call in answer.tool_calls]
    assert lm.called("look", times=1) and in_order(lm.trace, "look", "open")
    lm.step("tool", "look", {"q": "tea"}, "hot")
    assert lm.calls == [("look", {"q": row["q"]}), ("open", "{broken")]
    assert ["look", "open"] == [call.name for call in lm.calls]
    assert match(lm.calls, ["open"], mode="superset")
    assert lm.called("look", times=1, arguments=lm.calls[0].arguments)
"""
SCORED = """
@eval_task("scored")
async def test_scored(lm):
    await lm.ask([{"role": "user", "content": "Tea?"}], tools=[{"name": "look"}, {"name": "open"}])
    lm.score("looked", lm.called("look"))
    lm.score("calls", lm.match(["look"]))
    lm.score("order", lm.in_order("look", "open"), why="first things first")
"""


def test_a_check_is_a_score_and_its_text_the_reason(project: Project) -> None:
    project.write("test_agent.py", AGENT + SCORED)
    done = project.run_pytest("test_agent.py", "-kscored", "--lm-adapter=test_agent:Model")
    assert 0 == done.ret, done.stdout.str()
    done.stdout.fnmatch_lines_random(
        ["*scored.looked * 1.0000 *", "*scored.calls * 0.0000 *", "*scored.order * 1.0000 *"]
    )
    why = project.ledger()["scored:test_scored"]["details"]["why"]
    assert ["calls", "looked", "order"] == sorted(why)
    assert ("first things first", True) == (why["order"], why["looked"].startswith("look was called once")), why


def test_an_assert_on_the_calls_shows_the_difference_and_they_come_back_from_a_ledger(project: Project) -> None:
    project.write("test_agent.py", AGENT)
    done = project.run_pytest("test_agent.py", "--lm-adapter=test_agent:Model", "--lm-report-dir=first", "-vv")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *At index 0 diff: ('look', {'q': 'tea'}) != ('look', {'q': 'ale'})",
            "E  *-*'q': 'ale',",
            "E  *+*'q': 'tea',",
        ]
    )
    project.run_pytest("test_agent.py", "--lm-adapter=replay:first/ledger.jsonl").assert_outcomes(passed=1, failed=1)
