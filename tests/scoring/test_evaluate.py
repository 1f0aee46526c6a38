"""From responses to a result: thresholds, statuses, scores that are none, and the content hash."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval import (
    Completion,
    ExampleResult,
    Generate,
    Message,
    Registry,
    Score,
    Task,
    default_registry,
    load_tasks,
)
from pytest_lmeval.errors import AdapterError, AdapterTimeout, SandboxError
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.scoring.evaluate import (
    ScoringRules,
    Thresholds,
    evaluate,
    failed_result,
    hashes,
    question_of,
)
from pytest_lmeval.types import ExampleQuestion, Status
from tests.formats import test_task_files as tasks
from tests.tables import each_row

COMPACT = {"id": "a", **tasks.COMPACT}
SPEC = tasks.SPEC
CODE = SPEC | {"category": "code_exec", "metric_name": "code_exec", "targets": ["f() == 1"]}
Load = Callable[..., Task]


def asked(task: Task, prompt: str) -> ExampleQuestion:
    return question_of(task, task.examples[0], prompt)


@pytest.fixture
def registry() -> Registry:
    return default_registry(entry_points=False)


@pytest.fixture
def load(tmp_path: Path, registry: Registry) -> Load:
    """Provide a function from one record to the task that a file of it is."""

    def load(record: Mapping[str, Any], name: str = "sums") -> Task:
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record))
        (task,) = load_tasks(tmp_path / f"{name}.jsonl", registry=registry)
        return task

    return load


def _evaluate(task: Task, text: str, registry: Registry, **judgement: Any) -> ExampleResult:
    overrides = judgement.pop("overrides", {})
    judged = ScoringRules(Thresholds(registry, overrides), **judgement)
    return evaluate(task, task.examples[0], asked(task, task.examples[0].prompt), [Completion(text, 2.0)], judged)


def _with_metric(load: Load, registry: Registry, function: Callable[..., Any], threshold: float = 1.0) -> Task:
    registry.add_metric("own", function, threshold=threshold)
    return load(COMPACT | {"metric": "own"})


# Results


def test_a_result_knows_everything_of_its_example(load: Load, registry: Registry) -> None:
    metadata = {"cluster": "poem", "must_pass": True}
    task = load(SPEC | {"post_process": "extract_first_line", "metadata": metadata})
    expected = ExampleResult(
        task="sums",
        id="a",
        status="passed",
        score=1.0,
        threshold=1.0,
        metric="exact_match",
        hash=hashes(task, task.examples[0], "2 + 3 =")[0],
        prompt="2 + 3 =",
        outputs=(" 5 \nI think",),
        predictions=("5",),
        targets=("5",),
        post_process="extract_first_line",
        category="arithmetic",
        latency_ms=2.0,
        adapter="stub.v1",
        request=request_hash([Generate("2 + 3 =")]),
        cluster="poem",
        must_pass=True,
        line=1,
        scoring_hash=hashes(task, task.examples[0], "2 + 3 =")[1],
    )
    assert expected == _evaluate(task, " 5 \nI think", registry, adapter="stub.v1")


def test_a_score_under_the_threshold_fails_or_is_below_where_another_gate_decides(
    load: Load, registry: Registry
) -> None:
    assert "failed" == _evaluate(load(COMPACT), "6", registry).status
    assert "below" == _evaluate(load(COMPACT), "6", registry, gated=False).status
    assert "passed" == _evaluate(load(COMPACT), "5", registry, gated=False).status


@pytest.mark.parametrize(("score", "status"), [(0.5, "passed"), (0.4999, "failed"), (1, "passed"), (0, "failed")])
def test_a_score_at_the_threshold_passes(load: Load, registry: Registry, score: float, status: str) -> None:
    task = _with_metric(load, registry, lambda *_: score, threshold=0.5)
    assert status == _evaluate(task, "", registry).status


def test_a_rule_that_found_nothing_marks_the_example_unparsed(load: Load, registry: Registry) -> None:
    task = load(SPEC | {"category": "mcq", "targets": ["B"], "post_process": "extract_letter"})
    found, nothing = (_evaluate(task, text, registry) for text in ("it is B", "no idea"))
    assert (False, True) == (found.unparsed, nothing.unparsed)
    assert ("failed", 0.0, ("",)) == (nothing.status, nothing.score, nothing.predictions)


def test_an_empty_completion_is_scored(load: Load, registry: Registry) -> None:
    result = _evaluate(load(COMPACT), "", registry)
    assert ("failed", 0.0, ("",)) == (result.status, result.score, result.outputs)


# Faults are never scored


@pytest.mark.parametrize(
    ("error", "status"),
    [(AdapterError("down"), "error"), (AdapterTimeout("late"), "timeout"), (SandboxError("x"), "error")],
)
def test_an_example_without_a_response_has_no_score(
    load: Load, registry: Registry, error: AdapterError, status: str
) -> None:
    task = load(COMPACT)
    result = failed_result(task, task.examples[0], asked(task, "2 + 3 ="), error, ScoringRules(Thresholds(registry)))
    assert (status, None, str(error)) == (result.status, result.score, result.error)
    assert ((), ()) == (result.outputs, result.predictions)
    assert hashes(task, task.examples[0], "2 + 3 =")[0] == result.hash
    assert "retries" not in result.usage


def test_the_retries_of_a_request_that_ended_in_an_error_are_counted(load: Load, registry: Registry) -> None:
    task, error = load(COMPACT), AdapterError("down")
    error.retries = 3
    result = failed_result(task, task.examples[0], asked(task, "2 + 3 ="), error, ScoringRules(Thresholds(registry)))
    assert 3 == result.usage["retries"]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(
    "value",
    [
        *[math.nan, math.inf, -math.inf, -0.0001, 1.0001, 2, 10**400, None, "1.0", [1.0], Decimal("NaN")],
        *[Score(math.nan), Score(None), Score(1.0, {"x": math.nan}), Score(1.0, {"x": object()})],  # type: ignore[arg-type]
    ],
)
def test_what_is_no_score_is_an_error_and_never_a_number(
    load: Load, registry: Registry, value: Any, gated: bool
) -> None:
    result = _evaluate(_with_metric(load, registry, lambda *_: value), "5", registry, gated=gated)
    assert ("error", None) == (result.status, result.score)
    assert "'own'" in result.error
    assert ("5",) == result.outputs
    json.loads(result.to_json())


class Half(float):
    """A float of another type, as numpy's is."""


