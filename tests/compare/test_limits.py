"""Limits on time, tokens and cost: what a board took, and which limits it does not keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.compare.gate import GateSettings, decide
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.aggregations import spent
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row


def results(times: Sequence[float | None], task: str = "sums", **fields: Any) -> list[ExampleResult]:
    return [
        ExampleResult(task, f"e{n}", "passed", 1.0, 1.0, "exact_match", f"h{n}", **{"latency_ms": time} | fields)
        for n, time in enumerate(times)
    ]


def board(*tasks: Sequence[ExampleResult], **facts: Any) -> Leaderboard:
    return build_board((), [result for task in tasks for result in task], RunFacts("t", "stub.v1", **facts))


def test_every_request_counts_and_no_cached_answer() -> None:
    several = results([2.0] * 10, request_ms=(1.0, 3.0))
    cached = results([None] * 5, task="words", cached=1)
    found = board(several, cached)
    assert (20, 1.0, 3.0) == tuple(found.tasks[0].spent[name] for name in ("requests", "p50_ms", "p95_ms"))
    assert {"cached": 5, "cost": 0.0, "cost_per_example": 0.0} == found.tasks[1].spent
    assert 5 == found.spent["cached"]


def test_cached_answers_count_with_the_tokens_that_they_took_and_what_was_paid_now() -> None:
    asked = results([1.0] * 4, usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.5})
    partly = results([1.0], task="sums", usage={"prompt_tokens": 1000, "cost": 2.0}, cached=1)
    found = spent([*asked, *partly])
    # An answer out of the cache cost nothing.
    assert (212, 0.8, 4.0) == tuple(found[name] for name in ("tokens_per_example", "cost_per_example", "cost"))
    assert {"cached": 20, "cost": 0.0, "cost_per_example": 0.0} == spent(results([None] * 20, cached=1))


def test_what_only_some_examples_tell_is_never_compared_with_a_limit() -> None:
    told, untold = results([1.0], usage={"cost": 0.001, "prompt_tokens": 3}), results([1.0] * 19, "more")
    failed = [
        ExampleResult("sums", "x", "error", None, 1.0, "exact_match", "hx", error="paid for, and lost"),
        *results([1.0] * 4, usage={"cost": 0.001}),
    ]
    for found, limit, reason in (
        (board(told, untold), "overall.cost", "the cost of only 1 of 20 examples is known; the limit is 5"),
        (board(told, untold), "overall.cost_per_example", "the cost of only 1 of 20 examples is known; the limit is 5"),
        (
            board(told, untold),
            "overall.tokens_per_example",
            "the tokens of only 1 of 20 examples is known; the limit is 5",
        ),
        (board(failed, max_errors=1), "sums.cost", "the cost of only 4 of 5 examples is known; the limit is 5"),
    ):
        decision = decide(found, None, GateSettings(limits={limit: 5.0}))
        assert ("limit", f"{limit}: {reason}", 1) == (decision.verdict, decision.reasons[0], decision.exit_code)
    # Some requests of an example are not all of them.
    judged = board(results([1.0], usage={"cost": 0.001, "cost_unknown": 1}))
    assert 0.001 == judged.spent["cost"]
    (reason,) = decide(judged, None, GateSettings(limits={"overall.cost": 5.0})).reasons
    assert "overall.cost: the cost of only 0 of 1 examples is known; the limit is 5" == reason
    # What is known of all is compared; a function that asked nobody owes nothing.
    silent = results([None], "quiet")
    assert "pass" == decide(board(told, silent), None, GateSettings(limits={"overall.cost": 5.0})).verdict


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [
        ("sums.p95_ms", 8.0, "sums.p95_ms: 9 is over its limit 8"),
        ("sums.p95_ms", 9.0, ""),
        ("overall.p50_ms", 1.0, "overall.p50_ms: 4 is over its limit 1"),
        ("few.p95_ms", 1.0, "few.p95_ms: only 3 request(s) were timed, and 20 are needed; the limit is 1"),
        (
            "sums.ttft_p95_ms",
            1.0,
            "sums.ttft_p95_ms: unknown; the limit is 1: fewer than 20 answers came as a stream (openai: "
            "--lm-adapter-arg=stream=true)",
        ),
        ("sums.cost", 1.0, "sums.cost: 2 is over its limit 1"),
        ("sums.cost_per_example", 0.1, ""),
        ("few.cost", 1.0, "few.cost: unknown; the limit is 1: no answer reports its cost"),
    ],
)
@pytest.mark.parametrize("mode", ["examples", "tasks", "none"])
def test_a_limit_that_is_not_kept_fails_the_run_in_every_mode_but_none(
    limit: str, most: float, reason: str, mode: str
) -> None:
    sums = results([float(n % 10) for n in range(20)], usage={"cost": 0.1})
    decision = decide(board(sums, results([1.0] * 3, "few")), None, GateSettings(mode=mode, limits={limit: most}))
    binds = bool(reason) and mode != "none"
    assert ("limit" if binds else "pass", int(binds)) == (decision.verdict, decision.exit_code)
    said = f"{reason}; the gate is off ('none'): this does not fail the run" if mode == "none" else reason
    assert ([said] if reason else []) == list(decision.reasons)


def test_a_shard_is_not_judged_and_a_limit_of_no_task_is_a_doubt() -> None:
    part = board(results([9.0] * 20), selection={"shard": "1/2"})
    assert "pass" == decide(part, None, GateSettings(limits={"sums.p95_ms": 1.0})).verdict
    decision = decide(board(results([9.0] * 20)), None, GateSettings(limits={"other.p95_ms": 1.0}))
    assert ("pass", ("limit not checked, this run has no task of that name: other",)) == (
        decision.verdict,
        decision.warnings,
    )


@each_row("limits", [{"p95_ms": 1.0}, {"sums.p90_ms": 1.0}, {"sums.cost": -1.0}, {"sums.cost": float("nan")}])
def test_limits_that_cannot_be_meant_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        GateSettings(limits=limits)


def test_the_duration_of_an_example_is_a_limit_of_eval_functions() -> None:
    fields: dict[str, Any] = {"metric": "function", "usage": {}}
    took = [
        *({"duration_ms": float(ms)} for ms in range(100, 119)),
        {"duration_ms": [500.0, 900.0]},
        # What a file may hold in its place is passed over.
        {"duration_ms": "slow"},
    ]
    several = [each for details in took for each in results([None], details=details, **fields)]
    cached = results([None], details={"duration_ms": 0.1}, cached=1, **fields)
    failed = [replace(each, status="error", score=None, cached=0) for each in cached]
    known = spent([*several, *cached, *failed])
    assert (21, 110.0, 500.0) == (known["durations"], known["duration_p50_ms"], known["duration_p95_ms"])
    limits = {"sums.duration_p95_ms": 400.0}
    decision = decide(board(several), settings=GateSettings(limits=limits))
    assert ("limit", "sums.duration_p95_ms: 500 is over its limit 400") == (decision.verdict, decision.reasons[0])
    few = decide(board(several[:3]), settings=GateSettings(limits=limits))
    said = "sums.duration_p95_ms: only 3 call(s) of a function were timed, and 20 are needed; the limit is 400"
    assert ("limit", said) == (few.verdict, few.reasons[0])
