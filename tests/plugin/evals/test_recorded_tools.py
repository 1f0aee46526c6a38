"""The calls of an application's tools: steps of the example, given back by a recording, and what resuming repeats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_type

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_lmeval import Lm
    from tests.conftest import Project

# Each call leaves a line in ran.txt, and tells its number.
TOOLS = '''
import asyncio, json, os, signal
from pathlib import Path
from pytest_lmeval import eval_task

def ran(what):
    with open("ran.txt", "a") as file:
        file.write(f"{what}\\n")
    return len(Path("ran.txt").read_text().split())

class Lost(Exception):
    def __init__(self, order):
        super().__init__(f"{order} is lost")
        self.order = order

def find(order: str, limit: int = 5) -> dict:
    """Look an order up."""
    if order == "Z99":
        raise Lost(order)
    return {"order": order, "number": ran("find")}

async def send(to, **more):
    await asyncio.sleep(0)
    return [to, more, ran("send")]

class Shop:
    def pay(self, amount):
        return ran("pay")
'''
USES = """
from tools import *

@eval_task("awaited")
async def test_awaited(lm):
    look, mail, pay = lm.tool(find), lm.tool(send), lm.tool(Shop().pay, once=True)
    found = [look("A17"), look(order="A17"), look("A17", 3), await mail("me", text="hi"), pay(5)]
    try:
        look("Z99")
    except Lost as lost:
        found.append([str(lost), lost.order])
    lm.output(found)
    assert lm.called("send", arguments={"to": "me", "text": "hi"})

@eval_task("blocking")
def test_blocking(lm):
    lm.output([lm.tool(find)("B22"), lm.ask("say: yes").text])
    assert lm.called("find", times=1)
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("tools.py", TOOLS)
    project.write("test_shop.py", USES)
    project.usual = (*project.usual, "--lm-include-per-example")
    return project


def outputs(project: Project, folder: str = "reports") -> dict[str, Any]:
    return {key: each["details"].get("output") for key, each in project.examples(folder).items()}


def tools_of(example: dict[str, Any]) -> list[tuple[Any, ...]]:
    steps = [step for step in example["details"]["steps"] if step["kind"] == "tool"]
    return [(step["name"], step["input"], step.get("output"), step.get("error", "")) for step in steps]


def ran(project: Project) -> list[str]:
    path = project.path / "ran.txt"
    return path.read_text().split() if path.exists() else []


def test_calls_are_steps_and_a_recording_gives_their_results_back(shop: Project) -> None:
    result = shop.run("test_shop.py", "--lm-report-dir=live")
    assert 0 == result.ret, result.stdout.str()
    live = shop.examples("live")
    mail = {"to": "me", "text": "hi"}
    lost = {"raised": "tools:Lost", "args": ["Z99 is lost"], "attributes": {"order": "Z99"}}
    assert [
        ("find", {"order": "A17"}, {"order": "A17", "number": 1}, ""),
        ("find", {"order": "A17"}, {"order": "A17", "number": 2}, ""),
        ("find", {"order": "A17", "limit": 3}, {"order": "A17", "number": 3}, ""),
        ("send", mail, ["me", {"text": "hi"}, 4], ""),
        ("pay", {"amount": 5}, 5, ""),
        ("find", {"order": "Z99"}, lost, "Lost: Z99 is lost"),
    ] == tools_of(live["awaited:test_awaited"])
    assert 6 == len(ran(shop))
    for file, processes in (("ledger.jsonl", "-n2"), ("leaderboard.json", "-n0")):
        again = shop.run("test_shop.py", f"--lm-adapter=replay:live/{file}", "--lm-report-dir=again", processes)
        assert (0, 6) == (again.ret, len(ran(shop))), again.stdout.str()
        assert outputs(shop, "live") == outputs(shop, "again")
        assert shop.board("live")["digest"] == shop.board("again")["digest"]
        replayed = shop.examples("again")
        assert [tools_of(each) for each in live.values()] == [tools_of(each) for each in replayed.values()]


