"""``lmeval publish``: a run as Every Eval Ever and OpenTelemetry have it, and runs of which nothing is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.interop.importers import importer
from tests import needs
from tests.cli.conftest import Lmeval
from tests.sources import PROJECTS

# Of its schema 0.3.0: the fields that must be there, and those that may. Records of this test were held against the
# whole schema once, by hand; its package needs a later Python than this one.
RECORD = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "eval_library", "model_info"}
RESULT = {"evaluation_name", "source_data", "metric_config", "score_details"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Provide a run of two tasks with two and with three examples."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(importer("lm-eval")(PROJECTS / "harness_outputs" / "outputs", path).files[path])
    return path


def test_a_record_of_every_eval_ever_has_each_task_and_metric(ledger: Path, lmeval: Lmeval) -> None:
    out = ledger.with_name("eee.json")
    assert 0 == lmeval("publish", "eee", ledger, "-o", out, "--organization=A team", "--relationship=first_party")[0]
    record = json.loads(out.read_text())

    assert RECORD | {"evaluation_results", "evaluation_timestamp"} == record.keys()
    assert ("0.3.0", "1793613600") == (record["schema_version"], record["retrieved_timestamp"])
    assert ("A team", "first_party", "evaluation_run") == tuple(
        record["source_metadata"][key] for key in ("source_organization_name", "evaluator_relationship", "source_type")
    )
    results = record["evaluation_results"]
    assert [RESULT | {"evaluation_result_id"}] * 4 == [each.keys() for each in results]
    assert [
        ("sums/exact_match,first", 0.5, 2, False, 1.0),
        ("sums/exact_match,whole", 0.0, 2, False, 1.0),
        ("towns/acc", pytest.approx(1 / 3), 3, False, 1.0),
        ("towns/acc_norm", pytest.approx(1 / 3), 3, False, 1.0),
    ] == [_summary(each) for each in results]


def _summary(result: dict[str, Any]) -> tuple[Any, ...]:
    details, config = result["score_details"], result["metric_config"]
    samples = details["uncertainty"]["num_samples"]
    return result["evaluation_result_id"], details["score"], samples, config["lower_is_better"], config["max_score"]


def test_events_have_the_names_of_opentelemetry(ledger: Path, lmeval: Lmeval) -> None:
    names = needs.module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    out = ledger.with_name("events.json")
    assert 0 == lmeval("publish", "otel", ledger, "-o", out, "--model-id=tiny/two")[0]
    (resource,) = json.loads(out.read_text())["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    records = scope["logRecords"]
    assert {("gen_ai.evaluation.result", "1793613600000000000")} == {
        (each["eventName"], each["timeUnixNano"]) for each in records
    }
    # A score of each of five examples, and one further metric.
    assert 10 == len(records)
    found = [{each["key"]: next(iter(each["value"].values())) for each in record["attributes"]} for record in records]
    expected = {
        names.GEN_AI_EVALUATION_NAME: "exact_match,first",
        names.GEN_AI_EVALUATION_SCORE_VALUE: 0.0,
        names.GEN_AI_EVALUATION_SCORE_LABEL: "fail",
        names.GEN_AI_REQUEST_MODEL: "tiny/two",
        "lmeval.task": "sums",
        "lmeval.example": "1",
    }
    assert expected in found


def test_examples_without_a_score_are_events_with_an_error(ledger: Path, lmeval: Lmeval) -> None:
    lines = ledger.read_text().splitlines(keepends=True)
    result = json.loads(lines[1]) | {"status": "timeout", "score": None, "error": "late"}
    ledger.write_text("".join([lines[0], json.dumps(result) + "\n"]))
    out = ledger.with_name("events.json")
    assert 0 == lmeval("publish", "otel", ledger, "-o", out)[0]
    (record,) = json.loads(out.read_text())["resourceLogs"][0]["scopeLogs"][0]["logRecords"]

    assert {"key": "error.type", "value": {"stringValue": "timeout"}} in record["attributes"]
    assert 2 == lmeval("publish", "eee", ledger, "-o", out)[0]


def test_what_cannot_be_published_is_refused(ledger: Path, lmeval: Lmeval) -> None:
    torn = ledger.with_name("torn.jsonl")
    torn.write_text("".join(ledger.read_text().splitlines(keepends=True)[:3]))
    out = ledger.with_name("out.json")
    assert "this is the run to read" in lmeval("publish", "otel", ledger, "-o", ledger)[2]
    assert "the run is not complete" in lmeval("publish", "eee", torn, "-o", out)[2]
    assert "cannot be read" in lmeval("publish", "otel", ledger.with_name("no.jsonl"), "-o", out)[2]
    assert not out.exists()