@pytest.mark.parametrize("value", [True, 0, Half(0.5), Fraction(1, 3), Decimal("0.25")])
def test_a_score_of_another_number_type_becomes_a_plain_float(load: Load, registry: Registry, value: Any) -> None:
    result = _evaluate(_with_metric(load, registry, lambda *_: value), "5", registry)
    assert type(result.score) is float
    assert float(value) == result.score


@pytest.mark.parametrize("error", [ValueError("odd"), AssertionError("odd"), RecursionError("odd")])
def test_a_metric_that_raises_is_an_error_of_its_example(load: Load, registry: Registry, error: Exception) -> None:
    def function(*_: Any) -> float:
        raise error

    result = _evaluate(_with_metric(load, registry, function), "5", registry)
    assert ("error", None) == (result.status, result.score)
    assert f"metric 'own' raised {type(error).__name__}: odd" == result.error


def test_a_metric_that_runs_out_of_time_in_an_adapter_is_a_timeout(load: Load, registry: Registry) -> None:
    def function(*_: Any) -> float:
        raise AdapterTimeout("the judge was late")

    result = _evaluate(_with_metric(load, registry, function), "5", registry)
    assert ("timeout", None, "the judge was late") == (result.status, result.score, result.error)


# Thresholds


@pytest.mark.parametrize(
    ("metric", "threshold"),
    [
        *[("exact_match", 1.0), ("accuracy", 1.0), ("multiple_choice", 1.0), ("substring_contains", 1.0)],
        *[("code_exec", 1.0), ("f1", 0.5), ("rouge_l", 0.5), ("bleu_4", 0.9)],
    ],
)
def test_a_metric_has_its_documented_threshold(load: Load, registry: Registry, metric: str, threshold: float) -> None:
    task = load(COMPACT | {"metric": metric, "extras": {"io_pairs": [[1, 2]]}})
    assert threshold == Thresholds(registry).of(task, task.examples[0])


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, 0.3),
        ({"other": 0.1}, 0.3),
        ({"exact_match": 0.2}, 0.2),
        ({"exact_match": 0.2, "sums": 0.1}, 0.1),
        ({"sums": 0.0}, 0.0),
        ({"exact_match_normalized": 0.4}, 0.4),
    ],
)
def test_the_command_line_beats_the_record_and_a_task_beats_a_metric(
    load: Load, registry: Registry, overrides: dict[str, float], expected: float
) -> None:
    task = load(COMPACT | {"extras": {"threshold": 0.3}})
    assert expected == Thresholds(registry, overrides).of(task, task.examples[0])


