"""Eval-framework's own modules, with other import lines, ask and score as they do there.

They are no part of this project: ``LMEVAL_TESTS_EVAL_FRAMEWORK`` names the root of a clone, and
``LMEVAL_TESTS_EVAL_FRAMEWORK_PYTHON`` a Python that has what it imports, by default that of the clone's ``.venv``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.compat.eval_framework import LanguageRawConsistencyChecker
from pytest_lmeval.formats.files import load_file
from pytest_lmeval.formats.task import LoadOptions
from pytest_lmeval.loading import default_registry
from pytest_lmeval.sandbox import Sandbox
from pytest_lmeval.task import Task, render
from pytest_lmeval.types import Generate, LogLikelihood

from .own_modules import BENCHMARKS, MODULES, data
from .test_eval_framework import METRICS, score_of, value_of

CHECKOUT = Path(os.environ.get("LMEVAL_TESTS_EVAL_FRAMEWORK", ""))
PYTHON = os.environ.get("LMEVAL_TESTS_EVAL_FRAMEWORK_PYTHON", str(CHECKOUT / ".venv" / "bin" / "python"))
ROOT = Path(__file__).parents[3]
# Its ground truth is a letter and none of the completions: it scores 0 there whatever a model does.
REFUSED = {"CommonsenseQACloze"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHECKOUT == Path(), reason="LMEVAL_TESTS_EVAL_FRAMEWORK names no clone of eval-framework"),
]


def imported_from_here(source: str) -> str:
    """Return a module's source with the import lines that docs/python-tasks.md tells to write."""
    source = re.sub(r"from eval_framework\.tasks\.benchmarks\.(\w+) import", r"from .task_\1 import", source)
    source = re.sub(r"from (eval_framework|template_formatting)[.\w]* import", f"from {NAMES} import", source)
    return re.sub(r"from datasets import .*", f"from {NAMES} import load_dataset", source)


HAS_LANGUAGES = find_spec("lingua") is not None
NAMES = "pytest_lmeval.compat.eval_framework"


@pytest.fixture(autouse=True)
def without_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find no language in any text where the package that does is not installed."""
    if not HAS_LANGUAGES:
        monkeypatch.setattr(sys.modules[LanguageRawConsistencyChecker.__module__], "_language_of", lambda text: "")


@pytest.fixture(scope="module")
def records() -> Any:
    """Provide what the original asks and scores."""
    command = [PYTHON, "-m", "tests.golden.eval_framework.ask_original", str(CHECKOUT.resolve())]
    rows = json.dumps(data(CHECKOUT))
    # What is found for this Python need not be for that one.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, input=rows, capture_output=True, text=True, check=False, cwd=ROOT, env=own)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("{") :])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the modules with other import lines beside the rows."""
    folder = tmp_path_factory.mktemp("modules")
    for name in (*MODULES, "mmlu"):
        source = (CHECKOUT / BENCHMARKS / f"{name}.py").read_text("utf-8")
        (folder / f"task_{name}.py").write_text(imported_from_here(source), encoding="utf-8")
    for path, configurations in data(CHECKOUT).items():
        for configuration, splits in configurations.items():
            place = folder / path / configuration
            place.mkdir(parents=True, exist_ok=True)
            for split, rows in splits.items():
                (place / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_the_modules_ask_and_score_as_they_do_there(records: Any, folder: Path, sandbox: Sandbox) -> None:
    # In one test: what the original says takes a while, and tests are spread over processes.
    for name in MODULES:
        for num_fewshot in (0, 2):
            _compare_module(name, num_fewshot, records, folder, sandbox)


def _compare_module(name: str, num_fewshot: int, records: Any, folder: Path, sandbox: Sandbox) -> None:
    options = LoadOptions(num_fewshot=num_fewshot)
    loaded = load_file(folder / f"task_{name}.py", name, default_registry(entry_points=False), options=options)
    tasks = {task.name: task for task in loaded.tasks}
    wanted = {label: record[str(num_fewshot)] for label, record in records[name].items()}
    left_out = {label for label, record in wanted.items() if record is None} | REFUSED & wanted.keys()

    assert wanted.keys() - left_out == tasks.keys(), loaded.errors
    assert len(left_out) == len({error.field.partition(".")[0] for error in loaded.errors})
    for label, task in tasks.items():
        _compare(f"{label}, {num_fewshot} few-shots", task, wanted[label], sandbox)


def _compare(label: str, task: Task, record: dict[str, Any], sandbox: Sandbox) -> None:
    for sample, example in zip(record["samples"], task.examples, strict=True):
        requests = task.requests(example, render(example))
        truth = sample["ground_truth"]
        assert sample["messages"] == [[message.role, message.content] for message in example.messages], label
        assert {sample["text"]} == {one.text if isinstance(one, Generate) else one.context for one in requests}
        assert ((truth,) if isinstance(truth, str) else tuple(truth)) == example.targets
        if record["generates"]:
            limits = tuple(record["stop_sequences"] or ()), record["max_tokens"]
            assert [limits] == [(one.stop, one.max_tokens) for one in requests if isinstance(one, Generate)]
        else:
            options = [one.continuation for one in requests if isinstance(one, LogLikelihood)]
            assert list(dict.fromkeys(sample["possible_completions"])) == options
        for answer in sample["answers"]:
            score = score_of(task, example, answer, sandbox)
            if "prediction" in answer:
                assert answer["prediction"] == score.prediction
            wanted = {name: value for name, value in answer["scores"].items() if _is_compared(name)}
            ours = {name: value_of(score, METRICS[name], task.metric) for name in wanted}
            assert pytest.approx(wanted) == ours, (label, answer)


def _is_compared(metric: str) -> bool:
    return metric != "LanguageRawConsistencyChecker" or HAS_LANGUAGES
