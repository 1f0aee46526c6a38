"""Thoughts in a run: never scored, counted where no answer followed, recorded, and folded where they are shown."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project
from tests.yaml_tasks import POLITE

LETTER = {"category": "mcq", "post_process": "extract_letter"}


@pytest.fixture
def thinker(project: Project) -> Project:
    answers = [("right", "<think>A would be ...</think> C"), ("cut", "<think>It must be C"), ("wrong", "C?</think>A")]
    project.task("tasks/mcq.jsonl", *[project.spec(id, said, target="C", **LETTER) for id, said in answers])
    return project


def test_an_answer_is_scored_without_the_thoughts_before_it(thinker: Project) -> None:
    result = thinker.run("--lm-include-per-example", "--lm-gate=none")
    result.stdout.fnmatch_lines(["cut off: mcq: 1 of 3 answers ended at the limit of tokens, or in the thoughts"])
    examples = thinker.examples()
    assert [1.0, 0.0, 0.0] == [examples[f"mcq:{id}"]["score"] for id in ("right", "cut", "wrong")]
    assert (" C", ["A would be ..."]) == (examples["mcq:right"]["output"], examples["mcq:right"]["thoughts"])
    assert ("", True) == (examples["mcq:cut"]["output"], examples["mcq:cut"]["cut_off"])
    board = thinker.board()
    assert (1, 1) == (board["counts"]["cut_off"], board["counts"]["unparsed"])
    assert 1 == board["tasks"][0]["cut_off"]
    assert "<think>,</think>" == board["manifest"]["think_tags"]
    assert "cut off: mcq: 1 of 3" in (thinker.path / "reports/leaderboard.md").read_text()


def test_a_failure_shows_the_end_of_the_thoughts_folded_into_a_line(project: Project) -> None:
    project.task("tasks/w.jsonl", project.record("a", "<think>" + "no\n" * 400 + "so B</think>A", target="B"))
    result = project.run()
    result.stdout.fnmatch_lines(["*thoughts: 1,204 characters, not scored; they end: *no no so B", "*output: A"])


def test_no_answer_counts_as_unparsed_whatever_the_rule(project: Project) -> None:
    project.task("tasks/w.jsonl", project.record("a", "<think>B", target="B"))
    project.run("--lm-gate=none")
    assert (True, True, 0.0) == tuple(project.ledger()["w:a"][name] for name in ("unparsed", "cut_off", "score"))


def test_texts_stay_as_they_are_without_tags_and_the_baseline_says_so(thinker: Project) -> None:
    thinker.run("--lm-gate=none", "--lm-baseline=base.json", "--lm-update-baseline")
    result = thinker.run("--lm-think-tags=none", "--lm-baseline=base.json")
    assert "<think>A would be ...</think> C" in thinker.ledger()["mcq:right"]["outputs"]
    told = "the baseline used other think tags: <think>,</think>, now none (--lm-think-tags)"
    result.stdout.fnmatch_lines([f"*doubtful: {told}*"])


def test_other_tags_may_be_given_and_those_that_are_no_pair_are_a_usage_error(project: Project) -> None:
    project.task("tasks/w.jsonl", project.record("a", "[THINK]A[/THINK]B", target="B"))
    assert 0 == project.run("--lm-think-tags=[THINK],[/THINK]").ret
    refused = project.run("--lm-think-tags=[THINK]")
    assert 4 == refused.ret
    refused.stderr.fnmatch_lines(["*expected OPEN,CLOSE, such as <think>,</think>, or none*"])


def test_a_recording_is_read_as_the_model_itself_and_its_ledger_gives_the_same_digest(thinker: Project) -> None:
    lines = [{"id": "right", "output": "<think>A</think>C"}, {"id": "cut", "output": "<think>C"}]
    thinker.write("old.jsonl", "".join(json.dumps(each) + "\n" for each in [*lines, {"id": "wrong", "output": "A"}]))
    thinker.run_pytest("--lm-adapter=replay:old.jsonl", "--lm-gate=none")
    first = thinker.board()
    assert (1 / 3, 1) == (first["overall_score"], first["counts"]["cut_off"])
    thinker.run_pytest("--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=again", "--lm-gate=none")
    again = thinker.board("again")
    assert (first["digest"], first["counts"]) == (again["digest"], again["counts"])
    assert thinker.ledger()["mcq:right"]["thoughts"] == thinker.ledger("again")["mcq:right"]["thoughts"]


def test_a_resumed_run_knows_what_was_thought_and_other_tags_ask_again(thinker: Project) -> None:
    thinker.run("--lm-gate=none")
    path = thinker.path / "reports/ledger.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]))
    digest = thinker.board()["digest"]
    thinker.run("--lm-gate=none", "--lm-resume")
    assert (digest, 1) == (thinker.board()["digest"], thinker.board()["counts"]["cut_off"])
    asked = len(thinker.calls())
    path.write_bytes(b"".join(whole[:3]))
    thinker.run("--lm-gate=none", "--lm-resume", "--lm-think-tags=none")
    assert 3 == sum(map(len, thinker.calls()[asked:]))


def test_a_judge_is_heard_without_its_thoughts(project: Project) -> None:
    project.write(
        "judge.py",
        "class Judge:\n    name = 'j'\n    def generate(self, prompts):\n"
        "        return ['<think>no, no</think>yes' for prompt in prompts]\n",
    )
    project.write("tasks/rows.csv", "said\nx\n")
    project.write("tasks/polite.yaml", POLITE)
    assert 0 == project.run("--lm-judge=judge:Judge").ret
