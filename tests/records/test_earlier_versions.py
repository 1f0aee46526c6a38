"""Files of earlier versions are read for ever: ``tests/data/version-*`` are such files, as they were written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.recorded import check_schema
from pytest_lmeval.records.runfile import board_of, read_run
from tests.conftest import Project
from tests.schemas import faults

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("0.1.0", "0.1.1")
FILES = ("leaderboard.json", "ledger.jsonl", "baseline.json")
MODEL = """
class Model:
    name = "say.v1"
    wrong = ("grey",)

    def generate(self, prompts):
        said = [prompt.rpartition("say: ")[2] for prompt in prompts]
        return ["hm" if each in self.wrong else each for each in said]

class Worse(Model):
    wrong = ("grey", "red", "pink")
"""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES)
def test_a_file_of_an_earlier_version_is_read_whole(version: str, file: str) -> None:
    run = read_run(DATA / f"version-{version}" / file)
    assert (True, True, 0.75) == (run.complete, run.agrees, board_of(run).overall_score)
    assert ["blue", "grey", "pink", "red"] == sorted(result.id for result in run.results or ())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_describe_files_of_earlier_versions_too(version: str) -> None:
    folder = DATA / f"version-{version}"
    boards = [json.loads((folder / file).read_text()) for file in ("leaderboard.json", "baseline.json")]
    assert [] == faults("leaderboard", *boards)
    assert [] == faults("ledger", *map(json.loads, (folder / "ledger.jsonl").read_text().splitlines()))


@pytest.fixture
def old(project: Project) -> Project:
    project.write("say.py", MODEL)
    project.task("tasks/words.jsonl", *[project.record(word, word) for word in ("red", "blue", "grey", "pink")])
    return project


@pytest.mark.parametrize("version", VERSIONS)
def test_a_baseline_of_an_earlier_version_gates_a_run(old: Project, version: str) -> None:
    shutil.copy(DATA / f"version-{version}" / "baseline.json", old.path / "base.json")
    gate = ("--lm-baseline=base.json", "--lm-strict")
    assert 0 == old.run_pytest("--lm-adapter=say:Model", *gate).ret
    assert 4 == old.board()["gate"]["comparison"]["paired"]
    assert 1 == old.run_pytest("--lm-adapter=say:Worse", *gate).ret
    assert "regression" == old.board()["gate"]["verdict"]


def test_a_ledger_of_an_earlier_version_is_resumed(old: Project) -> None:
    (old.path / "reports").mkdir()
    lines = (DATA / "version-0.1.0" / "ledger.jsonl").read_text().splitlines(keepends=True)
    # As if it had been killed after two examples.
    (old.path / "reports/ledger.jsonl").write_text("".join(lines[:3]))
    ran = old.run_pytest("--lm-adapter=say:Model", "--lm-gate=none", "--lm-resume")
    ran.stdout.fnmatch_lines(["resumed: reused 2 answer(s) of the ledger*"])
    assert read_run(DATA / "version-0.1.0" / "leaderboard.json").digest == old.board()["digest"]


def test_a_version_is_a_number_without_zeros_before_it() -> None:
    with pytest.raises(UsageError, match="expected x/2"):
        check_schema("file", "x/01", "x/2")