def test_a_record_beats_its_metric(load: Load, registry: Registry) -> None:
    compact, spec = load(COMPACT | {"extras": {"threshold": 0}}), load(SPEC | {"metadata": {"threshold": 0.25}})
    assert 0.0 == Thresholds(registry).of(compact, compact.examples[0])
    assert 0.25 == Thresholds(registry).of(spec, spec.examples[0])


# The content hash


def _hash(task: Task, prompt: Any = None) -> str:
    return hashes(task, task.examples[0], task.examples[0].prompt if prompt is None else prompt)[0]


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "b"},
        {"category": "classification"},
        {"metadata": {"threshold": 0.5}},
        {"metadata": {"must_pass": True, "cluster": "x", "tags": ["y"], "anything": 1}},
    ],
)
def test_what_does_not_decide_the_score_leaves_the_hash(load: Load, change: dict[str, Any]) -> None:
    assert _hash(load(SPEC)) == _hash(load(SPEC | change, "another"))


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "2 + 3 = ?"},
        {"targets": ["5", "five"]},
        {"targets": ["five"]},
        {"metric_name": "f1"},
        {"post_process": "strip_whitespace"},
    ],
)
def test_what_decides_the_score_changes_the_hash(load: Load, change: dict[str, Any]) -> None:
    assert _hash(load(SPEC)) != _hash(load(SPEC | change))


def test_the_rendered_prompt_is_what_counts(load: Load) -> None:
    task = load(SPEC)
    assert 3 == len({_hash(task, prompt) for prompt in ("a", "b", (Message("user", "a"),))})


def test_a_time_limit_changes_the_hash_unless_it_is_the_default(load: Load) -> None:
    hashes = [_hash(load(CODE | {"metadata": metadata})) for metadata in ({}, {"timeout_s": 3}, {"timeout_s": 4.0})]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_extras_of_a_compact_record_change_the_hash_but_for_those_that_describe(load: Load) -> None:
    def of(**extras: Any) -> str:
        return _hash(load(COMPACT | {"metric": "code_exec", "extras": {"io_pairs": [[1, 2]]} | extras}))

    assert of() == of(threshold=0.5, must_pass=True, cluster="c", tags=["t"], category="c") == of(timeout_s=3.0)
    assert 4 == len({of(), of(io_pairs=[[1, 3]]), of(entry_point="g"), of(timeout_s=5)})


def test_the_two_meanings_of_exact_match_have_two_hashes(load: Load) -> None:
    assert _hash(load(SPEC)) != _hash(load(COMPACT))


def test_a_threshold_and_an_adapter_leave_the_hash(load: Load, registry: Registry) -> None:
    task = load(COMPACT)
    results = [
        _evaluate(task, text, registry, adapter=adapter, overrides=overrides)
        for text, adapter, overrides in (("5", "a", {}), ("6", "b", {"sums": 0.0}))
    ]
    assert results[0].hash == results[1].hash


# One line of JSON


@pytest.mark.parametrize("numbers", [(None, -0.1), ("-0.1",), (math.nan, -0.1), (-math.inf,)])
def test_log_probabilities_that_are_no_numbers_give_no_confidence(load: Load, registry: Registry, numbers: Any) -> None:
    task = load(COMPACT)
    given = [Completion("5", logprobs=each) for each in ((-0.5, -0.5), numbers)]
    results = [
        evaluate(task, task.examples[0], asked(task, "?"), [one], ScoringRules(Thresholds(registry))) for one in given
    ]
    assert [math.exp(-1.0), None] == [result.details.get("confidence") for result in results]


