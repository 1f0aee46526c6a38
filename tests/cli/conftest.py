"""Runs of real suites, made once for all tests of the commands that read them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_lmeval.cli import main
from pytest_lmeval.interop.convert.gsm8k import convert_gsm8k
from tests import needs
from tests.cli.yaml_project import write_project
from tests.conftest import NEEDLESS, MadeOnce, RunModule

GSM8K = needs.DATA / "gsm8k/example_model_solutions.jsonl"
MODEL = """
import os

class Model:
    name = "stub.v1"

    def generate(self, prompts):
        return [self.answer(prompt.rpartition("say: ")[2]) for prompt in prompts]

    def answer(self, said):
        return "hm" if said in os.environ.get("WRONG", "").split() else said
"""
Outcome = tuple[int, str, str]
Lmeval = Callable[..., Outcome]
Evaluate = Callable[..., Path]


@pytest.fixture
def lmeval(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lmeval:
    """Provide the command: it returns its exit code and what it wrote to both streams."""
    monkeypatch.delenv("COLUMNS", raising=False)  # a worker has the width of the terminal, which shortens tables

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def yaml_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a project with declarative tasks as the current folder."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def stub_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a project with two tasks of 12 and 8 examples and a model that answers all but ``WRONG`` rightly."""
    return write_stub(tmp_path_factory.mktemp("stub"))


def write_stub(folder: Path) -> Path:
    (folder / "model.py").write_text(MODEL)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "tasks").mkdir()
    for task, count in (("sums", 12), ("words", 8)):
        records = [
            {"id": f"{task}-{number}", "prompt": f"say: {task[0]}{number}", "targets": [f"{task[0]}{number}"]}
            for number in range(count)
        ]
        lines = [json.dumps({**record, "metric": "exact_match"}) + "\n" for record in records]
        (folder / f"tasks/{task}.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="session")
def base(made_once: MadeOnce, evaluate: Evaluate) -> Path:
    """Provide the report dir of a run with two wrong answers."""
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks")
    return made_once("cli-base", lambda folder: evaluate(write_stub(folder), "base", *options, wrong="s1 w1")) / "base"


@pytest.fixture(scope="session")
def bare_board(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the board of that run without per-example records, and without the ledger beside it."""
    return Path(shutil.copy(base / "leaderboard.json", tmp_path_factory.mktemp("bare")))


@pytest.fixture(scope="session")
def worse(made_once: MadeOnce, evaluate: Evaluate) -> Path:
    """Provide the report dir of a run with ten wrong answers; its board has its examples."""
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks", "--lm-include-per-example")
    wrong = "s0 s2 s3 s4 s5 s6 s7 s8 s9 w1"
    return made_once("cli-worse", lambda folder: evaluate(write_stub(folder), "worse", *options, wrong=wrong)) / "worse"


@pytest.fixture(scope="session")
def shards(made_once: MadeOnce, evaluate: Evaluate) -> list[Path]:
    """Provide the ledgers of the base run in three parts."""
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks", "--lm-min-score=overall=0.5")

    def fill(folder: Path) -> None:
        write_stub(folder)
        for part in (1, 2, 3):
            evaluate(folder, f"s{part}", *options, f"--lm-shard={part}/3", wrong="s1 w1")

    return [made_once("cli-shards", fill) / f"s{part}/ledger.jsonl" for part in (1, 2, 3)]


@pytest.fixture(scope="session")
def gsm8k(made_once: MadeOnce, evaluate: Evaluate) -> Path:
    """Provide a folder with runs of recorded GSM8K models: ``better``, ``lower``, ``broken``, ``broken-100``.

    The broken ones are the better one with 3 % of its right answers made wrong, over all examples and the first 100.
    """
    if not GSM8K.exists():
        needs.lacking("data", f"needs the published {GSM8K.name}")

    def fill(folder: Path) -> None:
        convert_gsm8k(GSM8K, folder / "gsm8k")
        (folder / "pytest.ini").write_text("[pytest]\n")
        _run_recording(evaluate, folder, "better", "gsm8k/175b_verification.replay.jsonl")
        _run_recording(evaluate, folder, "lower", "gsm8k/175b_finetuning.replay.jsonl")
        _break(folder)
        _run_recording(evaluate, folder, "broken", "broken.replay.jsonl")
        _run_recording(evaluate, folder, "broken-100", "broken.replay.jsonl", "--lm-limit=100")

    return made_once("gsm8k", fill)


@pytest.fixture(scope="session")
def evaluate(run_module: RunModule) -> Evaluate:
    """Provide a function that runs tasks in a process of its own and returns the report dir."""

    def run(folder: Path, name: str, *options: str, wrong: str = "", tasks: str = "tasks") -> Path:
        quick = ["-q", "--tb=no", *[f"-pno:{plugin}" for plugin in (*NEEDLESS, "cacheprovider")]]
        ran = run_module(folder, "pytest", *quick, tasks, *options, f"--lm-report-dir={name}", WRONG=wrong)
        assert (folder / name / "ledger.jsonl").exists(), ran.stdout + ran.stderr
        return folder / name

    return run


def _run_recording(evaluate: Evaluate, folder: Path, name: str, recording: str, *options: str) -> None:
    evaluate(folder, name, f"--lm-adapter=replay:{recording}", "--lm-gate=tasks", *options, tasks="gsm8k")


def _break(folder: Path) -> None:
    results = [json.loads(line) for line in (folder / "better/ledger.jsonl").read_text().splitlines()]
    right = [result["id"] for result in results if result.get("status") == "passed"]
    broken = set(random.Random(7).sample(right, round(0.03 * len(right))))
    outputs = [
        {"id": result["id"], "output": "A: none" if result["id"] in broken else result["outputs"][0]}
        for result in results
        if "id" in result
    ]
    (folder / "broken.replay.jsonl").write_text("".join(json.dumps(output) + "\n" for output in outputs))