def rename_exception(project: Project) -> None:
    """Take away the type of an exception that a recording holds."""
    project.edit("tools.py", "class Lost(Exception)", "class Gone(Exception)")
    project.edit("tools.py", "raise Lost(order)", "raise KeyError(order)")
    project.edit("test_shop.py", "[str(lost), lost.order]", "1")
    project.edit("test_shop.py", "except Lost as lost", "except Exception")


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (('look("A17", 3)', 'look("A17", 4)'), 'find({"order": "A17", "limit": 4}), number 1: the application'),
        (('look(order="A17"), ', 'look("A17"), look("A17"), '), 'find({"order": "A17"}), number 3: the application'),
        (("look = lm", "look = lm"), ""),
    ],
)
def test_a_call_that_a_recording_does_not_hold_is_an_error_even_if_it_is_caught(
    shop: Project, edit: tuple[str, str], told: str
) -> None:
    assert 0 == shop.run("test_shop.py", "-k", "awaited").ret
    if told:
        shop.edit("test_shop.py", *edit)
    else:
        rename_exception(shop)
        told = 'find({"order": "Z99"}) raised Lost: Z99 is lost, and a recording cannot raise it again'
    result = shop.run("test_shop.py", "-k", "awaited", "--lm-adapter=replay:reports/ledger.jsonl")
    example = shop.examples()["awaited:test_awaited"]
    assert (3, "error") == (result.ret, example["status"])
    assert told in example["error"]
    assert 5 == len(ran(shop))


def test_resuming_a_scored_example_calls_a_tool_whose_exception_cannot_be_raised_again(shop: Project) -> None:
    assert 0 == shop.run("test_shop.py", "-k", "awaited").ret
    rename_exception(shop)
    assert (0, 5) == (shop.run("test_shop.py", "-k", "awaited", "--lm-resume").ret, len(ran(shop)))
    assert "KeyError: 'Z99'" == tools_of(shop.examples()["awaited:test_awaited"])[-1][-1]


KILLED = """
from tools import *

def kill(where):
    if Path("kill.txt").exists() and Path("kill.txt").read_text() == where:
        os.kill(os.getpid(), signal.SIGKILL)

def charge(amount):
    number = ran("charge")
    kill("within")
    return number

@eval_task("orders", data=[{"id": "first"}, {"id": "second"}])
def test_order(row, lm):
    look, pay = lm.tool(find), lm.tool(charge, once=True)
    lm.output([look("A17"), pay(5), pay(5)])
    if row["id"] == "second":
        kill("after")
    assert lm.trace
"""


def test_resuming_repeats_the_tools_of_an_unfinished_example_but_for_those_that_run_once(shop: Project) -> None:
    shop.write("test_shop.py", KILLED)
    shop.write("kill.txt", "after")
    assert shop.run("test_shop.py").ret not in range(6)
    assert ["find", "charge", "charge"] * 2 == ran(shop)
    shop.write("kill.txt", "")
    result = shop.run("test_shop.py", "--lm-resume")
    assert 0 == result.ret, result.stdout.str()
    # The results of the first example are in the ledger, and the payments of the second in the journal.
    assert ["find", "charge", "charge"] * 2 + ["find"] == ran(shop)
    first, second = outputs(shop).values()
    assert [{"order": "A17", "number": 1}, 2, 3] == first
    assert [{"order": "A17", "number": 7}, 5, 6] == second
    assert not (shop.path / "reports/underway.jsonl").exists()


def test_a_call_that_runs_once_and_began_without_an_end_is_an_error(shop: Project) -> None:
    shop.write("test_shop.py", KILLED)
    shop.write("kill.txt", "within")
    assert shop.run("test_shop.py").ret not in range(6)
    shop.write("kill.txt", "")
    for _ in range(2):
        result = shop.run("test_shop.py", "--lm-resume")
        assert 3 == result.ret
        examples = shop.examples()
        told = 'an earlier run began charge({"amount": 5}) and did not record its end: check whether it took effect'
        assert told in examples["orders:first"]["error"]
        assert "passed" == examples["orders:second"]["status"]
    assert 3 == ran(shop).count("charge")


def test_a_call_that_runs_once_is_not_made_if_it_cannot_be_recorded_first(shop: Project) -> None:
    shop.write("test_shop.py", KILLED)
    shop.write("reports/underway.jsonl/file", "")
    assert 3 == shop.run("test_shop.py").ret
    errors = {each["error"] for each in shop.examples().values()}
    assert "must run once, and its begin cannot be recorded in underway.jsonl" in str(errors)
    assert ["find", "find"] == ran(shop)