_RESULTS = st.builds(
    ExampleResult,
    task=st.text(),
    id=st.text(),
    status=st.sampled_from(get_args(Status)),
    metric=st.text(),
    hash=st.text(),
    score=st.none() | st.floats(0, 1),
    threshold=st.floats(0, 1),
    latency_ms=st.none() | st.floats(0, 1e9),
    details=st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
    outputs=st.lists(st.text(st.characters()), max_size=3).map(tuple),
)


@settings(deadline=None)
@given(_RESULTS)
def test_a_result_survives_its_json_whatever_the_model_wrote(result: ExampleResult) -> None:
    line = result.to_json()
    assert line.isascii()
    assert 1 == len(line.splitlines())
    assert result == ExampleResult.from_json(line) == ExampleResult.from_json(line.encode())


@each_row("text", ["\ud800", "\udfff lone", "\u2028\u0085\x00\x1b[31m", "\U0001f600"])
def test_surrogates_and_control_characters_survive(text: str) -> None:
    result = ExampleResult("t", text, "passed", 1.0, 1.0, "m", "h", outputs=(text,), predictions=(text,), error=text)
    assert result == ExampleResult.from_json(result.to_json())


def test_a_number_that_is_not_finite_is_never_written() -> None:
    result = ExampleResult("t", "a", "passed", 1.0, 1.0, "m", "h")
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(result, score=math.nan).to_json()


# Scores with more to tell


def test_details_that_are_no_json_are_an_error_that_says_so(load: Load, registry: Registry) -> None:
    task, rules, circle = load(COMPACT), ScoringRules(Thresholds(registry)), dict[str, Any]()
    circle["itself"] = circle
    found = []
    for details in (circle, {"n": math.nan}, {"n": Path()}):
        score = Score(1.0, details)
        result = evaluate(task, task.examples[0], asked(task, "?"), [Completion("5")], rules, lambda *_, it=score: it)
        found.append((result.status, result.error.partition(" raised ")[2].partition(":")[0], dict(result.details)))
    assert [("error", kind, {}) for kind in ("ValueError", "ValueError", "TypeError")] == found


def test_an_example_that_must_pass_fails_where_others_are_below_unless_nothing_binds(
    load: Load, registry: Registry
) -> None:
    task = load(SPEC | {"metadata": {"must_pass": True}})
    assert "failed" == _evaluate(task, "4", registry, gated=False).status
    assert "below" == _evaluate(task, "4", registry, gated=False, must_pass_binds=False).status


def test_further_metrics_are_kept_and_averaged_over_repeats(load: Load, registry: Registry) -> None:
    task = _with_metric(load, registry, lambda said, *_: Score(1.0, metrics={"length": len(said) / 10}))
    assert {"length": 0.1} == _evaluate(task, "5", registry).metrics
    judgement = ScoringRules(Thresholds(registry, {}), repeats=2)
    example = task.examples[0]
    twice = evaluate(task, example, asked(task, example.prompt), [Completion("5"), Completion("555")], judgement)
    assert {"length": pytest.approx(0.2)} == twice.metrics


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, "high"])
def test_a_further_metric_outside_its_range_is_an_error_of_the_example(
    load: Load, registry: Registry, value: Any
) -> None:
    result = _evaluate(_with_metric(load, registry, lambda *_: Score(1.0, metrics={"length": value})), "5", registry)
    assert ("error", None) == (result.status, result.score)
    assert "'length' gave" in result.error


def test_what_a_task_excludes_has_a_reason_and_no_score(load: Load, registry: Registry) -> None:
    task = _with_metric(load, registry, lambda *_: Score(1.0, {"language": "fr"}, excluded="not English"))
    result = _evaluate(task, "5", registry)
    assert ("excluded", None, "not English") == (result.status, result.score, result.error)
    assert {"language": "fr"} == result.details
