"""Runs to report on, small and made up, and one with hostile text wherever text may stand."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.postprocess import extract
from pytest_lmeval.types import ExampleResult, Message, ToolCall

__all__ = [
    "HOSTILE",
    "board_of",
    "calls_wanted",
    "compared_run",
    "conversation",
    "function_result",
    "function_run",
    "hostile_run",
    "large_run",
    "prompt_of_messages",
    "result",
]

_TEXT = """The model answers each question in turn and shows how it got there, so that a reader may follow every step
of the sum before it says what the result is."""

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script>",
    "<!--<script>",
    "<img src=x onerror=window.pwned=1>",
    "\"' autofocus onfocus='window.pwned=1",
    "javascript:window.pwned=1",
    "${window.pwned=1} $data {{constructor.constructor('window.pwned=1')()}}",
    "&lt;b&gt; \u2028 \u2029 \u202egnp.exe \x00 \x1b[31m \ud800",
)


def result(id: str, said: str = "4", target: str = "4", **fields: Any) -> ExampleResult:
    """Return one scored result of a task called ``sums`` unless told otherwise."""
    rule = fields.pop("post_process", "strip_whitespace")
    extraction = extract(rule, said)
    score = fields.pop("score", float(extraction.text == target))
    defaults: dict[str, Any] = {
        "task": "sums",
        "status": "passed" if score == 1 else "failed",
        "threshold": 1.0,
        "metric": "exact_match",
        "hash": f"{fields.get('task', 'sums')}/{id}",
        "prompt": f"Question {id}: what is 2 + 2?",
        "outputs": (said,),
        "predictions": (extraction.text,),
        "targets": (target,),
        "unparsed": not extraction.found,
        "latency_ms": 120.0,
    }
    return ExampleResult(id=id, score=score, post_process=rule, **(defaults | fields))


def board_of(results: list[ExampleResult], **fields: Any) -> dict[str, Any]:
    """Return the JSON of the results' board, with ``fields`` in place of its own."""
    names = sorted({each.task for each in results})
    facts = RunFacts(
        "2026-11-21T08:26:08Z",
        fields.pop("adapter", "stub.v1"),
        max_errors=100,
        gate=fields.pop("gate", {"mode": "examples", "verdict": "pass", "reasons": []}),
        manifest=fields.pop("manifest", {"argv": ["pytest", "tasks", "--lm-adapter=stub:Model"]}),
    )
    board = build_board([TaskInfo(name, f"tasks/{name}.jsonl") for name in names], results, facts).to_json()
    return board | fields


def compared_run() -> tuple[dict[str, Any], list[ExampleResult], dict[str, Any], dict[tuple[str, str], ExampleResult]]:
    """Return board, results, comparison and baseline of a run with one example of each fate, in three tasks."""
    results = [
        result("right", line=1),
        result("wrong", "I think: 5", line=2),
        result("below", "3", status="below", line=3),
        result("error", status="error", score=None, outputs=(), predictions=(), error="503 from the server", line=4),
        result("timeout", status="timeout", score=None, outputs=(), predictions=(), error="no answer in 60 s", line=5),
        result("excluded", status="excluded", score=None, error="span is empty", line=6),
        result("unparsed", "who knows", "B", task="mcq", post_process="extract_letter"),
        result("letter", "Can't say. Surely (B).", "B", task="mcq", post_process="extract_letter"),
        *(result(f"many-{number:03d}", task="many", line=number) for number in range(250)),
    ]
    known = {(each.task, each.id): each for each in results}
    before = {key: each for key, each in known.items() if each.score is not None}
    before["sums", "wrong"] = replace(known["sums", "wrong"], outputs=("I think: 4",), score=1.0, status="passed")
    before["sums", "right"] = replace(known["sums", "right"], outputs=("7",), score=0.0, status="failed")
    change = {"paired": 2, "old": 0.75, "new": 0.5, "change": -0.25, "interval": [-0.5, 0.1], "p": 0.01}
    change |= {"p_adjusted": 0.02, "verdict": "regression", "detectable": 0.2, "worse": 1, "better": 1, "exact": True}
    comparison = {
        "tasks": [{"task": "sums", **change}],
        "pooled": {"task": "overall", **change},
        "worse": [{"task": "sums", "id": "wrong"}],
        "better": [{"task": "sums", "id": "right"}],
        "new": [{"task": "sums", "id": "below"}],
        "changed": [],
        "removed": [],
        "left_out": {},
        "verdict": "regression",
        "reasons": ["sums: 0.7500 to 0.5000"],
    }
    board = board_of(results, gate={"mode": "baseline", "verdict": "regression", "reasons": comparison["reasons"]})
    sums = next(row for row in board["tasks"] if row["task"] == "sums")
    sums["min_score"] = 0.6
    sums["confusion"] = {"yes": {"yes": 8, "no": 2}, "no": {"no": 5}}
    sums["classes"] = {"yes": {"precision": 1.0, "recall": 0.8, "f1": 0.889, "n": 10}}
    sums["calibration"] = {"ece": 0.125, "brier": 0.25, "n": 15}
    return board, results, comparison, before


