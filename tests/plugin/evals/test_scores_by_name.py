"""The scores of an eval function by name: beneath its task on every front end, with thresholds, floors and a test."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Project

ROWS = "[{'id': f'r{number:02}', 'n': number} for number in range(20)]"
FUNCTION = f"""
import os
from pytest_lmeval import eval_task

RUDE = int(os.environ.get("RUDE", 1))

@eval_task("support", data={ROWS}, NUMBERS)
def test_support(row, lm):
    lm.score("label", row["n"] != 3, why="wanted billing, got account" if row["n"] == 3 else "")
    lm.score("polite", 0.5 if row["n"] < RUDE else 1, why="it says no")
    if row["n"] > 16:
        lm.score("short", True)
"""
PLAIN = """
from pytest_lmeval import eval_task

@eval_task("one", data=[{"id": "a"}, {"id": "b"}])
def test_one(row, lm):
    lm.score("right", row["id"] == "a")
"""


def put_function(project: Project, numbers: str = "tags=[]", text: str = FUNCTION) -> None:
    project.write("tests/test_support.py", text.replace("NUMBERS", numbers))


def scored(project: Project, *options: str) -> tuple[int, str]:
    result = project.run("tests", "--lm-adapter=none", "--lm-include-per-example", *options)
    return int(result.ret), result.stdout.str() + result.stderr.str()


def test_every_recorded_score_is_a_row_beneath_its_task(project: Project) -> None:
    put_function(project, "threshold={'polite': 0.6}, min_score={'polite': 0.9, 'label': 0.5}")
    code, output = scored(project)
    assert 1 == code
    (row,) = project.board()["tasks"]
    assert (0.95, 18, 20, 0.5) == (row["score"], row["correct"], row["total"], row["min_score"])
    scores = row["scores"]
    assert ["label", "polite", "short"] == [*scores]
    assert {"score": 0.95, "n": 20, "missing": 0, "threshold": 1.0, "min_score": 0.5, "decides": True} == {
        name: value for name, value in scores["label"].items() if name != "ci95"
    }
    assert (0.975, 20, 0, 0.6, 0.9) == tuple(
        scores["polite"][name] for name in ("score", "n", "missing", "threshold", "min_score")
    )
    assert (1.0, 3, 17, None, None) == tuple(
        scores["short"][name] for name in ("score", "n", "missing", "threshold", "min_score")
    )
    assert 0.95 == project.board()["overall_score"]
    line = r"support\.polite *\|? *n 20, threshold 0\.6, floor 0\.9 *\|? *0\.9750"
    assert re.search(line, output)
    assert re.search(r"support\.short *n 3, 17 missing *1\.0000", output)
    assert re.search(line, (project.path / "reports/leaderboard.md").read_text())
    page = (project.path / "reports/report.html").read_text()
    assert '<th scope="row">support.polite</th><td>n 20, threshold 0.6, floor 0.9</td><td>0.9750</td>' in page


def test_an_example_passes_if_each_named_score_reaches_its_threshold_and_a_failure_shows_why(project: Project) -> None:
    put_function(project, "threshold={'label': 1, 'polite': 0.6}")
    code, output = scored(project)
    assert 1 == code
    assert "support: r00 scored 1, threshold 1 (function); polite 0.5 is under its threshold 0.6" in output
    assert "scores: label 0 (wanted billing, got account), polite 1 (it says no)" in output
    found = project.examples()
    assert ["support:r00", "support:r03"] == [name for name, each in found.items() if each["status"] == "failed"]
    assert {"label": "wanted billing, got account", "polite": "it says no"} == found["support:r03"]["details"]["why"]
    assert project.ledger()["support:r00"]["details"]["thresholds"] == {"polite": 0.6}
    # By another gate it is still no pass.
    for part in "12":
        scored(project, f"--lm-shard={part}/2", f"--lm-report-dir={part}")
    floors = ("--min-score=support=0", "--min-score=support.polite=0.99")
    done = project.lmeval("merge", "1/ledger.jsonl", "2/ledger.jsonl", "-o", "merged", "--gate=tasks", *floors)
    assert "support.polite: 0.9750 is below its floor 0.99" in done.stdout.str()
    merged = project.board("merged")
    assert (2, 18) == (merged["counts"]["below"], merged["tasks"][0]["correct"])


def test_a_task_whose_examples_record_one_score_has_no_row_beneath_it(project: Project) -> None:
    project.write("tests/test_one.py", PLAIN)
    scored(project)
    assert "scores" not in project.board()["tasks"][0]
    scored(project, "--lm-min-score=one.right=0.9")
    assert 0.9 == project.board()["tasks"][0]["min_score"]
    assert ["one: 0.5000 is below its floor 0.9"] == [
        reason for reason in project.board()["gate"]["reasons"] if "floor" in reason
    ]


def test_floors_of_scores_are_set_by_option_and_ini_file(project: Project) -> None:
    put_function(project)
    code, output = scored(
        project, "--lm-gate=tasks", "--lm-min-score=support.polite=0.98", "--lm-min-score=support.short=1"
    )
    assert 1 == code
    assert "support.polite: 0.9750 is below its floor 0.98" in output
    assert ["floors"] == project.board()["gate"]["decided_by"]
    project.write("pytest.ini", "[pytest]\nlm_min_scores =\n    support.polite=0.9\n    support.polit=0.2\n")
    code, output = scored(project, "--lm-gate=tasks")
    assert 1 == code
    said = (
        "support.polit: no example recorded this score, and its floor is 0.2; scores that were recorded: label, polite"
    )
    assert said in output
    project.write("pytest.ini", "[pytest]\nlm_min_scores =\n    support.polite=0.9\n")
    assert 0 == scored(project, "--lm-gate=tasks")[0]


def test_a_floor_that_a_task_sets_itself_decides_about_the_run(project: Project) -> None:
    for numbers in ("min_score=0.5", "min_score={'polite': 0.5}"):
        put_function(project, numbers)
        code, output = scored(project, "--lm-gate=tasks")
        assert (0, ["floors"]) == (code, project.board()["gate"]["decided_by"])
        assert "NOT GATED" not in output


def test_a_floor_of_no_task_s_score_is_a_usage_error(project: Project) -> None:
    put_function(project)
    for name in ("suport.polite", "support.very polite"):
        code, output = scored(project, f"--lm-min-score={name}=0.5")
        assert (4, True) == (code, f"unknown task in --lm-min-score '{name}'" in output)


def test_a_named_score_is_compared_with_the_baseline_beside_the_tasks(project: Project) -> None:
    put_function(project, "threshold={'polite': 0.4}")
    assert 0 == scored(project, "--lm-baseline=base.json", "--lm-update-baseline", "--lm-gate=tasks")[0]
    project.edit("tests/test_support.py", '"RUDE", 1', '"RUDE", 16')
    code, output = scored(project, "--lm-baseline=base.json")
    assert 1 == code
    changes = {each["task"]: each for each in project.board()["gate"]["comparison"]["tasks"]}
    assert ["support", "support.polite"] == [*changes]
    assert ("regression", 20) == (changes["support.polite"]["verdict"], changes["support.polite"]["paired"])
    pooled = project.board()["gate"]["comparison"]["pooled"]
    assert (0.0, 20) == (pooled["change"], pooled["paired"])
    assert "support.polite: regression: 0.9750 -> 0.6000" in output
    assert 1 == project.lmeval("diff", "base.json", "reports/ledger.jsonl").ret


def test_a_baseline_without_a_named_score_is_not_compared_with_in_it(project: Project) -> None:
    put_function(project, text=FUNCTION.replace("polite", "kind"))
    assert 0 == scored(project, "--lm-baseline=base.json", "--lm-update-baseline", "--lm-gate=tasks")[0]
    put_function(project, "min_score={'polite': 0.5}")
    code, output = scored(project, "--lm-baseline=base.json")
    assert 0 == code
    assert "not compared: support.polite: the baseline has no such score for any example that was compared" in output
    assert ["support"] == [each["task"] for each in project.board()["gate"]["comparison"]["tasks"]]


BAD = {
    "threshold={}": "threshold: expected a number from 0 to 1, or a mapping of names to such numbers",
    "threshold={'a': 2}": "threshold['a']: expected a number from 0 to 1, got 2",
    "min_score={'a': float('nan')}": "min_score['a']: expected a number from 0 to 1, got nan",
    "min_score={'a': True}": "min_score['a']: expected a number from 0 to 1, got True",
    "min_score={'a b': 1}": "min_score: expected the name of a score, of letters, digits, - and _, got 'a b'",
    "threshold={1: 1}": "threshold: expected the name of a score, of letters, digits, - and _, got 1",
}


def test_a_mapping_that_names_no_score_or_no_number_is_a_bad_file(project: Project) -> None:
    for number, numbers in enumerate(BAD):
        project.write(f"tests/test_{number}.py", FUNCTION.replace("NUMBERS", numbers))
    code, output = scored(project)
    assert 2 == code
    assert [] == [said for said in BAD.values() if f"eval_task('support'): {said}" not in output]


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_task_that_is_called_as_a_named_score_is_a_collection_error(project: Project, first: str) -> None:
    names = {"a": "a", "b": "b"} if first == "a" else {"a": "b", "b": "a"}
    project.write(f"tests/test_{names['a']}.py", FUNCTION.replace("NUMBERS", "min_score={'polite': 0.5}"))
    project.write(f"tests/test_{names['b']}.py", PLAIN.replace('"one"', '"support.polite"'))
    code, output = scored(project)
    assert 2 == code
    assert "the score 'polite' of 'support' and a task would both be support.polite on the board" in output


def test_a_task_that_is_called_as_a_recorded_score_is_doubtful(project: Project) -> None:
    put_function(project)
    project.write("tests/test_one.py", PLAIN.replace('"one"', '"support.polite"'))
    _, output = scored(project, "--lm-gate=tasks", "--lm-min-score=support.polite=0.6")
    assert "doubtful: support.polite is a task, and a score of support: rename one of them" in output
    # A floor of this name is the task's.
    assert "support.polite: 0.5000 is below its floor 0.6" in output
