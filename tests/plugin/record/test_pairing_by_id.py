"""Pairs by id need ids: rows and lines that are called by their numbers are refused before anything is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

DATA = 'data: rows.csv\nprompt: "say: {{ word }}"\ntarget: "{{ word }}"\nmetric: exact_match\n'
EVAL = """
from pytest_lmeval import eval_task

@eval_task("t", data=[{"word": "a"}, {"word": "b"}])
def test_word(row, lm):
    assert row["word"] == lm.ask("say: " + row["word"]).text
"""
BY_ID, UPDATE = ("--lm-pair-by=id", "--lm-baseline=base.json"), "--lm-update-baseline"
# Files of a task whose rows have no ids, and what gives them ids: a text, and another one in its place.
KINDS = {
    "lines": (
        {"tasks/t.jsonl": '{"prompt": "say: a", "targets": ["a"], "metric": "exact_match"}\n'},
        ("tasks/t.jsonl", '{"prompt"', '{"id": "ex-1", "prompt"'),
    ),
    "data file": (
        {"tasks/t.yaml": DATA, "tasks/rows.csv": "word\na\nb\n"},
        ("tasks/rows.csv", "word\na\nb\n", "id,word\n1,a\n2,b\n"),
    ),
    "template": (
        {"tasks/t.yaml": DATA, "tasks/rows.csv": "word\na\nb\n"},
        ("tasks/t.yaml", "data:", 'id: "{{ row | hash }}"\ndata:'),
    ),
    "function": ({"tests/test_t.py": EVAL}, ("tests/test_t.py", '[{"word": "a"}', '[{"id": 1, "word": "a"}')),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_called_by_their_numbers_are_refused(project: Project, kind: str) -> None:
    files, (name, old, new) = KINDS[kind]
    for path, content in files.items():
        project.write(path, content)
    result = project.run(*BY_ID, UPDATE)
    assert 4 == result.ret
    told = "*--lm-pair-by=id: pairs by id need ids, and the rows of t have no ids: add a column id*"
    result.stderr.fnmatch_lines([told])
    assert [] == project.calls()
    if kind == "lines":
        # Without a baseline, and by content, there is nothing to refuse.
        assert 0 == project.run("--lm-pair-by=id").ret
        assert 0 == project.run(BY_ID[1], UPDATE).ret
        (project.path / "base.json").unlink()

    project.edit(name, old, new)
    if kind == "function":
        project.edit(name, '{"word": "b"}', '{"id": 2, "word": "b"}')
    assert 0 == project.run(*BY_ID, UPDATE).ret
    assert 0 == project.run(*BY_ID).ret


def test_a_finished_run_says_that_its_rows_have_no_ids(project: Project) -> None:
    project.write("tasks/t.yaml", DATA)
    project.write("tasks/rows.csv", "word\na\nb\n")
    for folder in ("one", "two"):
        assert 0 == project.run(f"--lm-report-dir={folder}", "--lm-include-per-example").ret
    assert [True] == [row["numbered"] for row in project.board("one")["tasks"]]
    for file in ("ledger.jsonl", "leaderboard.json"):
        for command in (["diff"], ["rank"]):
            result = project.lmeval(*command, f"one/{file}", f"two/{file}", "--pair-by=id")
            assert 2 == result.ret
            result.stderr.fnmatch_lines([f"*one/{file}: pairs by id need ids, and the rows of t have no ids*"])
    assert 0 == project.lmeval("diff", "one/ledger.jsonl", "two/ledger.jsonl").ret


def test_that_the_baseline_has_no_prompts_is_said_once_and_what_was_not_compared_has_no_numbers(
    project: Project,
) -> None:
    def tasks(prompt: str, more: str = "") -> None:
        rows = [{"id": f"e{n}", "prompt": prompt, "targets": ["x"], "metric": "exact_match"} for n in range(8)]
        project.task("tasks/t.jsonl", *rows)
        project.task("tasks/u.jsonl", {**rows[0], "prompt": "say: x", "targets": ["x", *more]})

    tasks("say: x")
    assert 0 == project.run("--lm-baseline=base.json", UPDATE).ret
    tasks("say: y", "y")
    result = project.run(*BY_ID)
    assert 1 == result.ret
    out = result.stdout.str()
    assert (1, 0, 5) == tuple(map(out.count, ("the baseline has no prompts", "prompt before", "prompt now: say: y")))
    result.stdout.fnmatch_lines(["u      *uncompared"])
    text = (project.path / "reports/leaderboard.md").read_text()
    assert 1 == text.count("the baseline has no prompts")
    assert "| u | uncompared |  |  |  |  |  |  |  |" in text
    comparison = json.loads((project.path / "reports/leaderboard.json").read_text())["gate"]["comparison"]
    assert ["regression", "uncompared"] == [task["verdict"] for task in comparison["tasks"]]
