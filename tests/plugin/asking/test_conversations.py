"""Conversations and tools in a run: asked turn by turn, shown turn by turn, and completed where they broke off."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import Project

LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}


def talk(id: str, *said: str, targets: dict[int, str], **extras: Any) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"user": f"say: {each}"} for each in said]
    for place, target in targets.items():
        turns[place]["targets"] = [target]
    return {"id": id, "turns": turns, "extras": extras}


@pytest.fixture
def talking(project: Project) -> Project:
    project.copy("conversations", "talker.py")
    tools = {"tools": [LOOK], "responses": {"look": "say: seen"}}
    project.task(
        "tasks/talks.jsonl",
        talk("a", "one", "two", "three", targets={0: "one", 2: "four"}),
        talk("b", "call", "five", targets={0: "seen", 1: "five"}, **tools),
        talk("c", "six", "seven", targets={1: "seven"}),
    )
    return project


@pytest.mark.parametrize(("adapter", "processes"), [("Batch", "-n0"), ("Async", "-n2")])
def test_a_run_is_the_same_however_it_is_asked(talking: Project, adapter: str, processes: str) -> None:
    result = talking.run_pytest(f"--lm-adapter=talker:{adapter}", processes)
    assert 1 == result.ret
    board = talking.board()
    assert "turns" == board["tasks"][0]["metric"]
    assert pytest.approx(2.5 / 3) == board["overall_score"]
    assert sorted(
        ["say: one", "say: two", "say: three", "say: call", "say: seen", "say: five", "say: six", "say: seven"]
    ) == (sorted(prompt for call in talking.calls() for prompt in call))
    assert (8 - 1, 2 * 7) == (board["usage"]["cost"], board["usage"]["prompt_tokens"])


def test_the_turns_of_a_batch_are_asked_together(talking: Project) -> None:
    talking.run_pytest("--lm-adapter=talker:Batch")
    assert [3, 3, 2] == [len(call) for call in talking.calls()]


def test_a_failure_shows_every_turn(talking: Project) -> None:
    result = talking.run_pytest("--lm-adapter=talker:Batch", "-k", "a")
    lines = ["*turn 1, passed (exact_match):", "*| user: say: one"]
    lines += ["*| thoughts: 7 characters, not scored; they end: hm, one", "*| assistant: one", "*turn 2, not scored:"]
    result.stdout.fnmatch_lines([*lines, "*turn 3, FAILED (exact_match):", "*| assistant: three", "*| targets: 'four'"])


def test_a_failure_shows_the_calls_that_were_expected(talking: Project) -> None:
    wanted = {"calls": [{"name": "look", "arguments": {"at": 2}}]}
    record = {"metric": "tool_calls", "extras": {"tools": [LOOK], **wanted}}
    silent = {"metric": "tool_calls", "extras": {"tools": [LOOK], "calls": []}}
    talking.task(
        "tasks/calls.jsonl", {"id": "d", "prompt": "say: call", **record}, {"id": "e", "prompt": "say: call", **silent}
    )
    turn = {"user": "say: call", "metric": "tool_calls", "extras": wanted}
    talking.task("tasks/talks.jsonl", {"id": "f", "turns": [turn], "extras": {"tools": [LOOK]}})
    result = talking.run_pytest("--lm-adapter=talker:Batch")
    shown = [line for line in result.outlines if "expected calls" in line]
    assert ["  expected calls: look(at=2)", "  expected calls: no call", "    | expected calls: look(at=2)"] == shown
    assert "targets:" not in result.stdout.str()
    text = talking.lmeval("test", "calls", "-n1", "--lm-adapter=talker:Batch").stdout.str()
    assert "    tools:\n    - look\n" in text
    assert "    tool_calls:\n    - name: look\n      arguments:\n        at: 1\n" in text


def test_what_broke_off_is_completed_from_where_it_was(talking: Project) -> None:
    talking.run_pytest("--lm-adapter=talker:Batch", "--lm-report-dir=whole")
    digest = talking.board("whole")["digest"]
    talking.write("fail.txt", "three five")
    assert 3 == talking.run_pytest("--lm-adapter=talker:Batch").ret
    assert ["error", "error", "passed"] == [talking.ledger()[f"talks:{id}"]["status"] for id in "abc"]
    assert 2 == len(talking.ledger()["talks:a"]["exchanges"])
    (talking.path / "fail.txt").unlink()
    asked = len(talking.calls())
    assert 1 == talking.run_pytest("--lm-adapter=talker:Batch", "--lm-resume").ret
    assert ["say: five", "say: three"] == sorted(each for call in talking.calls()[asked:] for each in call)
    board = talking.board()
    assert (digest, 7.0) == (board["digest"], board["usage"]["cost"])


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_what_a_killed_process_had_been_answered_is_not_asked_again(talking: Project, processes: str) -> None:
    talking.run_pytest("--lm-adapter=talker:Batch", "--lm-report-dir=whole")
    digest = talking.board("whole")["digest"]
    die = talking.write("die.txt", "")
    talking.run_pytest("--lm-adapter=talker:Batch", processes, "--max-worker-restart=0")
    underway = talking.path / "reports/underway.jsonl"
    assert ({}, 6) == (talking.ledger(), len(underway.read_text().strip().splitlines()))
    # What a process wrote last may lack its end.
    with underway.open("ab") as file:
        file.write(b'\n{"asking": "half')
    die.unlink()
    asked = len(talking.calls())
    result = talking.run_pytest("--lm-adapter=talker:Batch", "--lm-resume", processes, "--max-worker-restart=0")
    result.stdout.fnmatch_lines(["*resumed: reused 6 answer(s) of examples without a result*"])
    assert ["say: five", "say: three"] == sorted(each for call in talking.calls()[asked:] for each in call)
    assert (digest, 7.0) == (talking.board()["digest"], talking.board()["usage"]["cost"])
    assert not underway.exists()


def test_a_run_that_does_not_resume_asks_all_again(talking: Project) -> None:
    die = talking.write("die.txt", "")
    talking.run_pytest("--lm-adapter=talker:Batch")
    die.unlink()
    asked = len(talking.calls())
    talking.run_pytest("--lm-adapter=talker:Batch")
    assert 8 == sum(map(len, talking.calls()[asked:]))


def test_answers_of_a_killed_process_count_towards_the_cost_limit(talking: Project) -> None:
    die = talking.write("die.txt", "")
    talking.run_pytest("--lm-adapter=talker:Batch")
    die.unlink()
    asked = len(talking.calls())
    # Five of the six cost 1 each: the call of a tool is free.
    assert 3 == talking.run_pytest("--lm-adapter=talker:Batch", "--lm-resume", "--lm-max-cost=5").ret
    assert [] == talking.calls()[asked:]


def test_a_ledger_answers_by_request_and_a_changed_turn_is_not_answered(talking: Project) -> None:
    talking.run_pytest("--lm-adapter=talker:Batch", "--lm-report-dir=first")
    replay = ("--lm-adapter=replay:first/ledger.jsonl", "--lm-gate=none")
    talking.run_pytest(*replay)
    assert talking.board("first")["digest"] == talking.board()["digest"]
    talking.task("tasks/talks.jsonl", talk("c", "six", "eight", targets={1: "eight"}))
    assert 3 == talking.run_pytest(*replay).ret
    assert "holds no answer to this request" in talking.ledger()["talks:c"]["error"]


def test_a_conversation_that_would_pass_the_cost_limit_stops(talking: Project) -> None:
    assert 3 == talking.run_pytest("--lm-adapter=talker:Async", "--lm-max-cost=2.5", "tasks/talks.jsonl::a").ret
    told = talking.ledger()["talks:a"]
    assert "stopped by --lm-max-cost" in told["error"]
    assert (2, 2.0) == (len(told["exchanges"]), told["usage"]["cost"])


def test_a_page_and_a_board_hold_the_conversation(talking: Project) -> None:
    talking.run_pytest("--lm-adapter=talker:Batch", "--lm-include-per-example")
    assert 3 == len(talking.examples()["talks:a"]["exchanges"])
    talking.run_pytest("--lm-adapter=replay:reports/leaderboard.json", "--lm-report-dir=again", "--lm-gate=none")
    assert talking.board()["digest"] == talking.board("again")["digest"]
    blocks = re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>', (talking.path / "reports/report.html").read_text()
    )
    examples = [each for block in blocks for each in json.loads(block).get("examples", ()) if each.get("id") == "b"]
    assert [["assistant", "tool", "assistant"], ["assistant"]] == [
        [said["role"] for said in turn["said"]] for turn in examples[0]["details"]["turns"]
    ]
    assert ["", "hm, seen", "hm, five"] == examples[0]["thoughts"]


def test_a_dry_run_shows_the_whole_conversation(talking: Project) -> None:
    result = talking.lmeval("test", "talks", "-n1", "--lm-adapter=talker:Batch")
    assert 0 == result.ret
    text = result.stdout.str()
    assert text.index("say: one") < text.index("say: two") < text.index("say: three")
    assert "score: 0.5" in text


STRICT = """
import secrets
from dataclasses import replace
from pytest_lmeval import AdapterError
from talker import Batch

class Strict(Batch):
    def answer(self, request):
        ids = [call.id for message in request.prompt for call in message.tool_calls]
        answer = super().answer(request)
        if len(ids) != len(set(ids)):
            return AdapterError("the id of a call is there twice")
        return replace(answer, tool_calls=tuple(call._replace(id=secrets.token_hex(5)) for call in answer.tool_calls))
"""


def test_calls_of_a_conversation_that_is_gone_on_with_have_each_an_id_of_their_own(project: Project) -> None:
    project.copy("conversations", "talker.py")
    project.write("strict.py", STRICT)
    tools = {"tools": [LOOK], "responses": {"look": "say: seen"}}
    project.task("tasks/talks.jsonl", talk("d", "call", "call", "three", targets={2: "three"}, **tools))
    project.write("die.txt", "")
    assert project.run_pytest("--lm-adapter=strict:Strict").ret not in (0, 3)
    (project.path / "die.txt").unlink()
    result = project.run_pytest("--lm-adapter=strict:Strict", "--lm-resume")
    assert 0 == result.ret, result.stdout.str()
    assert 2 == [prompt for call in project.calls() for prompt in call].count("say: seen")
