"""A baseline whose answers another judge graded measures something else, and every verdict says so."""

from __future__ import annotations

import re

from tests.conftest import Project

JUDGE = """
import json
from pytest_lmeval import Completion

class Judge:
    def __init__(self, name="strict.v1"):
        self.name = name

    async def complete(self, request):
        return Completion(json.dumps({"reason": "so", "score": 1}))
"""
RECORD = {"id": "a", "prompt": "say: it is blue", "metric": "rubric", "extras": {"rubric": "Names the colour."}}


def test_another_judge_or_another_question_than_the_baselines_is_doubtful_and_a_recording_of_it_is_not(
    project: Project,
) -> None:
    project.write("judge.py", JUDGE)
    project.task("tasks/t.jsonl", RECORD)
    judged = ("--lm-baseline=base.json", "--lm-judge=judge:Judge")
    project.run(*judged, "--lm-update-baseline")
    for options, expected in (
        (judged, None),
        (
            (*judged, "--lm-judge-arg=name=lenient.v1"),
            "t has another judge than in the baseline: lenient.v1, * strict.v1",
        ),
        (("--lm-baseline=base.json", "--lm-judge=replay:reports/ledger.jsonl"), None),
    ):
        lines = project.run(*options).stdout
        if expected is None:
            lines.no_fnmatch_line("doubtful: *judge*")
        else:
            lines.fnmatch_lines([f"doubtful: {expected}"])
        if expected is not None:
            project.run(*judged)
    written = (project.path / "base.json").read_text()
    project.write("base.json", re.sub(r'("prompt_hash": ")', r"\1x", written))
    asked = "doubtful: the prompt to the judge of t differs from the baseline's (rubric)"
    project.run(*judged).stdout.fnmatch_lines([asked])
