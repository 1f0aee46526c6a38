"""What is measured: task files, the same examples as a parametrized test, an instant model, an unrelated test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

__all__ = ["eval_file", "plain_file", "task_file", "write_scene"]

_MODEL = '''
"""Models that answer at once: what is left is the cost of the harness."""


class Right:
    name = "right"

    def generate(self, prompts):
        return [prompt.rpartition(" ")[2] for prompt in prompts]


class Wrong:
    name = "wrong"

    def generate(self, prompts):
        return ["wrong" for prompt in prompts]
'''

_PLAIN_TEST = """
import json
from pathlib import Path

import pytest

from instant import {model}

MODEL = {model}()
LINES = Path(__file__).with_name("{tasks}").read_text(encoding="utf-8").splitlines()
EXAMPLES = [json.loads(line) for line in LINES]


@pytest.mark.parametrize(
    ("prompt", "target"),
    [(example["prompt"], example["targets"][0]) for example in EXAMPLES],
    ids=[example["task_id"] for example in EXAMPLES],
)
def test_example(prompt, target):
    assert MODEL.generate([prompt])[0] == target
"""

_EVAL_TEST = """
import json
from pathlib import Path

from pytest_lmeval import eval_task


@eval_task("words_n{examples}", data="{tasks}")
async def test_word(row, lm):
    with lm.span("look_up", "tool") as step:
        step.output = [row["targets"][0]]
    reply = await lm.ask(row["prompt"])
    lm.step("tool", "keep", {{"word": reply.text}}, True)
    lm.score("same", reply.text == row["targets"][0])
"""

# Takes out what an example and the run pay for the board and the ledger: the hashes, the result as JSON on the
# report, and all that the recorder does with it. Collecting, asking, scoring and reporting stay as they are.
_UNRECORDED = """
from pytest_lmeval.scoring import evaluate
from pytest_lmeval.plugin.asking.item import ExampleItem
from pytest_lmeval.plugin.record.records import RunRecord


def take_out(owner, name, result=None):
    getattr(owner, name)  # fails where it goes by another name
    setattr(owner, name, lambda *args: result)


take_out(evaluate, "hashes_of", ("", ""))
take_out(evaluate, "request_hash", "")
take_out(ExampleItem, "attach_result")
RunRecord.open_ledger = lambda self: setattr(self, "is_open", True)
take_out(RunRecord, "take")
take_out(RunRecord, "finish", 0)
"""

_BYSTANDER = """
def test_unrelated():
    assert 1 + 1 == 2
"""


def task_file(examples: int) -> str:
    """Return the name of the task file with so many examples."""
    return f"n{examples}.jsonl"


def plain_file(examples: int, model: str = "Right") -> str:
    """Return the name of the parametrized test of the same examples."""
    return f"test_{model.lower()}_n{examples}.py"


def eval_file(examples: int) -> str:
    """Return the name of the eval function over the same examples; each has three steps."""
    return f"test_eval_n{examples}.py"


def write_scene(scene: Path, sizes: Iterable[int]) -> None:
    """Write a project with a task file, two parametrized tests and an eval of every size, and one without a task."""
    project, bystander = scene / "project", scene / "bystander"
    for folder in (project, bystander):
        folder.mkdir()
        _write(folder / "pytest.ini", ["[pytest]"])
    _write(project / "instant.py", [_MODEL])
    _write(project / "unrecorded.py", [_UNRECORDED])
    _write(bystander / "test_unrelated.py", [_BYSTANDER])
    for size in sizes:
        _write(project / task_file(size), map(_record, range(size)))
        for model in ("Right", "Wrong"):
            _write(project / plain_file(size, model), [_PLAIN_TEST.format(model=model, tasks=task_file(size))])
        _write(project / eval_file(size), [_EVAL_TEST.format(examples=size, tasks=task_file(size))])


def _write(path: Path, lines: Iterable[str]) -> None:
    # Line by line: the peak memory of a child is never below what its parent held when it started the child.
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line.strip()}\n" for line in lines)


def _record(number: int) -> str:
    record = {
        "task_id": f"word_{number:06}",
        "category": "classification",
        "prompt": f"Say this word after me and nothing else: w{number:06}",
        "targets": [f"w{number:06}"],
        "metric_name": "exact_match",
        "post_process": "strip_whitespace",
    }
    return json.dumps(record)
