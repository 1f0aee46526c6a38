"""The texts of an example in tables, annotations and terminals: which they are, and that no model's text breaks out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.compare.compare import flip_record
from pytest_lmeval.compare.pairing import Pair
from pytest_lmeval.leaderboard.asked import asked
from pytest_lmeval.report.cells import MOST, cells_of, changed_cells, changed_prompts
from pytest_lmeval.report.example_tables import failed_table, flip_table
from pytest_lmeval.types import ExampleResult, Message
from tests.conftest import Project
from tests.report.html.samples import HOSTILE

PLAIN = ExampleResult(
    "sums", "a", "passed", 1.0, 1.0, "exact_match", "h", prompt="Be brief.\n\nWhat is 20 + 2?",
    predictions=("4",), targets=("4", "four"),
)  # fmt: skip
CALLED = {"text": "", "tool_calls": [{"name": "look", "arguments": {"at": 1}}]}


def function(prompt: str = "{}", *steps: Any, **details: Any) -> ExampleResult:
    known = {"function": {"name": "test_a", "sha256": ""}, "steps": [*steps], **details}
    return replace(PLAIN, metric="function", prompt=prompt, predictions=(), targets=(), details=known)


def request(said: Any, *asked: tuple[str, str], **fields: Any) -> dict[str, Any]:
    messages = [{"role": role, "content": content} for role, content in asked]
    return {"kind": "request", "input": messages, "output": said, **fields}


FIRST = request("4", ("system", "Be brief."), ("user", "2 + 2?"))


@pytest.mark.parametrize(
    ("result", "question"),
    [
        (PLAIN, "What is 20 + 2?"),
        (replace(PLAIN, prompt="The sum of two and two.\n\nAnswer:"), "The sum of two and two. Answer:"),
        (replace(PLAIN, prompt=""), ""),
        (replace(PLAIN, messages=(Message("user", "2 + 2?"), Message("assistant", "I add."))), "2 + 2?"),
        (replace(PLAIN, messages=(Message("system", "Say hello."),), prompt="Say hello."), "Say hello."),
        (function('{"id": "a", "Question": "2 + 2?"}', request("4", ("user", "Add 2 + 2."))), "2 + 2?"),
        (function('{"id": "a"}', FIRST, request("5", ("user", "3 + 2?"))), "2 + 2?"),
        (function('{"question": {"text": "nested"}}', {"kind": "request", "input": "2 + 2?", "output": "4"}), "2 + 2?"),
        (function("{}"), ""),
        (function("[1]", {"kind": "tool", "input": "x"}, request("4", ("user", None))), ""),  # type: ignore[arg-type]
        (function("not JSON", "no step"), ""),
    ],
)
def test_the_question_is_what_a_reader_takes_for_it(result: ExampleResult, question: str) -> None:
    assert question == cells_of(result).question


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (PLAIN, "4"),
        (replace(PLAIN, predictions=(" ",)), "(empty)"),
        (replace(PLAIN, predictions=()), ""),
        (function("{}", FIRST, output="four"), "four"),
        (function("{}", FIRST, request("5", ("user", "3 + 2?"))), "5"),
        (function("{}", FIRST, request(None), request("6", error="500"), request("7", cancelled=True)), "4"),
        (function("{}", request(json.dumps(CALLED))), 'look({"at":1})'),
        (function("{}", FIRST, {"kind": "judge", "output": "no"}, {"kind": "tool", "output": "x"}), "4"),
        (function("{}", repeats=[{"steps": [FIRST]}, {"steps": [request("5")]}], scores=[1.0, 0.0]), "5"),
        (function("{}", repeats=[]), ""),
        (function("{}", steps=5), ""),
        (replace(function("{}", FIRST), error="it broke"), "it broke"),
    ],
)
def test_without_an_output_the_models_last_answer_is_shown(result: ExampleResult, said: str) -> None:
    assert [said] == cells_of(result).said


def test_the_row_of_a_function_has_the_wanted_answer_and_an_empty_column_is_dropped() -> None:
    wrong = replace(function('{"answer": 4}', FIRST), status="failed", score=0.0, metrics={"right": 0.0})
    (heading,) = (line for line in failed_table([wrong]) if line.startswith("| example"))
    assert "| example | status | question | wanted | said | score |" == heading
    nothing = replace(function("{}"), status="failed", score=0.0)
    assert "| example | status | score |" in failed_table([nothing])
    flip = flip_record(Pair(replace(PLAIN, targets=()), replace(PLAIN, targets=(), score=0.0)))
    assert "| example | question | said before | says now | score before | score now |" in flip_table("t", [flip])


@pytest.mark.parametrize(
    "text", [*HOSTILE, "a | b\n| c |", "```\n# h", "\u05e9\u05dc\u05d5\u05dd \u202e", "x" * 1_000_000]
)
def test_a_text_stays_in_its_cell_and_is_short(text: str) -> None:
    old = replace(PLAIN, prompt=text, predictions=(text,), targets=(text,), id="all", task="all")
    flip = flip_record(Pair(old, replace(old, score=0.0)))
    lines = [line for line in flip_table("t", [flip]) if line.startswith("|")]
    assert [8] * 3 == [line.replace("\\|", "").count("|") for line in lines]
    assert all(len(cell) <= MOST + 3 for cell in (changed_cells(flip).question, *changed_cells(flip).said))
    assert all(len(line) <= MOST + 30 for line in changed_cells(flip).lines())
    assert "\u202e" not in lines[2]
    assert 4_000 >= len(asked(old))


def test_prompts_are_shown_from_where_they_differ() -> None:
    shared = "Answer with one word, and take care to be brief, polite and right. " * 3
    old = replace(PLAIN, prompt=f"{shared}Be slow. {'x' * 200}", scoring_hash="s")
    new = replace(PLAIN, prompt=f"{shared}Be quick. {'x' * 200}", scoring_hash="s", hash="i")
    before, now = changed_prompts(flip_record(Pair(old, new)))
    assert ("...olite and right. Be slow. x", "...olite and right. Be quick. x") == (before[:30], now[:31])
    talks = [(Message("system", f"{text}\nuser: fake"), Message("user", "Go.")) for text in ("Be slow.", "Be quick.")]
    both = Pair(*(replace(one, messages=talk) for one, talk in zip((old, new), talks, strict=True)))
    assert ("system: Be slow. user: fake user: Go.", "system: Be quick. user: fake user: Go.") == changed_prompts(
        flip_record(both)
    )


TEST = """
from pytest_lmeval import eval_task

