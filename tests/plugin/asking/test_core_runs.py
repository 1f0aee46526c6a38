"""Runs of CORE tasks: a row per label, no call to a model that cannot answer, and what a resume keeps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

MODEL = """
import json, os
from pytest_lmeval.types import LogProb

HERE = os.path.dirname(__file__)

class Model:
    name = "stub.v1"

    def loglikelihood(self, requests):
        with open(os.path.join(HERE, "asked.txt"), "a") as file:
            file.write(json.dumps([[one.id, one.continuation] for one in requests]) + "\\n")
        if os.path.exists(os.path.join(HERE, "deadly.txt")) and requests[0].id == "ex-3":
            os._exit(7)
        return [self.answer(one) for one in requests]

    def answer(self, one):
        loss = 0.5 if one.continuation.strip() in ("honey", "wool", "eight") else 2.0
        tokens = tuple(-loss - place / 8 for place in range(len(one.continuation.split())))
        return LogProb(sum(tokens), tokens, loss < 1, ids=tuple(one.continuation.split()))

class Writer:
    name = "writer.v1"

    def generate(self, prompts):
        with open(os.path.join(HERE, "asked.txt"), "a") as file:
            file.write("[]\\n")
        return ["honey" for _ in prompts]
"""
BEES = [
    {"query": "Bees make", "choices": ["honey", "a web of silk"], "gold": 0},
    {"query": "Sheep grow", "choices": ["honey", "grass"], "gold": 1},
    {"query": "Jumpers are of", "choices": ["glass", "wool"], "gold": 1},
    {"query": "Bees eat", "choices": ["glass", "honey"], "gold": 1},
]
LEGS = [{"context": "A spider's legs:", "continuation": "eight"}, {"context": "A cat's:", "continuation": "four"}]


@pytest.fixture
def bundle(project: Project) -> Project:
    project.usual = ("--lm-adapter=model:Model", "core/core.yaml", "--lm-gate=none", "--lm-include-per-example")
    """Provide a project with a bundle of two tasks and one other task."""
    project.write("model.py", MODEL)
    entries: list[dict[str, Any]] = [
        {"label": "bees", "dataset_uri": "bees.jsonl", "num_fewshot": [1], "icl_task_type": "multiple_choice"},
        {"label": "legs", "dataset_uri": "legs.jsonl", "num_fewshot": [0], "icl_task_type": "language_modeling"},
    ]
    project.write("core/core.yaml", json.dumps({"icl_tasks": entries}))
    project.write("core/eval_meta_data.csv", "Eval Task,Random baseline\nbees,50\nlegs,0\n")
    for name, records in (("bees", BEES), ("legs", LEGS)):
        project.write(f"core/eval_data/{name}.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    return project


def test_every_label_is_a_row_and_the_options_of_a_batch_go_together(bundle: Project) -> None:
    done = bundle.run("--lm-batch-size=4")
    assert 0 == done.ret, done.stdout.str()
    bees, legs = bundle.board()["tasks"]
    assert [("bees", "accuracy", 0.75, 4), ("legs", "accuracy", 0.5, 2)] == [
        (row["task"], row["metric"], row["score"], row["total"]) for row in (bees, legs)
    ]
    assert {"accuracy", "acc", "acc_norm", "acc_norm_bytes", "probability_mass"} <= bees["metrics"].keys()
    examples = bundle.examples()
    first, second = examples["bees:ex-1"], examples["bees:ex-2"]
    assert ("honey", ["honey"], 0) == (first["prediction"], first["targets"], first["details"]["chosen"])
    assert (0.0, "honey") == (second["score"], second["prediction"])
    assert first["prompt"].endswith("\n\nBees make")
    begun = [["ex-1", " honey"], ["ex-1", " a web of silk"], ["ex-2", " honey"], ["ex-2", " grass"]]
    assert begun == bundle.asked()[0][:4]
    assert 12 >= sum(map(len, bundle.asked()))


def test_a_model_that_only_writes_is_not_asked(bundle: Project) -> None:
    done = bundle.run("--lm-adapter=model:Writer")
    assert 4 == done.ret
    assert [] == bundle.asked()
    done.stderr.fnmatch_lines(["*task 'bees': adapter writer.v1 has no loglikelihood, which this task is scored by*"])


def test_what_an_interrupted_run_knows_is_not_asked_again(bundle: Project) -> None:
    bundle.write("deadly.txt", "")
    bundle.run("--lm-batch-size=1", "-n1", "--max-worker-restart=0")
    (bundle.path / "deadly.txt").unlink()
    known = {each["id"] for each in bundle.ledger().values() if each["task"] == "bees" and each["score"] is not None}
    assert {"ex-1", "ex-2"} == known
    (bundle.path / "asked.txt").unlink()
    assert 0 == bundle.run("--lm-batch-size=1", "--lm-resume").ret
    again = {id for call in bundle.asked() for id, text in call if text.strip() not in ("eight", "four")}
    assert {"ex-3", "ex-4"} == again
    resumed = bundle.board()
    (bundle.path / "reports" / "ledger.jsonl").unlink()
    bundle.run()
    assert bundle.board()["digest"] == resumed["digest"]
    assert [row["metrics"] for row in bundle.board()["tasks"]] == [row["metrics"] for row in resumed["tasks"]]


def test_a_fault_of_the_bundle_stops_the_run_before_a_call(bundle: Project) -> None:
    bundle.write("core/eval_data/legs.jsonl", '{"context": "A spider\'s legs:"}\n')
    done = bundle.run()
    assert 2 == done.ret
    done.stdout.fnmatch_lines(["*core/core.yaml:1: missing_required legs.continuation: legs.jsonl:1: *"])
    assert [] == bundle.asked()


def test_the_board_centres_the_scores_and_a_table_lists_them(bundle: Project) -> None:
    bundle.run()
    board = bundle.board()
    centred = [row["metrics"]["centered"] for row in board["tasks"]]
    assert pytest.approx([(0.75 - 0.5) / 0.5, 0.5]) == centred
    assert pytest.approx(0.5) == board["core_score"]
    assert {"ece", "brier", "n"} <= board["calibration"].keys()
    table = (bundle.path / "reports/core.csv").read_text().splitlines()
    assert 2 <= len(table)
    assert any(line.startswith("bees") for line in table)


def test_a_board_without_such_tasks_has_no_core_score_and_no_table(project: Project) -> None:
    project.small_tasks()
    project.run()
    assert set() == {"core_score", "calibration"} & project.board().keys()
    assert not (project.path / "reports/core.csv").exists()
