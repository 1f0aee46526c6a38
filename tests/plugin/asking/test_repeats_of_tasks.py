"""Examples that say how often they are asked, and how many of their repeats have to pass."""

from __future__ import annotations

import pytest

from tests.conftest import Project

# Of what it is asked as "2 of 3" it gets that many repeats right.
MODEL = """
from pytest_lmeval import Completion

class Model:
    name = "some.v1"

    async def complete(self, request):
        right, _, _ = request.text.partition(" of ")
        return Completion("yes" if request.repeat < int(right) else "no")
"""
FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("agent", data=[{"id": "a", "ask": "3 of 3"}, {"id": "b", "ask": "2 of 3"}, {"id": "c", "ask": "1 of 3"}],
           repeats=3, passes=2, threshold={"sure": 0.5})
async def test_agent(row, lm):
    said = (await lm.ask(row["ask"])).text
    lm.score("right", said == "yes")
    lm.score("sure", said != "")
"""


def record(prompt: str, **extras: object) -> dict[str, object]:
    return {"id": prompt[:1], "prompt": prompt, "targets": ["yes"], "metric": "exact_match", "extras": extras}


def put_tasks(project: Project) -> None:
    project.write("some.py", MODEL)
    project.task("tasks/often.jsonl", *[record(f"{right} of 3", repeats=3, passes=2) for right in (3, 2, 1)])
    project.task("tasks/once.jsonl", record("1 of 1"))
    project.write("tests/test_agent.py", FUNCTION)


OPTIONS = ("tasks", "tests", "--lm-adapter=some:Model", "--lm-include-per-example")


def test_an_example_passes_if_so_many_of_its_repeats_do_and_its_score_is_the_mean(project: Project) -> None:
    put_tasks(project)
    result = project.run(*OPTIONS)
    assert 1 == result.ret
    found = {name: (each["status"], each["score"]) for name, each in project.examples().items()}
    assert found == {
        "agent:a": ("passed", 1.0),
        "agent:b": ("passed", pytest.approx(2 / 3)),
        "agent:c": ("failed", pytest.approx(1 / 3)),
        "once:1": ("passed", 1.0),
        "often:1": ("failed", pytest.approx(1 / 3)),
        "often:2": ("passed", pytest.approx(2 / 3)),
        "often:3": ("passed", 1.0),
    }
    rows = {row["task"]: row for row in project.board()["tasks"]}
    assert {"agent": 2, "often": 2, "once": 1} == {name: row["correct"] for name, row in rows.items()}
    assert [(3, 2), (3, 2)] == [
        (rows[name]["repeats"]["count"], rows[name]["repeats"]["differ"]) for name in ("agent", "often")
    ]
    assert "repeats" not in rows["once"]
    assert {"needed": 2, "passed": 1} == project.examples()["often:1"]["details"]["passes"]
    said = "often: 1 scored 0.3333, threshold 1 (exact_match); 2 of 3 responses under it; 1 of its repeats passed, but"
    assert f"{said} 2 must pass" in result.stdout.str()
    assert "often: the repeats of 2 examples have different scores" in result.stdout.str()
    assert "| often | 3 | 2 |" in (project.path / "reports/leaderboard.md").read_text()


def test_a_failure_counts_no_responses_under_a_threshold_that_checks_have_not(project: Project) -> None:
    project.write("some.py", MODEL)
    checks = [{"metric": "contains_any", "targets": ["yes"]}]
    extras = {"repeats": 2, "passes": 2}
    project.task("tasks/often.jsonl", {"id": "1", "prompt": "1 of 2", "checks": checks, "extras": extras})
    result = project.run("tasks", "--lm-adapter=some:Model")
    said = "1 of its repeats passed, but 2 must pass; contains_any 0.5 is under its threshold 1"
    result.stdout.fnmatch_lines([f"often: 1 scored 0.5 (checks); {said}"])


def test_other_repeats_of_the_run_are_a_usage_error_that_names_the_tasks(project: Project) -> None:
    put_tasks(project)
    for given in (1, 2):
        result = project.run(*OPTIONS, f"--lm-repeats={given}")
        assert 4 == result.ret
        said = (
            f"--lm-repeats={given}: tasks have other repeats of their own: agent (3), often (3); leave the option out"
        )
        assert said in result.stderr.str()
    assert 1 == project.run(*OPTIONS, "--lm-repeats=3").ret
    assert [3, 3, 3] == [row["repeats"]["count"] for row in project.board()["tasks"]]


BAD: dict[str, tuple[dict[str, object], str]] = {
    "repeats": ({"repeats": 0}, "extras.repeats: expected a number in [1, 1000], got 0"),
    "half": ({"repeats": 2.5}, "extras.repeats: expected a whole number, got 2.5"),
    "text": ({"passes": "2"}, "extras.passes: expected a number in [1, 1000], got a string"),
    "many": ({"repeats": 2, "passes": 3}, "extras.passes: 3 of 2 repeats cannot pass"),
    "typo": ({"repeat": 2}, "nothing reads the key 'repeat'; did you mean 'repeats'?"),
}


def test_repeats_that_cannot_be_are_bad_records_and_bad_files(project: Project) -> None:
    for name, (extras, _) in BAD.items():
        project.task(f"tasks/{name}.jsonl", record("1 of 1", **extras))
    text = FUNCTION.replace("repeats=3, passes=2", "repeats=2, passes=3")
    project.write("tests/test_agent.py", text)
    result = project.run("tasks", "tests", "--lm-adapter=none")
    assert 2 == result.ret
    output = result.stdout.str()
    assert [] == [said for _, said in BAD.values() if said not in output]
    assert "eval_task('agent'): metadata.passes: 3 of 2 repeats cannot pass" in output


def test_more_passes_than_the_run_has_repeats_are_a_usage_error(project: Project) -> None:
    project.write("some.py", MODEL)
    project.task("tasks/often.jsonl", record("3 of 3", passes=2))
    result = project.run(*OPTIONS[:1], *OPTIONS[2:])
    assert (4, True) == (result.ret, "often: 3: of 1 repeat 2 cannot pass: set its repeats" in result.stderr.str())
    assert 0 == project.run(*OPTIONS[:1], *OPTIONS[2:], "--lm-repeats=2").ret
