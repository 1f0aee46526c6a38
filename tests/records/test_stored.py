"""The results of a large ledger: what its texts say is read when it is asked for, and is the same then."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records import runfile
from pytest_lmeval.records.runfile import RunFile, read_run
from pytest_lmeval.types import RESULT_FIELDS, ExampleResult
from tests.records.run_files import result, write_ledger

LONG = "a text that is longer than what is kept, \N{SNOWMAN}, \n" * 10
TEXTS: dict[str, Any] = {
    "prompt": LONG,
    "targets": (LONG, "short"),
    "outputs": (LONG, ""),
    "predictions": (LONG,),
    "thoughts": (LONG, LONG),
    "exchanges": ({"request": "a", "repeat": 0, "output": LONG},),
    "request": "b" * 32,
    "scoring_hash": "c" * 64,
    "details": {"reason": LONG, "turns": [1, 2.0]},
}
RESULTS = [
    result("sums", "a", **TEXTS),
    result("sums", "b", 0.0, category="ten", metrics={"f1": 0.5}),
    result("words", "c", None, error=LONG, must_pass=True),
]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFile:
    """Provide a run whose texts stayed in its ledger."""
    path = write_ledger(tmp_path, RESULTS)
    monkeypatch.setattr(runfile, "LARGE", 0)
    return read_run(path)


def _results(run: RunFile) -> tuple[ExampleResult, ...]:
    assert run.results is not None
    return run.results


def test_every_field_of_a_result_is_what_the_ledger_holds(large: RunFile) -> None:
    found = _results(large)
    for expected, actual in zip(RESULTS, found, strict=True):
        for name in RESULT_FIELDS:
            assert (name, getattr(expected, name)) == (name, getattr(actual, name))
    assert [each.to_json() for each in RESULTS] == [each.to_json() for each in found]
    assert (tuple(RESULTS), found) == (found, tuple(RESULTS))
    assert found[0] != found[1]


def test_a_result_that_is_changed_or_sent_is_one_like_any_other(large: RunFile) -> None:
    (first, *_), expected = _results(large), RESULTS[0]
    assert replace(expected, status="failed") == replace(first, status="failed")
    assert replace(expected, details={}) == replace(first, details={})
    sent = pickle.loads(pickle.dumps(first))
    assert (expected, type(expected.answer)) == (sent, type(sent.answer))


def test_a_ledger_that_was_moved_is_read_on_and_one_that_was_written_anew_is_refused(large: RunFile) -> None:
    first, second, _ = _results(large)
    moved = large.path.rename(large.path.with_name("moved.jsonl"))
    assert LONG == first.prompt
    moved.write_bytes(moved.read_bytes().replace(b'"say: b"', b'"say: B"'))
    with pytest.raises(UsageError) as caught:
        _ = second.prompt
    assert f"{large.path}:3: changed while it was read; rerun the command" == str(caught.value)


def test_the_texts_of_a_large_ledger_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: dict[str, Any] = {"prompt": "p" * 50_000, "outputs": ("o" * 50_000,)}
    path = write_ledger(tmp_path, [result("sums", f"n{number}", **texts) for number in range(50)])
    monkeypatch.setattr(runfile, "LARGE", path.stat().st_size)
    tracemalloc.start()
    try:
        run = read_run(path)
        assert run.agrees
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (50, True) == (len(_results(run)), held < 1_000_000)
