"""The baseline file: what git sees of it, and that it reads back as the board it was."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compare.baseline import encode_baseline, is_same
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.types import ExampleResult

A = ExampleResult(
    "sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", prompt="2 + 2 =", outputs=("4",), predictions=("4",),
    targets=("4",), latency_ms=2.0,
)  # fmt: skip
B = replace(A, id="b", status="failed", score=0.0, outputs=("5",), predictions=("5",))
MANIFEST = {"argv": ["pytest", "tasks/"], "platform": "Linux", "sandbox": "process", "seed": 0}


def _board(*results: ExampleResult, timestamp: str = "2026-11-21T08:00:00Z") -> Leaderboard:
    return build_board((), results, RunFacts(timestamp, "stub.v1", manifest=MANIFEST, gate={"mode": "none"}))


def test_an_example_is_a_line_so_that_a_diff_shows_the_examples_that_changed() -> None:
    old = encode_baseline(_board(A, B)).decode().splitlines()
    fixed = replace(B, status="passed", score=1.0, latency_ms=9.0)
    new = encode_baseline(_board(A, fixed)).decode().splitlines()
    changed = [line for line, other in zip(old, new, strict=True) if line != other and '"id"' in line]
    assert ["b"] == [json.loads(line.strip().rstrip(","))["id"] for line in changed]


def test_latencies_prompts_arguments_and_the_gate_are_left_out() -> None:
    content = json.loads(encode_baseline(_board(A)))
    assert {"sandbox": "process", "seed": 0} == content["manifest"]
    assert "gate" not in content
    assert ["", None] == [content["tasks"][0]["per_example"][0][name] for name in ("prompt", "latency_ms")]
    assert encode_baseline(_board(A)) == encode_baseline(_board(replace(A, latency_ms=77.0)))


def test_it_is_the_same_baseline_until_a_result_the_model_or_a_task_changes() -> None:
    stored = json.loads(encode_baseline(_board(A, B)))
    assert is_same(_board(B, A, timestamp="2027-01-01T00:00:00Z"), stored)
    assert not is_same(_board(A), stored)
    assert not is_same(_board(A, replace(B, outputs=("6",))), stored)
    assert not is_same(_board(A, replace(B, threshold=0.0)), stored)
    assert not is_same(replace(_board(A, B), facts=RunFacts("t", "other.v1")), stored)


@given(st.text(), st.text())
def test_whatever_a_model_wrote_is_read_back(output: str, id: str) -> None:
    result = replace(A, id=id or "x", outputs=(output,), predictions=(output,))
    board = _board(result)
    content = json.loads(encode_baseline(board))
    record = content["tasks"][0]["per_example"][0]
    assert (result.id, output) == (record["id"], record["output"])
    assert board.digest == content["digest"]
