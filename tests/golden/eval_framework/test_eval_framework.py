"""Ports of eval-framework's tasks ask what it asks, and score as it scores; see the README above this folder."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formatters import llama3
from pytest_lmeval.loading import default_registry, load_tasks
from pytest_lmeval.sandbox import Sandbox
from pytest_lmeval.task import Task, Tools, render
from pytest_lmeval.types import Completion, Example, Generate, LogLikelihood, LogProb, Score
from tests import needs

HERE = Path(__file__).parent
RECORDS: dict[str, Any] = {
    file.stem: json.loads(file.read_text("utf-8")) for file in sorted((HERE / "records").glob("*.json"))
}
PAIRS = RECORDS.pop("metrics")
PAIRED = RECORDS.pop("winogrande_cloze")
METRICS = {
    "AccuracyCompletion": "completion_accuracy",
    "AccuracyLoglikelihood": "accuracy_loglikelihood",
    "AccuracyNormLoglikelihood": "accuracy_norm_loglikelihood",
    "BitsPerByteLoglikelihood": "byte_probability",
    "ConfidenceWeightedAccuracy": "confidence_weighted_accuracy",
    "DistributionalCorrectnessScore": "distributional_correctness",
    "LanguageRawConsistencyChecker": "language_consistency_raw",
    "MathMinervaCompletion.Exact": "math_minerva_exact",
    "MathMinervaCompletion.Exact Flex": "math_minerva_flex",
    "MathMinervaCompletionRelaxed.Exact": "math_minerva_relaxed_exact",
    "MathMinervaCompletionRelaxed.Exact Flex": "math_minerva_relaxed_flex",
    "TernaryScore": "ternary_score",
    "CodeCompletionAssertion": "code_pass_at_one",
    "DropF1ExactMatch.exact_match": "drop_em",
    "DropF1ExactMatch.f1": "drop_f1",
    "F1": "f1_of_words",
    "F1SquadNormalized": "squad_f1",
    "MathReasoningCompletion": "math_equal",
}


@cache
def ports() -> dict[str, Task]:
    return {task.name: task for task in load_tasks(*sorted(HERE.glob("task_*.py")))}


def pairs_of(name: str) -> list[tuple[dict[str, Any], Example]]:
    """Return each recorded sample with the port's example."""
    return list(zip(RECORDS[name]["samples"], ports()[name].examples, strict=True))


def test_there_is_a_port_for_every_record() -> None:
    assert {*RECORDS, "winogrande_cloze"} == ports().keys()


@pytest.mark.parametrize("name", RECORDS)
def test_the_conversations_are_the_same(name: str) -> None:
    for sample, example in pairs_of(name):
        assert sample["messages"] == [[message.role, message.content] for message in example.messages]
        assert sample["llama3"] == llama3(example.messages)
        assert example.category == ("" if sample["subject"] == "no_subject" else sample["subject"])


@pytest.mark.parametrize("name", RECORDS)
def test_a_model_without_roles_reads_the_same_text(name: str) -> None:
    for sample, example in pairs_of(name):
        asked = {
            request.text if isinstance(request, Generate) else request.context
            for request in ports()[name].requests(example, render(example))
        }
        assert {sample["text"]} == asked


@pytest.mark.parametrize("name", RECORDS)
def test_ground_truth_completions_and_limits_are_the_same(name: str) -> None:
    record = RECORDS[name]
    for sample, example in pairs_of(name):
        truth = sample["ground_truth"]
        requests = ports()[name].requests(example, render(example))
        assert ((truth,) if isinstance(truth, str) else tuple(truth)) == example.targets
        if sample["possible_completions"] is None:
            (request,) = requests
            assert isinstance(request, Generate)
            assert (tuple(record["stop_sequences"] or ()), record["max_tokens"]) == (request.stop, request.max_tokens)
        else:
            options = [request.continuation for request in requests if isinstance(request, LogLikelihood)]
            assert sample["possible_completions"] == options


