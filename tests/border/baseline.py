"""The border "a baseline": a file that an earlier run wrote, or that somebody made of one, decides about this run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_lmeval.compare.baseline import encode_baseline
from pytest_lmeval.hashes import hashes_of
from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.types import ExampleResult
from tests.border.table import Border, Row, refused_run

IDS = [f"e{number}" for number in range(8)]
TASK = "".join(
    json.dumps({"id": id, "prompt": "say: 4", "targets": ["4"], "metric": "exact_match"}) + "\n" for id in IDS
)
HASH = hashes_of("say: 4", ["4"], "exact_match_normalized", "none", {})[0]


def _result(id: str, score: float = 1.0, **fields: Any) -> ExampleResult:
    known: dict[str, Any] = {"outputs": ("4",), "predictions": ("4",), "targets": ("4",), "hash": HASH} | fields
    return ExampleResult("t", id, "passed", score, 1.0, "exact_match", **known)


def _written(adapter: str = "stub.v1", **options: Any) -> dict[str, Any]:
    facts = RunFacts("2026-01-01T00:00:00Z", adapter, options)
    found: dict[str, Any] = json.loads(encode_baseline(build_board((), [_result(id) for id in IDS], facts)))
    return found


def _changed(change: Callable[[dict[str, Any]], object], **options: Any) -> str:
    baseline = _written(**options)
    change(baseline)
    return json.dumps(baseline)


def _records(baseline: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = baseline["tasks"][0]["per_example"]
    return found


def _row(kind: str, what: str, content: str | bytes, **fields: Any) -> Row:
    known: dict[str, Any] = {"arguments": ("--lm-baseline=base.json",), "alone": True, "code": 4} | fields
    return Row(kind=kind, what=what, files={"base.json": content, **known.pop("more", {})}, **known)


def _refused(kind: str, what: str, content: str | bytes, says: str) -> Row:
    return _row(kind, what, content, fate="refused", says=says)


def _scores(*scores: Any) -> Callable[[dict[str, Any]], object]:
    return lambda baseline: [
        record.update(score=score) for record, score in zip(_records(baseline), scores, strict=False)
    ]


ASKS = """
import json, urllib.request
from pytest_lmeval import eval_task

@eval_task("asks")
def test_asks(lm):
    body = {"model": "new-model", "messages": [{"role": "user", "content": "say: 4"}]}
    urllib.request.urlopen(urllib.request.Request(f"{lm.base_url}/chat/completions", json.dumps(body).encode()))
    lm.score("right", True)
