"""What is asked in other ways than by a prompt, on a real cluster: log-likelihoods, a model of `hf`, eval functions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import needs
from tests.adapters.hf import tiny_model
from tests.adapters.ray.conftest import options
from tests.conftest import Project

pytestmark = [pytest.mark.slow, pytest.mark.command_line]
BEES = [
    {"query": "Bees make", "choices": ["honey", "a web of silk"], "gold": 0},
    {"query": "Sheep grow", "choices": ["honey", "grass"], "gold": 1},
    {"query": "Bees eat", "choices": ["glass", "honey"], "gold": 1},
]
EVAL = """
from pytest_lmeval import eval_task

@eval_task("greets", data=[{"id": str(n), "said": f"hello {n}"} for n in range(12)])
async def test_greets(row, lm):
    first = (await lm.ask(f"say: {row['said']}")).text
    lm.score("same", (await lm.ask(f"say: {first}")).text == row["said"])
"""


def _same_as_alone(project: Project, model: str, target: str, *others: str) -> None:
    """Run ``target`` with two replicas of ``model`` and with the model itself; the boards have one digest."""
    common = [target, "--lm-gate=none", "--lm-include-per-example", *others]
    spread = project.run_pytest(f"--lm-adapter=ray:{model}", *options(replicas=2), *common)
    assert 0 == spread.ret, spread.outlines
    board = project.board()
    assert {0} == {board["manifest"]["model"]["deaths"], board["counts"]["errors"]}
    alone = project.run_pytest(f"--lm-adapter={model}", *common, "--lm-report-dir=alone")
    assert 0 == alone.ret, alone.outlines
    assert project.board("alone")["digest"] == board["digest"]


def _write_bundle(project: Project) -> None:
    entry = {"label": "bees", "dataset_uri": "bees.jsonl", "num_fewshot": [1], "icl_task_type": "multiple_choice"}
    project.write("core/core.yaml", json.dumps({"icl_tasks": [entry]}))
    project.write("core/eval_meta_data.csv", "Eval Task,Random baseline\nbees,50\n")
    project.write("core/eval_data/bees.jsonl", "".join(f"{json.dumps(record)}\n" for record in BEES))


@pytest.fixture
def tiny(spread: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide a project with the folder of a tiny Llama."""
    needs.module("torch", "torch", "needs torch and transformers")
    needs.module("transformers", "torch", "needs torch and transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder: Path = tiny_model.build_chat_llama(tmp_path_factory.mktemp("ray") / "llama")
    (spread.path / "model").symlink_to(folder)
    return spread


def test_log_likelihoods_are_those_of_one_process(spread: Project) -> None:
    _write_bundle(spread)
    _same_as_alone(spread, "toy", "core/core.yaml")
    assert [3] == [row["total"] for row in spread.board()["tasks"]]


def test_a_model_of_hf_answers_as_in_one_process(tiny: Project) -> None:
    facts = [{"id": f"f{n}", "prompt": q, "targets": [a]} for n, (q, a) in enumerate(tiny_model.FACTS)]
    tiny.task("tasks/facts.jsonl", *[{**fact, "metric": "exact_match"} for fact in facts])
    _write_bundle(tiny)
    given = ["--lm-adapter-arg", "device=cpu", "--lm-adapter-arg", "max_new_tokens=20"]
    _same_as_alone(tiny, "hf:model", "tasks", "core/core.yaml", *given)
    assert {"facts": 1.0}.items() <= {row["task"]: row["score"] for row in tiny.board()["tasks"]}.items()


def test_eval_functions_ask_replicas(spread: Project) -> None:
    spread.write("tests/test_greets.py", EVAL)
    _same_as_alone(spread, "remote:Model", "tests")
    assert [(12, 1.0)] == [(row["total"], row["score"]) for row in spread.board()["tasks"]]
