"""Functions of harness tasks that draw at random draw the same in every run, and as the harness does."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.conftest import BOTH, Project

MODEL = """
import json
from pytest_lmeval import LogProb

class Model:
    name = "m"
    def generate(self, prompts):
        return ["a"] * len(prompts)
    def loglikelihood(self, requests):
        with open("asked.txt", "a") as file:
            for each in requests:
                file.write(json.dumps([f"{each.task}.{each.id}", each.context, each.continuation]) + "\\n")
        return [LogProb(-float(sum(map(ord, each.context + each.continuation)) % 97)) for each in requests]
"""
FUNCTIONS = """
import random

def process_docs(dataset):
    def drawn(doc):
        options = list(doc["options"])
        random.shuffle(options)
        return {"options": options}
    return dataset.map(drawn)

def choices(doc):
    random.shuffle(doc["options"])
    return doc["options"]
"""
TASK = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl, train: more.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: options
doc_to_target: 0
metric_list: [{metric: acc}]
"""
OF_MAP = TASK + "process_docs: !function utils.process_docs\nfewshot_split: train\n"
OF_ROWS = TASK.replace("doc_to_choice: options", "doc_to_choice: !function utils.choices")


def rows(count: int, name: str) -> list[dict[str, Any]]:
    return [{"q": f"{name}{number}", "options": [f"{number}{letter}" for letter in "abcd"]} for number in range(count)]


@pytest.fixture
def drawing(project: Project) -> Project:
    project.write("model.py", MODEL)
    project.write("given/utils.py", FUNCTIONS)
    for name, made in (("docs", rows(6, "d")), ("more", rows(4, "m"))):
        project.write(f"given/{name}.jsonl", "".join(json.dumps(row) + "\n" for row in made))
    return project


def harness_task(project: Project, name: str, text: str) -> None:
    project.write(f"given/{name}.yaml", text.replace("NAME", name))
    project.write(f"tasks/{name}.yaml", f"harness: {{from: ../given, tasks: [{name}]}}\n")


def options(project: Project, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for id, _, text in project.asked(forget=True):
        if id.startswith(f"{name}."):
            found.setdefault(id, []).append(text.strip())
    return dict(sorted(found.items()))


def in_order_of_the_harness(number: int) -> list[str]:
    """Return the options of a document: the few-shot pool is made first, then the documents, from the seed 0."""
    chance = random.Random(0)
    for row in rows(4, "m"):
        chance.shuffle(list(row["options"]))
    drawn: list[str] = []
    for row in rows(number + 1, "d"):
        drawn = list(row["options"])
        chance.shuffle(drawn)
    return drawn


@pytest.mark.parametrize("processes", BOTH)
def test_documents_are_drawn_as_in_the_harness_whatever_was_drawn_before(drawing: Project, processes: str) -> None:
    harness_task(drawing, "t", OF_MAP)
    assert 0 == drawing.run(processes, "--lm-gate=none").ret
    alone = drawing.board()
    wanted = {f"t.{number}": in_order_of_the_harness(number) for number in range(6)}
    assert wanted == options(drawing, "t")

    # Beside other tasks that draw, and in a project that does.
    harness_task(drawing, "a", OF_MAP)
    drawing.write("conftest.py", "import random\nrandom.random()\n")
    assert 0 == drawing.run(processes, "--lm-gate=none").ret
    assert wanted == options(drawing, "t")
    assert 0 == drawing.run(processes, "--lm-gate=none", "-k", "not a.").ret
    assert alone["digest"] == drawing.board("reports/selection")["digest"]


def test_what_a_function_draws_for_a_document_follows_from_the_document(drawing: Project) -> None:
    harness_task(drawing, "t", OF_ROWS)
    assert 0 == drawing.run("--lm-gate=none").ret
    whole, board = options(drawing, "t"), drawing.board()
    assert 1 < len({tuple(text[-1] for text in texts) for texts in whole.values()})
    assert 0 == drawing.run("--lm-gate=none").ret
    assert board["digest"] == drawing.board()["digest"]
    drawing.asked(forget=True)
    assert 0 == drawing.run("--lm-gate=none", "-k", "4").ret
    assert {"t.4": whole["t.4"]} == options(drawing, "t")


def test_the_generators_of_the_process_are_put_back(drawing: Project) -> None:
    harness_task(drawing, "t", OF_MAP)
    harness_task(drawing, "u", OF_ROWS)
    drawing.write(
        "conftest.py",
        "import random\n\nrandom.seed(7)\n\n"
        "def pytest_collection_finish():\n    with open('drawn.txt', 'w') as file: print(random.random(), file=file)\n",
    )
    assert 0 == drawing.run("--lm-gate=none").ret
    assert [str(random.Random(7).random())] == (drawing.path / "drawn.txt").read_text().split()


def test_a_module_that_seeds_decides_for_each_of_its_tasks(drawing: Project) -> None:
    drawing.write("given/utils.py", FUNCTIONS.replace("import random\n", "import random\nrandom.seed(42)\n", 1))
    harness_task(drawing, "t", OF_MAP)
    harness_task(drawing, "u", OF_MAP)
    assert 0 == drawing.run("--lm-gate=none").ret
    asked = drawing.asked()
    of_tasks = [[text for id, _, text in asked if id.startswith(name)] for name in ("t.", "u.")]
    assert of_tasks[0] == of_tasks[1]
    assert [f" {text}" for number in range(6) for text in in_order_of_the_harness(number)] != of_tasks[0]
