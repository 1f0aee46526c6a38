"""The page on tasks in Python: its files run, its import lines are enough, its messages are the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Project

PAGE = (Path(__file__).parents[3] / "docs" / "python-tasks.md").read_text(encoding="utf-8")
FILES = {
    **dict(re.findall(r"```(?:python|yaml)\n# ((?:tasks/|conftest)\S+)\n(.*?)```", PAGE, re.DOTALL)),
    **dict(re.findall(r"`(tasks/\S+)`:\n\n```jsonl\n(.*?)```", PAGE, re.DOTALL)),
}
MESSAGES = re.findall(r"^(tasks/task_capitals\.py:\d+: .*)$", PAGE, re.MULTILINE)
CHANGES = [
    ("    METRICS = [AccuracyCompletion, Rouge1]\n", ""),
    ('"test"', '"tset"'),
    ('item["capital"]', 'item["city"]'),
    ("from pytest_lmeval.tasks", "import rouge\nfrom pytest_lmeval.tasks"),
]
MODEL = """
class Model:
    name = "stub"
    exact = True

    def generate(self, prompts):
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        if "capital of Chad" in prompt:
            return "N'Djamena"
        return "B" if "sore throat" in prompt else "A" if "Chest pain" in prompt else prompt


class Judge:
    name = "judge"

    def generate(self, prompts):
        return ["Curt." if "exactly one of these labels: polite, curt, rude." in prompt else "?" for prompt in prompts]
"""


@pytest.fixture
def page(project: Project) -> Project:
    """Provide a project with the files of the page, the conftest aside."""
    project.write("model.py", MODEL)
    for name, text in FILES.items():
        if name != "conftest.py":
            # The first line of the block names the file: kept, so that line numbers are those of the page.
            project.write(name, text if name.endswith(".jsonl") else f"# {name}\n{text}")
    record = '{"prompt": "2", "targets": ["2"], "metric": "exact_match"}\n'
    project.write("tasks/arithmetic.jsonl", record)
    return project


def test_the_tasks_of_the_page_run(page: Project) -> None:
    page.run("tasks", "--lm-gate=none", "--lm-judge=model:Judge")

    scores = {row["task"]: row["score"] for row in page.board()["tasks"]}
    assert {"Capitals": 0.5, "Replies": 0.5, "Triage": 1.0, "arithmetic": 1.0, "mixed": 1.0} == scores


def test_the_conftest_of_the_page_chooses_another_format(page: Project) -> None:
    page.write("conftest.py", FILES["conftest.py"])
    page.run("tasks/task_capitals.py", "--lm-gate=none", "--lm-include-per-example")

    assert page.examples()["Capitals:ex-0"]["prompt"].endswith("<|im_end|>\n<|im_start|>assistant\nAnswer:")


@pytest.mark.parametrize(("change", "message"), list(zip(CHANGES, MESSAGES, strict=True)))
def test_the_messages_of_the_page_are_the_real_ones(
    page: Project, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], message: str
) -> None:
    from pytest_lmeval.formats.files import load_file
    from pytest_lmeval.loading import default_registry

    monkeypatch.chdir(page.path)
    path = Path("tasks/task_capitals.py")
    source = path.read_text()
    assert change[0] in source
    path.write_text(source.replace(*change))
    (error,) = load_file(path, "capitals", default_registry(entry_points=False)).errors

    assert message == error.at(path)


def test_the_import_lines_after_a_port_are_enough() -> None:
    after = re.findall(r"After:\n\n```python\n(.*?)```", PAGE, re.DOTALL)

    assert 2 == len(after)
    for lines in after:
        exec(lines, {})


def test_the_page_names_every_class_that_a_task_file_may_import() -> None:
    from pytest_lmeval import tasks

    assert [] == [name for name in tasks.__all__ if name not in PAGE and name not in ("Message", "Score")]