def scored(name: str, example: Example, answer: dict[str, Any], sandbox: Sandbox) -> Score:
    """Return what the port makes of a recorded answer."""
    return score_of(ports()[name], example, answer, sandbox)


def score_of(task: Task, example: Example, answer: dict[str, Any], sandbox: Sandbox) -> Score:
    """Return what a task makes of a recorded answer."""
    if "text" in answer:
        return task.score(example, [Completion(answer["text"])], Tools(sandbox))
    asked = task.requests(example, render(example))
    totals = [answer["loglikelihoods"][one.continuation] for one in asked if isinstance(one, LogLikelihood)]
    return task.score(example, [LogProb(total) for total in totals], Tools(sandbox))


def value_of(score: Score, metric: str, first: str) -> float:
    """Return the value of one of our metrics, as the original tells it."""
    value = score.value if metric == first else score.metrics[metric]
    if metric in ("distributional_correctness", "ternary_score"):
        return 2 * value - 1  # there from -1 to 1
    # There, the number of bits; here, what is better where it is more.
    return -math.log2(value) if metric == "byte_probability" else value


@pytest.mark.parametrize("name", RECORDS)
def test_predictions_and_scores_are_the_same(name: str, sandbox: Sandbox) -> None:
    if name.startswith("math"):
        needs.installed("math_verify")
    first = ports()[name].metric
    # The answers of these are normalised before they are compared; here, the metric does that.
    is_predicted = name not in ("math500", "math_level_5")
    for sample, example in pairs_of(name):
        for answer in sample["answers"]:
            score = scored(name, example, answer, sandbox)
            ours = {metric: value_of(score, METRICS[metric], first) for metric in answer["scores"]}
            assert pytest.approx(answer["scores"]) == ours
            if is_predicted and "prediction" in answer:
                assert answer["prediction"] == score.prediction


def test_two_samples_of_an_item_are_asked_and_scored_together() -> None:
    task = ports()["winogrande_cloze"]
    for item, example in zip(PAIRED["samples"], task.examples, strict=True):
        asked = [one for one in task.requests(example, render(example)) if isinstance(one, LogLikelihood)]
        wanted = [(sample["text"], *sample["possible_completions"]) for sample in item["pair"]]
        assert wanted == [(one.context, one.continuation) for one in asked]
        in_messages = task.requests(example, example.messages)
        assert [sample["messages"] for sample in item["pair"]] == [
            [[message.role, message.content] for message in one.messages]
            for one in in_messages
            if isinstance(one, LogLikelihood)
        ]
        for answer in item["answers"]:
            score = task.score(example, [LogProb(total) for total in answer["totals"]], Tools())
            assert answer["score"] == score.value


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: repr(pair["text"]))
def test_metrics_of_text_are_the_same(pair: dict[str, Any]) -> None:
    assert pair["scores"]["AccuracyCompletion"] == value("completion_accuracy", pair)
    assert pair["scores"]["F1SquadNormalized"] == pytest.approx(value("squad_f1", pair))


def is_plain(pair: dict[str, Any]) -> bool:
    """Tell whether all texts are several words in lower case, without punctuation."""
    return all(re.fullmatch(r"[a-z]+( [a-z]+)+", text) for text in (pair["text"], *pair["ground_truth"]))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if is_plain(pair)], ids=lambda pair: repr(pair["text"]))
def test_rouge_and_f1_are_the_same_for_plain_words(pair: dict[str, Any]) -> None:
    # Of other texts ours take the runs of letters and digits, lowercased, as rouge-score does.
    theirs = [pair["scores"][name] for name in ("F1", "ROUGE_1", "ROUGE_2", "ROUGE_L")]
    assert theirs == pytest.approx([value(name, pair) for name in ("f1", "rouge_1", "rouge_2", "rouge_l")])


def value(metric: str, pair: dict[str, Any]) -> float:
    """Return the value of a metric of ours for a recorded pair."""
    result: Any = default_registry(entry_points=False).metric(metric).function(pair["text"], pair["ground_truth"], {})
    return float(getattr(result, "value", result))
