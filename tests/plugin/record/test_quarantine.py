"""Examples in quarantine: asked, scored, listed, and decisive for nothing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tests.conftest import Project

HELD: dict[str, Any] = {"quarantine": {"until": "2999-12-31", "reason": "flips by itself"}}
OVER: dict[str, Any] = {"quarantine": {"until": "2020-01-31", "reason": "flips by itself"}}
DIES = """
import model

class Model(model.Model):
    def generate(self, prompts):
        if any("refused" in prompt for prompt in prompts):
            raise RuntimeError("refused by the provider")
        return super().generate(prompts)
"""
# Right but for the words that are in its file.
MOODY = """
import pathlib

class Model:
    name = "moody.v1"

    def generate(self, prompts):
        wrong = pathlib.Path(__file__).with_name("wrong.txt").read_text().split()
        said = [prompt.rpartition("say: ")[2] for prompt in prompts]
        return ["hm" if each in wrong else each for each in said]
"""


def moody(project: Project, wrong: str, *options: str) -> pytest.RunResult:
    project.write("moody.py", MOODY)
    project.write("wrong.txt", wrong)
    return project.run_pytest("--lm-adapter=moody:Model", *options)


def words(project: Project, *records: dict[str, Any]) -> None:
    plain = [project.record(f"e{n}", f"w{n}") for n in range(8)]
    project.task("tasks/words.jsonl", *plain, *records)


def test_a_wrong_answer_in_quarantine_fails_nothing_and_every_report_names_it(project: Project) -> None:
    words(project, project.record("flaky", "wrong", "right", **HELD))
    ran = project.run("--junitxml=junit.xml", "--lm-min-score=words=1", "--lm-include-per-example")
    assert 0 == ran.ret
    ran.assert_outcomes(passed=8)
    ran.stdout.fnmatch_lines(
        ["quarantined until 2999-12-31: words: flaky (0.0000; flips by itself)", "*8 passed, 1 quarantined*"]
    )
    board = project.board()
    (row,) = board["tasks"]
    assert (1.0, 8, 1, 1) == (row["score"], row["correct"], row["quarantined"], board["counts"]["quarantined"])
    assert [{"task": "words", "id": "flaky", **HELD["quarantine"]}] == board["quarantined"]
    example = project.examples()["words:flaky"]
    assert ("quarantined", 0.0) == (example["status"], example["score"])
    cases = ElementTree.parse(project.path / "junit.xml").getroot()[0].iter("testcase")
    said = {case.attrib["name"]: _properties(case) for case in cases}
    assert ("quarantined", "0.0") == (said["flaky"]["lm_status"], said["flaky"]["lm_score"])
    markdown = (project.path / "reports/leaderboard.md").read_text()
    assert "- quarantined until 2999-12-31: words: flaky (0.0000; flips by itself)" in markdown
    assert '"quarantined":1' in (project.path / "reports/report.html").read_text()


def _properties(case: ElementTree.Element) -> dict[str, str]:
    return {node.attrib["name"]: node.attrib["value"] for node in case.iter("property")}


def test_what_a_provider_refuses_can_be_quarantined(project: Project) -> None:
    project.write("dies.py", DIES)
    words(project, project.record("bad", "refused", **HELD))
    ran = project.run_pytest("--lm-adapter=dies:Model", "--lm-batch-size=1", "--lm-retries=0")
    assert 0 == ran.ret
    board = project.board()
    assert (True, 1.0, 0) == (board["complete"], board["overall_score"], board["counts"]["errors"])
    ran.stdout.fnmatch_lines(["quarantined until 2999-12-31: words: bad (no score; flips by itself)"])


def test_a_quarantine_that_has_ended_counts_again_and_says_so(project: Project) -> None:
    words(project, project.record("flaky", "wrong", "right", **OVER))
    ran = project.run()
    assert 1 == ran.ret
    ran.stdout.fnmatch_lines(["doubtful: words: flaky: its quarantine ended on 2020-01-31: it counts again"])
    assert "quarantined" not in project.board()


def test_a_change_cannot_excuse_itself(project: Project) -> None:
    words(project, project.record("flaky", "blue"), project.record("old", "red", **HELD))
    update = ("--lm-baseline=base.json", "--lm-update-baseline")
    assert 0 == moody(project, "", *update).ret
    words(project, project.record("flaky", "blue", **HELD), project.record("old", "red"))
    ran = moody(project, "blue red", "--lm-baseline=base.json", "--lm-strict")
    assert 1 == ran.ret
    assert [{"task": "words", "id": "old", **HELD["quarantine"]}] == project.board()["quarantined"]
    ran.stdout.fnmatch_lines(
        ["*flaky: its quarantine takes effect once the baseline contains it: a change cannot excuse itself"]
    )
    # The run that becomes the baseline says itself what is in quarantine.
    assert 1 == moody(project, "blue red", *update, "--lm-gate=examples").ret
    assert ["flaky"] == [entry["id"] for entry in project.board()["quarantined"]]


def test_a_run_of_nothing_else_measured_nothing(project: Project) -> None:
    project.task("tasks/words.jsonl", project.record("flaky", "right", **HELD))
    assert 3 == project.run().ret
    assert "no example was scored: 1 are quarantined" in project.board()["gate"]["reasons"]


def test_a_task_that_is_quarantined_whole_is_outside_the_overall_score_and_its_floor(project: Project) -> None:
    words(project)
    project.task("tasks/other.jsonl", project.record("flaky", "wrong", "right", **HELD))
    assert 0 == project.run("--lm-min-score=other=0.9").ret
    assert 1.0 == project.board()["overall_score"]


BAD: list[tuple[Any, str]] = [
    ({"reason": "flips"}, "missing_required extras.quarantine.until: a quarantine needs until, a date, and reason"),
    ({"until": "2999-12-31"}, "missing_required extras.quarantine.reason: *"),
    (
        {"until": "31.12.2999", "reason": "flips"},
        "bad_value extras.quarantine.until: expected a date YYYY-MM-DD, *",
    ),
    ({"until": "20991231", "reason": "flips"}, "bad_value extras.quarantine.until: expected a date *"),
    ({"until": "2999-12-31", "reason": ""}, "bad_type extras.quarantine.reason: *"),
    ({"until": "2999-12-31", "reason": "flips", "who": "me"}, "unknown_field extras.quarantine.who: *"),
    (True, "bad_type extras.quarantine: expected {until, reason}, got a boolean"),
]


def test_a_quarantine_that_says_too_little_is_a_bad_record(project: Project) -> None:
    words(project, *[project.record(f"flaky-{n}", "wrong", quarantine=bad) for n, (bad, _) in enumerate(BAD)])
    found = project.lmeval("validate", "tasks")
    assert 1 == found.ret
    found.stdout.fnmatch_lines([f"*words.jsonl:{number}: {fault}" for number, (_, fault) in enumerate(BAD, 9)])


def test_a_diff_of_ledgers_takes_the_list_of_the_older_one(project: Project) -> None:
    words(project, project.record("flaky", "blue"))
    moody(project, "", "--lm-report-dir=old")
    words(project, project.record("flaky", "blue", **HELD))
    moody(project, "blue", "--lm-report-dir=new")
    found = project.lmeval("diff", "old/ledger.jsonl", "new/ledger.jsonl", "--strict", "--format=json")
    assert 1 == found.ret
    assert "regression" == json.loads(found.stdout.str())["gate"]["verdict"]
    back = project.lmeval("diff", "new/ledger.jsonl", "old/ledger.jsonl", "--strict", "--format=json")
    assert [{"task": "words", "id": "flaky"}] == json.loads(back.stdout.str())["comparison"]["quarantined"]


def test_much_in_quarantine_and_long_is_doubtful_and_summed_up(project: Project) -> None:
    records = [project.record(f"e{n}", str(n), **(HELD if n < 12 else {})) for n in range(20)]
    project.task("tasks/t.jsonl", *records)
    text = project.run_pytest(*project.usual).stdout.str()
    assert "doubtful: t: 12 of 20 examples are in quarantine and decide nothing" in text
    assert "doubtful: 12 example(s) in quarantine for more than 90 days: t: e0 until 2999-12-31" in text
    assert 10 == text.count("quarantined until 2999-12-31")
    assert "... and 2 more quarantined" in text
