"""What a declarative task is called besides its name, and the values it ran with, reach the board and the gate."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.yaml_project import write_project

if TYPE_CHECKING:
    from tests.conftest import Project

CONFIGS = [{"name": "a", "which": "first"}, {"name": "b", "which": "last"}]
RUN = ("tasks", "--lm-adapter=wrong:Model", "--lm-config=c.yaml", "--lm-gate=tasks")
# Picks the first option, whichever is asked for.
WRONG = """
import picker

class Model(picker.Model):
    def answer(self, prompt):
        return super().answer(prompt.replace("last", "first"))
"""


@pytest.fixture
def variants(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide a task in two variants, of which the model gets the second wrong."""
    write_project(project.path)
    project.write("wrong.py", WRONG)
    project.write("c.yaml", json.dumps(CONFIGS))
    monkeypatch.chdir(project.path)
    return project


def test_rows_have_the_key_the_display_name_and_the_values_of_their_task(variants: Project) -> None:
    assert 0 == variants.run_pytest(*RUN, "-n2").ret
    rows = {
        row["task"]: (row.get("key"), row.get("display_name"), row.get("config")) for row in variants.board()["tasks"]
    }
    assert ("the-choice", "Choice", {"which": "first"}) == rows["choice@a"]
    assert ("the-choice", "Choice", {"which": "last"}) == rows["choice@b"]
    assert ("the-first", "First", None) == rows["first"]
    data = hashlib.sha256((variants.path / "data/options.jsonl").read_bytes()).hexdigest()
    datasets = {row["task"]: row.get("dataset") for row in variants.board()["tasks"]}
    assert {"path": "../data/options.jsonl", "sha256": data} == datasets["first"]
    assert (None, None, None) == rows["plain"]


@pytest.mark.again
def test_a_floor_of_the_key_is_for_every_variant_and_that_of_a_variant_goes_first(variants: Project) -> None:
    result = variants.run_pytest(*RUN, "--lm-min-score=the-choice=0.5")
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*choice@b: 0.0000 is below its floor 0.5"])
    result.stdout.no_fnmatch_line("*choice@a: *")
    result.stdout.no_fnmatch_line("*no such task*")
    floors = {row["task"]: row["min_score"] for row in variants.board()["tasks"]}
    assert {"choice@a": 0.5, "choice@b": 0.5, "first": None, "plain": None} == floors
    assert 0 == variants.run_pytest(*RUN, "--lm-min-score=the-choice=0.5", "--lm-min-score=choice@b=0").ret


@pytest.mark.again
def test_merged_shards_know_the_key(variants: Project) -> None:
    for part in ("1", "2"):
        variants.run_pytest(*RUN, f"--lm-shard={part}/2", f"--lm-report-dir=s{part}")
    ledgers = ("s1/ledger.jsonl", "s2/ledger.jsonl")
    merged = variants.lmeval("merge", *ledgers, "-o", "m", "--min-score=the-choice=0.5")
    assert 1 == merged.ret
    merged.stdout.fnmatch_lines(["*choice@b: 0.0000 is below its floor 0.5"])
    assert {"the-choice", "the-first", ""} == {row.get("key", "") for row in variants.board("m")["tasks"]}


@pytest.mark.parametrize("ini", [False, True])
def test_a_floor_of_a_name_that_is_another_tasks_key_is_refused_with_the_choices(variants: Project, ini: bool) -> None:
    variants.task("tasks/the-choice.jsonl", variants.record("a", "x"))
    floor = ["-o", "lm_min_scores=the-choice=0.5"] if ini else ["--lm-min-score=the-choice=0.5"]
    result = variants.run_pytest(*RUN, *floor)
    assert 4 == result.ret
    whose = "it is the name of a task and the key of 'choice@a' and 'choice@b'; use choice@a or choice@b"
    result.stderr.fnmatch_lines([f"*the floor of 'the-choice' is ambiguous: {whose}*"])


@pytest.mark.parametrize("named", ["tasks/choice.yaml", "tasks/choice.yaml::0"])
def test_values_that_no_task_of_the_named_files_takes_are_said(variants: Project, named: str) -> None:
    variants.write("c.yaml", "which: first\nlanguage: en\n")
    result = variants.run_pytest(named, *RUN[1:])
    result.stdout.fnmatch_lines(["--lm-config=c.yaml: no task has the parameter 'language'; they have which"])