ROWS = [{"id": f"q{n}", "question": f"Is it {n}?", "answer": "yes"} for n in range(8)]

@eval_task("all", data=ROWS)
async def test_all(row, lm):
    reply = await lm.ask(f"{row['question']} say: WORD")
    lm.score("right", reply.text == row["answer"])
"""


def test_a_red_pull_request_says_why_in_every_place(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.write("test_all.py", TEST.replace("WORD", "yes"))
    assert 0 == project.run("--lm-baseline=base.json", "--lm-update-baseline").ret
    (project.path / "summary.md").unlink()
    project.write("test_all.py", TEST.replace("WORD", "no"))
    done = project.run("--lm-baseline=base.json")
    lines = ["question: Is it 0?", "wanted: yes", "said before: yes (right 1)", "says now: no (right 0)"]
    done.stdout.fnmatch_lines(["  worse: all: q0", *[f"    {line}" for line in lines]])
    note = "%0A".join(lines)
    done.stdout.fnmatch_lines(
        [f"::error file=test_all.py,line=6,title=all%3A q0 below::scored 0, threshold 1%0A{note}"]
    )
    row = "| all: q0 | Is it 0? | yes | yes | no | right 1 | right 0 |"
    for file in ("reports/leaderboard.md", "summary.md"):
        assert row in (project.path / file).read_text()
    project.run("--lm-baseline=base.json", "--lm-shard=1/1")
    (project.path / "summary.md").unlink()
    merged = project.lmeval("merge", "reports", "-o", "whole")
    merged.stdout.fnmatch_lines(["  worse: all: q0", *[f"    {line}" for line in lines], f"::error file=*%0A{note}"])
    assert row in (project.path / "summary.md").read_text()