def test_what_cannot_be_a_tool_is_refused_even_if_the_application_catches_it(project: Project) -> None:
    project.copy("recorded_tools")
    assert 3 == project.run("test_refused.py", "--lm-include-per-example").ret
    errors = {key.removeprefix("cases:"): each.get("error", "") for key, each in project.examples().items()}
    told = {
        "number": "lm.tool: expected a function, got 5",
        "generator": "lm.tool: numbers (test_refused.py:12) is a generator, whose values cannot be recorded; return a",
        "async generator": "lm.tool: later (test_refused.py:16) is a generator",
        "lambda": "has no name: wrap a function made by def",
        "same name": "two tools of the example are called 'one': one (test_refused.py:8) and one (test_refused.py:49)",
        "tuple": "pair returned (1, 2), which is not JSON; expected JSON values: dict, list, str, int, float",
        "keys": "by_number returned {1: 2}, which is not JSON",
        "nan": "endless returned nan, which is not JSON",
        "awaitable": "wrap the async def function itself",
        "object": "the arguments of takes are not JSON (Object of type object is not JSON serializable)",
        "large": "large returned 2,097,152 characters; a step holds at most 1,048,576",
        "plain": "lm.ask: tools[0]: expected a mapping, or a function from lm.tool, got <function one",
        "left": "the tool sleeps was still running when the function had ended: await it before",
    }
    assert {} == {name: errors[name] for name, text in told.items() if text not in errors[name]}


AGENT = """
import json
from pathlib import Path
from pytest_lmeval import Completion, ToolCall

class Agent:
    name = "agent.v1"

    async def complete(self, request):
        Path("offered.json").write_text(json.dumps([dict(tool) for tool in request.tools]))
        calls = [ToolCall("1", "find", '{"order": "A17"}'), ToolCall("2", "find", '{"number": 1}')]
        return Completion("", tool_calls=tuple(calls))
"""
OFFERS = """
from __future__ import annotations
import asyncio, functools
from tools import *

async def outer(order: str) -> int:
    return inner(order)["number"]

@eval_task("agent")
async def test_agent(lm):
    global inner
    inner, look, both = lm.tool(find), lm.tool(functools.partial(find_, limit=1)), lm.tool(outer)
    other = {"name": "other", "parameters": {"type": "object"}}
    answer = await lm.ask("Where is A17?", tools=[inner, look, other])
    for call in answer.tool_calls:
        try:
            inner(**call.values)
        except TypeError as error:
            lm.note("wrong", str(error))
    lm.output([*await asyncio.gather(both("B"), both("B")), inner("B")])
    assert lm.called("outer", times=2)

def find_(order: str, limit: int): ...
"""


def test_a_model_is_offered_a_tool_by_its_signature_and_calls_within_calls_are_found_again(shop: Project) -> None:
    shop.write("agent.py", AGENT)
    shop.write("test_shop.py", OFFERS)
    result = shop.run("test_shop.py", "--lm-adapter=agent:Agent", "--lm-report-dir=live")
    assert 0 == result.ret, result.stdout.str()
    order, limit = {"type": "string"}, {"default": 5, "type": "integer"}
    schema = {"additionalProperties": False, "required": ["order"], "type": "object"}
    find, partial, other = json.loads((shop.path / "offered.json").read_text())
    assert {**schema, "properties": {"order": order, "limit": limit}} == find["parameters"]
    assert ("find", "Look an order up.") == (find["name"], find["description"])
    assert ("find_", {"type": "object"}) == (partial["name"], other["parameters"])
    notes = shop.examples("live")["agent:test_agent"]["details"]["notes"]
    assert {"wrong": "find(): missing a required argument: 'order'"} == notes
    (shop.path / "offered.json").unlink()
    again = shop.run("test_shop.py", "--lm-adapter=replay:live/ledger.jsonl", "--lm-report-dir=again")
    assert 0 == again.ret, again.stdout.str()
    assert outputs(shop, "live") == outputs(shop, "again") == {"agent:test_agent": [2, 3, {"order": "B", "number": 4}]}


def looked_up(order: str, limit: int = 5) -> list[str]:
    return [order] * limit


def signatures_are_kept(lm: Lm) -> None:
    """Show the type checker a tool: it tells a wrong type here."""
    assert_type(lm.tool(looked_up)("A17", limit=2), list[str])
    unary: Callable[[str], list[str]] = lm.tool(looked_up)
    lm.tool(looked_up)(5)  # type: ignore[arg-type]  # the signature is that of the function
    del unary
