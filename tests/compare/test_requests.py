"""The options, the number and the tokens of eval functions' requests, now and in the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.compare.requests import is_other_amount, other_requests
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

NONE: Mapping[str, Any] = {}
COLD, HOT = {"temperature": 0}, {"temperature": 1.5}
OLD = None  # as an earlier version recorded a request


def step(options: Mapping[str, Any] | None, tokens: int | None = 10, kind: str = "request") -> dict[str, Any]:
    client = {"model": "m", **({} if options is None else {"options": options})}
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens - 1, "completion_tokens": 1}}
    return {"kind": kind, "key": "k", "client": client, "output": "", **usage}


def results(*examples: Sequence[dict[str, Any]], score: float | None = 1.0) -> list[ExampleResult]:
    """Return the results of examples with these steps."""
    return [
        ExampleResult(
            "t", str(n), "passed", score, 1.0, "function", hash="h", details={"function": "f", "steps": steps}
        )
        for n, steps in enumerate(examples)
    ]


def asks(*options: Mapping[str, Any] | None) -> list[ExampleResult]:
    """Return the results of examples that send one request each."""
    return results(*([step(each)] for each in options))


SEEDS = [{"seed": number} for number in range(6)]
UNKNOWN = "not compared: the options of requests: the baseline's t has none; applications' requests were sent with "
CASES: Any = (
    ("the same", asks(COLD, COLD), asks(COLD, COLD), []),
    ("none", asks(NONE, NONE), asks(NONE, NONE), []),
    ("came", asks(NONE, NONE), asks(HOT, HOT), ["t: requests have temperature 1.5 (2) now, in the baseline none (2)"]),
    ("went", asks(COLD, COLD), asks(NONE, NONE), ["t: requests have temperature none (2) now, in the baseline 0 (2)"]),
    ("other", asks(COLD, COLD), asks(HOT, HOT), ["t: requests have temperature 1.5 (2) now, in the baseline 0 (2)"]),
    ("in a part", asks(*[COLD] * 9, NONE), asks(*[COLD] * 8, NONE, NONE), []),
    ("random", asks(*SEEDS), asks(*({"seed": 9 + each["seed"]} for each in SEEDS)), []),
    (
        "random now",
        asks(*[{"seed": 1}] * 6),
        asks(*SEEDS),
        ["t: requests have seed various (6) now, in the baseline 1"],
    ),
    ("from before", asks(OLD, OLD), asks(NONE, NONE), [UNKNOWN]),
    ("from before, without a client", results([{**step(OLD), "client": {}}]), asks(HOT), []),
    ("in other examples", asks(COLD), asks(COLD, HOT), []),
    ("without a score", results([step(COLD)], score=None), asks(HOT), []),
    ("twice", asks(NONE), results([step(NONE)] * 2), ["t: 2 requests per example now", "t: 20 tokens per example now"]),
    ("half", results([step(NONE)] * 2), asks(NONE), ["t: 1 request per example now", "t: 10 tokens per example now"]),
    ("a tenth", results([step(NONE, 100)]), results([step(NONE, 110)]), []),
    (
        "more",
        results([step(NONE, 100)]),
        results([step(NONE, 111)]),
        ["t: 111 tokens per example now, in the baseline"],
    ),
    ("unknown tokens", asks(NONE), results([step(NONE, None)]), []),
    ("a forwarded request", asks(NONE), results([step(NONE), step(NONE, None, "http")]), ["t: 2 requests per example"]),
    ("a judge", asks(NONE), results([step(NONE), step(NONE, 50, "judge")]), []),
    ("no function", asks(NONE), [], []),
)


@each_row(("what", "old", "new", "said"), CASES)
def test_what_is_reported_of_requests(what: str, old: Any, new: Any, said: list[str]) -> None:
    lines = other_requests(old, new)
    assert said == [line[: len(each)] for line, each in zip(lines, said, strict=False)], what
    assert len(said) == len(lines), (what, lines)


def test_other_numbers_of_repeats_are_not_compared() -> None:
    one = results([step(NONE)])
    twice = ExampleResult(
        *("t", "0", "passed", 1.0, 1.0, "function"),
        hash="h",
        details={"function": "f", "repeats": [{"steps": [step(HOT)]}] * 2},
    )
    assert [] == other_requests(one, [twice])


def test_an_amount_is_another_one_if_it_differs_by_more_than_a_tenth() -> None:
    assert [False, True, True, False] == [
        is_other_amount(*each) for each in ((10, 11), (10, 11.5), (None, 1), (None, None))
    ]
