"""The board, the gate and the comparison fit a terminal of 80 columns; ``-v`` and the reports have all of them."""

from __future__ import annotations

import pytest

from pytest_lmeval.text import escape_markdown
from tests.conftest import Project

LONG = "a_task_of_{}_whose_name_goes_on_and_on_until_it_needs_a_line_of_its_own"
LABELS = [f"provider-{n}-of-models-instruct-2026-11-27" for n in range(6)]
MODEL = """
class Model:
    name = "the-model-of-a-provider-with-a-name-of-many-parts-1.2.3-instruct-preview-2026-11-27"

    def __init__(self, wrong=0):
        self.wrong = wrong

    def generate(self, prompts):
        return ["no" if int(prompt.split()[-1]) < self.wrong else prompt.split("say: ")[-1] for prompt in prompts]
"""
WRONG = "--lm-adapter-arg=wrong=15"
AGAINST = ("--lm-baseline=baseline.json",)


@pytest.fixture
def narrow(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("COLUMNS", "80")
    project.write("long_model.py", MODEL)
    project.usual = ("--lm-adapter=long_model:Model",)
    for name in ("sums", "words"):
        records = [project.record(f"an-example-whose-id-is-long-too-{n}", f"this is {n}") for n in range(30)]
        project.task(f"tasks/{LONG.format(name)}.jsonl", *records)
    return project


def _section(result: pytest.RunResult) -> list[str]:
    """Return the lines from the first board on."""
    lines = result.outlines
    return lines[next(number for number, line in enumerate(lines) if "= leaderboard: " in line) :]


def _reasons(section: list[str], of: str) -> list[str]:
    """Return the lines of the reason that begins with ``of``."""
    start = next(number for number, line in enumerate(section) if line.startswith(f"  {of}"))
    return [section[start], *(line for line in section[start + 1 : start + 4] if line.startswith("    "))]


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_a_board_fits_without_a_baseline_and_with_one(narrow: Project, options: tuple[str, ...]) -> None:
    first = narrow.run("tasks", *AGAINST, "--lm-update-baseline", *options)
    assert [] == [line for line in _section(first) if len(line) > 80]
    second = narrow.run("tasks", *AGAINST, WRONG, *options)
    section = _section(second)
    assert [] == [line for line in section if len(line) > 80]
    # Names lose their middle, and columns go in their order: of scores none that has a value, of changes two.
    assert {"task", "metric", "score", "correct", "ms"} <= {*section[1].split()}
    assert "against the baseline verdict was change p adjusted worse better" == " ".join(section[5].split())
    assert section[6].startswith("a_task_of_")
    assert "..." in section[6].split()[0]
    reason = _reasons(section, "a_task_of_sums")
    assert (1 if options else 2) == len(reason)
    assert all(line.endswith(" ...") for line in reason[-1:])
    assert ("shortened to 80 columns; -v shows all, as the reports do" in section) == (not options)


def test_nothing_is_shortened_under_v_and_in_the_reports(narrow: Project) -> None:
    narrow.run("tasks", *AGAINST, "--lm-update-baseline")
    section = _section(narrow.run("tasks", *AGAINST, WRONG, "-v"))
    reasons = narrow.board()["gate"]["reasons"]
    assert [] == [reason for reason in reasons if f"  {reason}" not in section]
    markdown = (narrow.path / "reports" / "leaderboard.md").read_text("utf-8")
    assert [] == [text for text in ("interval", *reasons) if escape_markdown(text) not in markdown]
    headings = "against the baseline verdict was is change interval p adjusted worse better"
    assert headings == " ".join(section[5].split())
    assert not any("..." in line.split()[0] for line in section[1:9])


def test_a_comparison_of_several_models_fits(narrow: Project) -> None:
    narrow.usual = [f"--lm-adapter={label}=long_model:Model" for label in LABELS] + [
        f"--lm-adapter-arg={label}:wrong={2 * place}" for place, label in enumerate(LABELS)
    ]
    section = _section(narrow.run("tasks", "--lm-gate=none"))
    assert [] == [line for line in section if len(line) > 80]
    comparison = section[next(number for number, line in enumerate(section) if " comparison " in line) :]
    heading = next(line for line in comparison if line.startswith("model"))
    assert {"verdict", "score", "best", "p"} <= {*heading.split()}
    assert "interval:" not in " ".join(comparison)
    # The tasks by model come in tables of as many models as fit, and no two models look the same.
    names = [line.split()[1:-1] for line in comparison if line.startswith("task ")]
    assert [3, 3] == [len(each) for each in names]
    assert 6 == len({name for each in names for name in each})
