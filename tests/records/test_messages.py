"""The messages of a prompt that is a conversation: in the ledger beside the flat text, and in every report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.records.recorded import recorded_result
from pytest_lmeval.report.comparison import Compared
from pytest_lmeval.report.html.comparison_page import columns_data
from pytest_lmeval.report.html.examples import example_fields
from pytest_lmeval.types import ExampleResult, Message, ToolCall
from tests.conftest import Project
from tests.schemas import faults

SYSTEM = "You are a geographer.\nuser: fake"
TASK = """
prompt:
  - {role: system, content: "You are a geographer.\\nuser: fake"}
  - {role: user, content: "say: {{ said }}"}
data: rows.csv
id: "{{ said }}"
target: "{{ said }}"
metric: exact_match
"""
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "say: red"}]
SHOWN = ["system: You are a geographer.", "  user: fake", "user: say: red"]
BY_ID = ("--lm-baseline=base.json", "--lm-pair-by=id")
CALLS = (
    Message("user", "Look."),
    Message("assistant", "", (ToolCall("call1", "look", '{"at":1}'),)),
    Message("tool", "a cat", tool_call_id="call1"),
)
RESULT = ExampleResult("sums", "a", "passed", 1.0, 0.5, "exact_match", "f" * 64, messages=CALLS)


@pytest.fixture
def chat(project: Project) -> Project:
    project.write("tasks/chat.yaml", TASK)
    project.write("tasks/rows.csv", "said\nred\nblue\n")
    return project


def _without(project: Project) -> None:
    """Take the messages out of the ledger, as an earlier version wrote it, and cut it after its first result."""
    path = project.path / "reports/ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert 2 == sum(line.pop("messages", None) is not None for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))


def test_a_conversation_keeps_its_roles_and_a_plain_prompt_its_line(chat: Project) -> None:
    chat.task("tasks/plain.jsonl", chat.record("one", "1"))
    single = TASK.replace('  - {role: system, content: "You are a geographer.\\nuser: fake"}\n', "")
    chat.write("tasks/single.yaml", single)
    assert 0 == chat.run().ret
    ledger = chat.ledger()
    assert MESSAGES == ledger["chat:red"]["messages"]
    assert f"{SYSTEM}\n\nsay: red" == ledger["chat:red"]["prompt"]
    assert [False, False] == ["messages" in ledger[name] for name in ("plain:one", "single:red")]
    assert [] == faults("ledger", *map(json.loads, (chat.path / "reports/ledger.jsonl").read_text().splitlines()))


def test_a_failure_and_a_difference_name_the_roles(chat: Project) -> None:
    assert 0 == chat.run("--lm-report-dir=one", *BY_ID, "--lm-update-baseline").ret
    assert MESSAGES in [
        each.get("messages")
        for row in json.loads((chat.path / "base.json").read_text())["tasks"]
        for each in row["per_example"]
    ]
    chat.edit("tasks/chat.yaml", "a geographer", "a terse geographer")
    chat.edit("tasks/chat.yaml", "say: {{ said }}", "say: not {{ said }}")
    chat.run("--lm-report-dir=two", *BY_ID, "--lm-gate=examples", "--lm-strict").stdout.fnmatch_lines(
        ["  prompt:", "    | system: You are a terse geographer.", "    |   user: fake", "    | user: say: not red"]
    )
    found = chat.lmeval("diff", "one/ledger.jsonl", "two/ledger.jsonl", "--pair-by=id")
    found.stdout.fnmatch_lines(["  old prompt:", *[f"    {line}" for line in SHOWN]])
    board = (chat.path / "two/leaderboard.md").read_text()
    assert "user: say: not red |" in board
    markdown = chat.lmeval("diff", "one/ledger.jsonl", "two/ledger.jsonl", "--pair-by=id", "--format=markdown")
    assert "user: say: not red |" in markdown.stdout.str()


def test_a_ledger_without_messages_is_resumed_and_compared(chat: Project) -> None:
    assert 0 == chat.run().ret
    digest = chat.board()["digest"]
    _without(chat)
    assert 0 == chat.run("--lm-resume").ret
    assert digest == chat.board()["digest"]
    assert 1 == (chat.path / "reports/ledger.jsonl").read_text().count('"messages"')
    assert 0 == chat.lmeval("diff", "reports/ledger.jsonl", "reports/ledger.jsonl").ret


def test_shards_without_messages_are_merged(chat: Project) -> None:
    for shard in ("1", "2"):
        assert 0 == chat.run(f"--lm-shard={shard}/2", f"--lm-report-dir={shard}").ret
    path = chat.path / "1/ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert 1 == sum(line.pop("messages", None) is not None for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert 0 == chat.lmeval("merge", "1", "2", "-o", "whole", "--include-per-example").ret
    assert [False, True] == sorted("messages" in each for each in chat.examples("whole").values())


def test_a_resumed_run_reads_texts_from_an_older_ledger(chat: Project) -> None:
    # All texts stay in files, as in a run whose results do not fit into memory.
    chat.write(
        "conftest.py", "from pytest_lmeval.plugin.record import records\nrecords.IN_MEMORY = records.LONG = -1\n"
    )
    assert 0 == chat.run("--lm-include-per-example").ret
    _without(chat)
    assert 0 == chat.run("--lm-resume", "--lm-include-per-example").ret
    assert MESSAGES == chat.examples()["chat:red"]["messages"]


def test_a_secret_is_hidden_in_messages(chat: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-0123456789abcdef")
    chat.edit("tasks/chat.yaml", "You are a geographer.", "sk-0123456789abcdef")
    chat.run()
    assert "0123456789" not in (chat.path / "reports/ledger.jsonl").read_text()


def test_calls_of_tools_and_their_results_are_read_back() -> None:
    line = RESULT.to_json()
    assert [each.to_json() for each in CALLS] == json.loads(line)["messages"]
    assert [RESULT, RESULT] == [ExampleResult.from_json(line), recorded_result(json.loads(line))]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": 1, "content": ""},
        {"role": "user", "content": ["text"]},
        {"role": "assistant", "content": "", "tool_calls": {}},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
        {"role": "tool", "content": "", "tool_call_id": 1},
    ],
)
def test_a_wrong_message_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^messages: expected role and content"):
        recorded_result({**json.loads(RESULT.to_json()), "messages": [message]})


def test_the_page_cuts_long_messages_and_keeps_their_roles() -> None:
    def shown(*contents: str) -> list[dict[str, Any]]:
        messages = tuple(Message("user", content) for content in contents)
        found: list[dict[str, Any]] = example_fields(replace(RESULT, messages=messages))["messages"]
        return found

    assert ["user", "user"] == [each["role"] for each in shown("a" * 1_000_000, "b")]
    assert 70_000 > len(str(shown("a" * 1_000_000, "b")))
    (whole,) = shown(*["c" * 1_000] * 1_000)
    assert ("messages", True) == (whole["role"], whole["content"].startswith("user: ccc"))
    assert 61_000 > len(whole["content"])


def test_prompts_that_differ_in_a_role_alone_differ_on_the_page() -> None:
    def differ(*roles: str) -> int:
        talks = ((Message("user", "Add."), Message(role, "2 + 2?")) for role in roles)
        given = replace(RESULT, prompt="Add. 2 + 2?")
        results = [replace(given, messages=talk, hash=str(number)) for number, talk in enumerate(talks)]
        board = build_board((), results[:1], RunFacts("2026-11-21T08:00:00Z", "m"))
        data = columns_data({}, [Compared(f"m{place}", board, (each,), "") for place, each in enumerate(results)])
        (tally,) = data.overview["examples"]
        return int(tally["prompts_differ"])

    assert (1, 0) == (differ("user", "system"), differ("user", "user"))
