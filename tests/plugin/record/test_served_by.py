"""What servers say of the model that answered is counted, and every verdict says where it is not one and the same."""

from __future__ import annotations

import json

import pytest

from tests.conftest import BOTH, Project

MODEL = """
from pytest_lmeval import Completion

class Served:
    name = "served.v1"

    def __init__(self, mark="fp_1"):
        self.mark = mark

    async def complete(self, request):
        said = request.text.rpartition("say: ")[2]
        mark = "fp_2" if said == "red" else self.mark
        return Completion(said, served_by=f"served-2026 ({mark})")
"""
FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("asked", data=[{"id": "a"}])
async def test_asked(row, lm):
    assert "hi" == (await lm.ask("say: hi")).text
"""
SEVERAL = "several models answered, according to the server: served-2026 (fp_1) (3), served-2026 (fp_2) (1)"
OTHERS = "the server reports another model than in the baseline: served-2026 (fp_3) (3)"


@pytest.mark.parametrize("processes", BOTH)
def test_every_verdict_says_where_another_model_answered(project: Project, processes: str) -> None:
    project.write("served.py", MODEL)
    project.write("test_asked.py", FUNCTION)
    project.task("tasks/words.jsonl", *(project.record(word, word) for word in ("blue", "green", "red")))
    run = ("--lm-adapter=served:Served", "--lm-include-per-example", "--lm-baseline=baseline.json", processes)
    first = project.run_pytest(*run, "--lm-update-baseline", "tasks", "test_asked.py")
    assert 0 == first.ret
    board = project.board()
    assert {"served-2026 (fp_1)": 3, "served-2026 (fp_2)": 1} == board["served_by"]
    first.stdout.fnmatch_lines([f"*{SEVERAL}*"])
    assert SEVERAL in board["gate"]["warnings"]
    records = json.loads((project.path / "baseline.json").read_text("utf-8"))["tasks"][1]["per_example"]
    assert {"served-2026 (fp_2)": 1} == next(record["served_by"] for record in records if record["targets"] == ["red"])

    project.task("tasks/words.jsonl", *(project.record(word, word) for word in ("blue", "green", "white")))
    second = project.run_pytest(*run, "--lm-adapter-arg=mark=fp_3", "tasks", "test_asked.py")
    told = [warning for warning in project.board()["gate"]["warnings"] if warning.startswith(OTHERS[:40])]
    assert [f"{OTHERS[:-4]} (4), in the baseline served-2026 (fp_1) (3), served-2026 (fp_2) (1)"] == told
    for text in (second.stdout.str(), (project.path / "reports/leaderboard.md").read_text("utf-8")):
        assert "the server reports another model than in the baseline" in text
    assert [] == [warning for warning in project.board()["gate"]["warnings"] if "several models" in warning]


def test_a_resumed_run_knows_who_answered(project: Project) -> None:
    project.write("served.py", MODEL)
    project.task("tasks/words.jsonl", *(project.record(word, word) for word in ("blue", "red")))
    for more in ((), ("--lm-resume",)):
        project.run_pytest("--lm-adapter=served:Served", *more, "tasks")
        assert {"served-2026 (fp_1)": 1, "served-2026 (fp_2)": 1} == project.board()["served_by"]
