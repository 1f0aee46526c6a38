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
from pytest_lmeval.types import Completion, ToolCall
from tests.conftest import Project
from tests.tables import each_row

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


@each_row(
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


def asks(*calls: tuple[str, str], text: str = "") -> Step:
    answer = Completion(text, tool_calls=tuple(ToolCall("x", name, arguments) for name, arguments in calls))
    return Step("request", "stub.v1", "What?", answer.output)


TEA, CUP = ("search", '{"q": "tea"}'), ("search", '{"q": "cup"}')


def ran(**arguments: object) -> Step:
    return Step("tool", "search", arguments, ["hit"])


@each_row(
    ("trace", "calls"),
    [
        pytest.param([asks(TEA, CUP)], ["tea", "cup"], id="asked for, and nothing recorded"),
        pytest.param([asks(TEA), asks(TEA), asks(text="done")], ["tea", "tea"], id="asked for twice"),
        pytest.param([asks(TEA), ran(q="tea")], ["tea"], id="recorded as well"),
        pytest.param([asks(TEA), Step("tool", *TEA)], ["tea"], id="recorded as the model wrote it"),
        pytest.param([asks(TEA, CUP), ran(q="cup"), ran(q="tea")], ["cup", "tea"], id="in the order of the steps"),
        pytest.param([asks(TEA, CUP), ran(q="cup")], ["tea", "cup"], id="one of two was recorded"),
        pytest.param([asks(TEA), ran(q="tea"), ran(q="tea")], ["tea", "tea"], id="once more by the application"),
        pytest.param([ran(q="tea"), asks(TEA)], ["tea", "tea"], id="a step before the answer is another call"),
        pytest.param([asks(TEA), ran(q="tea", n=3)], ["tea"], id="with arguments filled in"),
        pytest.param([asks(TEA), ran(q="tea", n=3), ran(q="tea")], ["tea", "tea"], id="equal ones first"),
        pytest.param([asks(TEA), Step("tool", "search", None, 0)], ["tea"], id="a step without arguments"),
        pytest.param([asks(TEA), Step("tool", "search", "tea", 0)], ["tea"], id="a step with a text for arguments"),
        pytest.param([asks(("search", "{broken")), Step("tool", "search", "{broken")], [None], id="no JSON"),
        pytest.param([asks(TEA), Step("tool", "open", {"q": "tea"})], ["tea"], id="another tool"),
        pytest.param([Step("judge", "judge.v1", "?", asks(TEA).output)], [], id="a judge calls nothing"),
        pytest.param([asks(text=asks(TEA).output)], [], id="a text that looks like a call"),
    ],
)
def test_what_the_model_asked_for_and_the_step_of_it_are_one_call(trace: list[Step], calls: list[str | None]) -> None:
    assert called(trace, "search", times=len(calls))
    for query in ("tea", "cup"):
        assert called(trace, "search", times=calls.count(query), arguments={"q": query})
    assert bool(calls) != bool(never_called(trace, "search"))
    assert in_order(trace, "search", "search") if len(calls) > 1 else not in_order(trace, "search", "search")


def test_a_step_with_other_arguments_than_the_model_gave_is_refused_where_it_matters() -> None:
    trace = [asks(TEA), ran(query="tea")]
    assert called(trace, "search")
    assert not never_called(trace, "search")
    assert not called(trace, "search", arguments={"q": "ale"})
    assert called(trace[1:], "search", times=1)
    unclear: list[Callable[[], Finding]] = [
        lambda: called(trace, "search", times=1),
        lambda: called(trace, "search", arguments={"q": "tea"}),
        lambda: in_order(trace, "search", "search"),
    ]
    for ask in unclear:
        with pytest.raises(
            UsageError, match=r'asked for search\("q": "tea"\), and a step says search\("query": "tea"\)'
        ):
            ask()


@each_row(
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