"""


def _other_model(what: str, client: dict[str, Any], code: int, says: str) -> Row:
    """Return the row of an application that asks for another model than its run of the baseline."""
    steps = [{"kind": "request", "name": "stub.v1", "output": "4", **client}]
    details = {"function": "test_asks.py::test_asks", "steps": steps}
    asked = ExampleResult("asks", "test_asks", "passed", 1.0, 1.0, "function", hash=HASH, details=details)
    board = build_board((), [*map(_result, IDS), asked], RunFacts("2026-01-01T00:00:00Z", "stub.v1"))
    known: dict[str, Any] = {"files": {"test_asks.py": ASKS, "base.json": encode_baseline(board)}}
    arguments = ("--lm-baseline=base.json", "--lm-gate=baseline")
    return Row(
        kind="changed unseen",
        what=what,
        arguments=arguments,
        alone=True,
        code=code,
        fate="reported",
        says=says,
        **known,
    )


BORDER = Border(
    name="a baseline",
    files={"tasks/t.jsonl": TASK},
    rows=(
        refused_run("absent", "no file", "--lm-baseline none.json: no such file", "--lm-baseline=none.json"),
        _refused(
            "absent", "no records of examples", _changed(lambda b: b["tasks"][0].pop("per_example")), "base.json: "
        ),
        _refused("empty", "an empty file", "", "base.json: empty; expected a leaderboard.json or a ledger.jsonl"),
        _refused("empty", "an empty list", "[]", "base.json: JSON, but not of a run"),
        _refused(
            "wrong type", "a schema that is a number", '{"schema": 5}', "schema: expected pytest-lmeval/leaderboard"
        ),
        _refused(
            "wrong type", "tasks are a number", _changed(lambda b: b.update(tasks=5)), "tasks: expected a list of"
        ),
        _refused("wrong type", "a score is text", _changed(_scores("1")), "per_example[0]: score: expected 0 to 1"),
        _refused(
            "too large",
            "a number without end",
            _changed(_scores(1e300)).replace("1e+300", "1e400"),
            "1e400 is too large for a number",
        ),
        _refused("not finite or negative", "NaN", _changed(_scores(float("nan"))), "NaN is not JSON"),
        _refused("not finite or negative", "a score below 0", _changed(_scores(-1)), "score: expected 0 to 1"),
        _refused("control characters", "not UTF-8", b"\xff\xfe{}", "base.json: not UTF-8 text"),
        _refused("twice", "a task twice", _changed(lambda b: b.update(tasks=b["tasks"] * 2)), "base.json: "),
        _refused("twice", "an example twice", _changed(lambda b: _records(b).append(_records(b)[0])), "base.json: "),
        Row(kind="late", never="the file is read once, before the first request"),
        _row(
            "out of order",
            "the records the other way round",
            _changed(lambda b: _records(b).reverse()),
            code=0,
            says="all 8 examples of the baseline were compared",
            on=("terminal", "board", "markdown", "page"),
        ),
        _refused(
            "cancelled",
            "a run that was interrupted",
            _changed(lambda b: b.update(complete=False)),
            "base.json: the run did not finish; it cannot be a baseline",
        ),
        _refused("raising", "a score that nobody measured", _changed(_scores(0.0)), "base.json: "),
        _refused(
            "raising", "another digest", _changed(lambda b: b.update(digest="0" * 64)), "base.json: changed by hand"
        ),
        refused_run(
            "raising",
            "a folder",
            "a folder; name the ledger.jsonl or the leaderboard.json in it",
            "--lm-baseline=tasks",
        ),
        _row(
            "secret",
            "a key among the adapter's options",
            _changed(lambda b: None, api_key="kept-hushed-000-secret"),
            code=0,
            unsaid="kept-hushed-000-secret",
            says="all 8 examples of the baseline were compared",
            on=("terminal",),
        ),
        _row(
            "beside",
            "plain tests that fail",
            _changed(lambda b: None),
            code=1,
            says="all 8 examples of the baseline were compared",
            on=("terminal", "board", "markdown", "page"),
            more={"test_plain.py": "def test_plain(): assert 0\n"},
        ),
        Row(kind="environment", never="a baseline is compared by its examples; where it was made decides nothing"),
        # The board that is there is the earlier run's.
        _row(
            "earlier run",
            "the board that this run moves out of its way",
            "",
            more={"reports/leaderboard.json": _changed(lambda b: None)},
            arguments=("--lm-baseline=reports/leaderboard.json",),
            says="--lm-baseline reports/leaderboard.json: this run writes that file itself",
            on=("terminal",),
        ),
        Row(kind="kept client", never="a baseline is read from a file before the run asks anything"),
        _row(
            "same name",
            "another model's run of the same examples",
            _changed(lambda b: None, adapter="other.v1"),
            code=0,
            fate="reported",
            says="compared with base.json: other.v1",
            on=("terminal", "markdown", "page"),
        ),
        _other_model(
            "the model that an application asks for",
            {"client": {"model": "old-model"}},
            1,
            "asks: requests ask for new-model (1) now, in the baseline for old-model (1);",
        ),
        _other_model(
            "a baseline without the names of models",
            {},
            0,
            "not compared: the names of models: the baseline's asks has no names of models",
        ),
    ),
)