def prompt_of_messages(number: int) -> ExampleResult:
    """Return an example whose prompt is a conversation; all of them begin with the same long messages."""
    shared = [Message(role, _TEXT) for role in ("system", "user", "assistant", "user")]
    asked = [Message("assistant", HOSTILE[0], (ToolCall("a", "look", "{}"),)), Message("user", f"Which is {number}?")]
    messages = (*shared, *asked)
    return result(f"e{number}", messages=messages, prompt="\n\n".join(message.content for message in messages))


def conversation(id: str = "talk") -> ExampleResult:
    """Return the result of four turns with thoughts, calls of tools, and scripts in what is said."""
    weather, first, last, evil = "How is it in Riga?", "It rains <b>hard</b>.", "Yes, a coat.", HOSTILE[0]
    calls = [{"name": "weather", "arguments": {"city": f"Riga{evil}"}}, {"name": "sky", "arguments": "{broken"}]
    scored = {"metric": "substring_contains", "post_process": "none"}
    turns = [
        {
            "user": weather,
            "said": [
                {"role": "assistant", "content": "", "calls": calls},
                {"role": "tool", "content": f"rain{evil}"},
                {"role": "tool", "content": "no sky"},
                {"role": "assistant", "content": first},
            ],
            **scored,
            "targets": ["rains", "pours"],
            "prediction": first,
            "score": 1.0,
            "passed": True,
        },
        {"user": "Thank you.", "said": [{"role": "assistant", "content": f"Welcome.{evil}"}]},
        {
            "user": "Do nothing.",
            "said": [{"role": "assistant", "content": "", "calls": calls[1:]}],
            "metric": "tool_calls",
            "targets": [],
            "prediction": "",
            "score": 0.0,
            "passed": False,
            "details": {"expected": [], "difference": "a call too many: sky({broken)"},
        },
        {
            "user": f"A coat?{evil}",
            "said": [{"role": "assistant", "content": last}],
            **scored,
            "targets": ["no coat"],
            "prediction": last,
            "score": 0.0,
            "passed": False,
        },
    ]
    thoughts = [{"thoughts": each} for each in (f"Look it up.{evil}", "So it rains.", "", "", "Rain is wet.")]
    said: dict[str, Any] = {"outputs": ("[]",), "predictions": (f"{first}\n{last}",), "targets": ()}
    return result(
        id, task="talks", metric="turns", score=0.5, details={"turns": turns}, exchanges=tuple(thoughts), line=7, **said
    )


def calls_wanted(id: str = "called") -> ExampleResult:
    """Return the result of a record that has calls in place of targets."""
    details = {"expected": ['weather(city="Riga")', "sky()"], "difference": "no call of sky()"}
    said: dict[str, Any] = {"outputs": ("nothing",), "predictions": ("nothing",), "targets": (), "score": 0.0}
    return result(id, task="talks", metric="tool_calls", post_process="none", details=details, **said)


def hostile_run() -> tuple[dict[str, Any], list[ExampleResult], dict[str, Any], dict[tuple[str, str], ExampleResult]]:
    """Return a run that has every hostile text in every field that takes text."""
    results = []
    for number, text in enumerate(HOSTILE):
        texts = {"task": text, "category": text, "cluster": text, "error": text, "metric": text}
        details = {text: text, "reason": text, "code_status": text}
        said: dict[str, Any] = {"outputs": (text, text), "predictions": (text[:9], text), "targets": (text, text)}
        one = result(f"{number}{text}", prompt=text, details=details, usage={text: 1.0}, **texts, **said)
        results.append(replace(one, score=0.0, status="failed", post_process=text))
        results.append(replace(one, id=f"e{text}", score=None, status="error"))
    steps = [{"kind": text, "name": text, "input": text, "output": {text: [text]}, "error": text} for text in HOSTILE]
    talk = {"kind": "request", "input": [{"role": text, "content": text} for text in HOSTILE], "usage": {HOSTILE[0]: 1}}
    noted = {"notes": {text: text for text in HOSTILE}, "reason": HOSTILE[3], "decided_by": HOSTILE[1]}
    scores: dict[str, Any] = {"metrics": {HOSTILE[1]: 1.0}, "prompt": json.dumps({text: text for text in HOSTILE})}
    results.append(function_result("steps", {"steps": [*steps, talk], **noted}, task=HOSTILE[1], **scores))
    everything = " ".join(HOSTILE)
    gate = {"mode": everything, "verdict": everything, "reasons": list(HOSTILE), "warnings": list(HOSTILE)}
    manifest = {"argv": ["--lm-adapter", everything], "platform": everything, everything: everything}
    board = board_of(results, adapter=everything, gate=gate, manifest=manifest, bad_records=list(HOSTILE))
    for row in board["tasks"]:
        row["confusion"] = {everything: {everything: 1}}
        row["classes"] = {everything: {"precision": 1.0, "recall": 1.0, "f1": 1.0, "n": 1}}
        row["path"] = everything
    keys = [{"task": each.task, "id": each.id} for each in results]
    comparison = {"tasks": [], "pooled": {}, "worse": keys, "new": keys, "left_out": {everything: everything}}
    before = {(each.task, each.id): replace(each, outputs=("another",)) for each in results}
    return board, results, comparison, before


def function_result(id: str, *runs: dict[str, Any], **fields: Any) -> ExampleResult:
    """Return the result of an eval function's example; each of ``runs`` is what a repeat recorded."""
    details = dict(runs[0]) if len(runs) == 1 else {"repeats": list(runs), "scores": [1.0, 0.0], "majority_score": 1.0}
    details["function"] = {"name": "test_ticket", "sha256": "0123456789abcdef"}
    said: dict[str, Any] = {"outputs": (), "predictions": (), "targets": (), "post_process": "none"}
    said |= {"metric": "function", "prompt": f'{{"id": "{id}", "text": "Where is my parcel?\\nIt is late."}}'}
    return result(id, **({"task": "support", "item": f"test_ticket[{id}]", "details": details} | said | fields))


def function_run() -> tuple[dict[str, Any], list[ExampleResult]]:
    """Return a run of eval functions: one example of each kind of step, one repeated, one with 1,000 steps.

    Beside them is a conversation.
    """
    talk: list[dict[str, Any]] = [
        {"role": role, "content": f"{role} says"} for role in ("system", "user", "tool", "user")
    ]
    talk[2] = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    called = '{"text":"","tool_calls":[{"name":"search","arguments":{"q":"tea"}}]}'
    used = {"prompt_tokens": 812, "completion_tokens": 40, "cost": 0.00123}
    steps = [
        {"kind": "request", "name": "stub.v1", "input": talk, "output": called, "ms": 800.0, "usage": used},
        {"kind": "tool", "name": "search", "input": {"q": "tea"}, "output": [1, 2], "start_ms": 800.0, "ms": 350.5},
        {"kind": "tool", "name": "open", "input": "{}", "start_ms": 1200.0, "ms": 90.0, "error": "KeyError: 'url'"},
        {"kind": "note", "name": "no time", "output": 0, "start_ms": 1300.0},
        {"kind": "judge", "name": "judge.v1", "input": "Polite?", "output": "yes", "start_ms": 1300.0, "ms": 700.0},
    ]
    noted = {"notes": {"route": "post", "tries": [1, 2]}, "decided_by": "label"}
    reason = "assert search was not called; no tool was called"
    repeats = [{"steps": steps[:2], "decided_by": "label"}, {"reason": reason, "steps": steps[2:]}]
    # Of equal length on the page, whatever they hold: rows of one task.
    many = [
        {"kind": "tool", "name": f"step-{n}", "input": {"n": n}, "output": _TEXT, "start_ms": 10.0 * n, "ms": 9.0}
        for n in range(1000)
    ]
    results = [
        function_result("one", {"steps": steps, **noted}, metrics={"label": 1.0, "polite": 0.5}, usage=used),
        function_result("two", *repeats, score=0.5, metrics={"label": 0.5}),
        function_result("many", {"steps": many}),
        function_result(
            "wrong",
            {"reason": reason},
            score=0.0,
            prompt='{"id": "wrong", "n": 12345678901234567890}',
            item="TestX::test_x[it's $HOME]",
        ),
        conversation(),
        calls_wanted(),
    ]
    return board_of(results), results


def large_run(n: int) -> list[ExampleResult]:
    """Return results of 20 tasks with about 1.5 kB of text each; one in ten is wrong."""
    draw, vocabulary = random.Random(7), _TEXT.split()

    def text(words: int) -> str:
        return " ".join(draw.choices(vocabulary, k=words))

    return [
        result(
            f"ex-{number:05d}",
            f"{text(80)}\nA: {5 if number % 10 == 0 else 4}",
            task=f"task-{number % 20:02d}",
            prompt=text(200),
            post_process="extract_answer",
            line=number,
        )
        for number in range(n)
    ]
