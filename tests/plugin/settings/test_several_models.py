"""Several models in one run: each has the board of a run of its own, and they are compared."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tests.conftest import BOTH, Project
from tests.schemas import faults

TWO = ("--lm-adapter=A=models:Good", "--lm-adapter=B=models:Weak")
CLOSING = """
from pathlib import Path

class Closing:
    def __init__(self, mark):
        self.name = self.mark = mark

    def generate(self, prompts):
        return prompts

    def close(self):
        Path(self.mark).touch()
        raise OSError("does not close")
"""


@pytest.fixture
def several(project: Project) -> Project:
    project.copy("several_models", "models.py")
    project.task("tasks/numbers.jsonl", *[project.record(f"e{n}", str(n)) for n in range(12)])
    return project


def comparison(project: Project, folder: str = "reports") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / folder / "comparison.json").read_text())
    assert [] == faults("comparison", found)
    return found


@pytest.mark.parametrize("processes", BOTH)
def test_each_model_has_the_board_of_a_run_of_its_own(several: Project, processes: str) -> None:
    several.run_pytest("--lm-adapter=models:Weak", "--lm-report-dir=alone")
    several.write("reports/leaderboard.json", "of an older run")
    ran = several.run_pytest(*TWO, processes, "--junitxml=junit.xml")
    assert 1 == ran.ret
    ran.assert_outcomes(passed=15, failed=9)
    alone, weak = several.board("alone"), several.board("reports/B")
    for name in ("digest", "counts", "overall_score", "adapter"):
        assert alone[name] == weak[name]
    assert (alone["gate"]["verdict"], alone["gate"]["reasons"]) == (weak["gate"]["verdict"], weak["gate"]["reasons"])
    assert ("good.v1", 1.0, "pass") == (
        (good := several.board("reports/A"))["adapter"],
        good["overall_score"],
        good["gate"]["verdict"],
    )
    assert not (several.path / "reports/leaderboard.json").exists()
    found = comparison(several)
    assert (["A", "B"], 1, ["A"]) == (
        [model["folder"] for model in found["models"]],
        found["exit_code"],
        found["ranking"]["not_worse"],
    )
    ran.stdout.fnmatch_lines(
        [
            "A      pass      1.0000*",
            "B      examples  0.2500*",
            "not significantly worse than the best (95 %, Holm): A",
            "comparison: reports/comparison.json",
        ]
    )
    names = {
        case.attrib["name"] for case in ElementTree.parse(several.path / "junit.xml").getroot()[0].iter("testcase")
    }
    assert {"e0[A]", "e0[B]"} <= names
    assert "| B | examples | 0.2500 |" in (several.path / "reports/comparison.md").read_text()
    assert '"differ":9' in (several.path / "reports/report.html").read_text()


@pytest.mark.again
def test_last_failed_keywords_and_node_ids_pick_items_of_a_model(several: Project) -> None:
    several.run_pytest(*TWO)
    several.run_pytest(*TWO, "--lf").assert_outcomes(failed=9)
    assert 9 == several.board("reports/B/selection")["counts"]["collected"]
    assert 12 == several.board("reports/B")["counts"]["collected"]
    several.run_pytest(*TWO, "-k", "e5").assert_outcomes(passed=1, failed=1, deselected=22)
    several.run_pytest(*TWO, "tasks/numbers.jsonl::e5[A]").assert_outcomes(passed=1)
    several.run_pytest(*TWO, "--lf", "-n2").assert_outcomes(failed=9)


def test_a_run_that_picks_leaves_what_a_whole_run_wrote(several: Project) -> None:
    several.run_pytest(*TWO)

    def written() -> dict[str, bytes]:
        files = ("comparison.json", "report.html", "A/leaderboard.json", "B/leaderboard.json")
        return {name: (several.path / "reports" / name).read_bytes() for name in files}

    whole = written()
    # Of a model that the whole run had and a new one, in this order, and of one model.
    picked = several.run_pytest("--lm-adapter=C=models:Good", TWO[1], "-k", "e5")
    picked.stdout.fnmatch_lines(["comparison: reports/selection/comparison.json"])
    folders = [model["folder"] for model in comparison(several, "reports/selection")["models"]]
    assert ["../C", "../B/selection"] == folders
    alone = several.run_pytest("--lm-adapter=models:Good", "-k", "e5")
    alone.stdout.fnmatch_lines(["reports of this selection: *reports/selection; the whole run's board is unchanged"])
    assert whole == written()
    # A whole run of one model leaves no comparison of an older run beside its board.
    several.run_pytest("--lm-adapter=models:Good")
    assert not (several.path / "reports/comparison.json").exists()
    board = (several.path / "reports/leaderboard.json").read_bytes()
    several.run_pytest("--lm-adapter=C=models:Good", "--lm-adapter=D=models:Weak", "-k", "e5")
    assert board == (several.path / "reports/leaderboard.json").read_bytes()


def test_an_interrupted_run_of_several_models_is_completed(several: Project) -> None:
    several.run_pytest(*TWO, "--lm-report-dir=whole")
    several.run_pytest(*TWO, "-x")
    ran = several.run_pytest(*TWO, "--lm-resume")
    ran.stdout.fnmatch_lines(["resumed: reused * answer(s) of the ledger"])
    for label in "AB":
        assert several.board(f"whole/{label}")["digest"] == several.board(f"reports/{label}")["digest"]


def test_shards_of_several_models_are_merged_into_the_run_that_was_never_split(several: Project) -> None:
    several.run_pytest(*TWO, "--lm-report-dir=whole")
    for part in (1, 2):
        several.run_pytest(*TWO, f"--lm-shard={part}/2", f"--lm-report-dir=s{part}")
    ran = several.lmeval("merge", "s1", "s2", "-o", "merged")
    whole, merged = comparison(several, "whole"), comparison(several, "merged")
    assert (1, "A is best; B is worse (by at least 29 points)") == (ran.ret, merged["decision"])
    assert merged["decision"] in ran.stdout.str()
    for name in ("exit_code", "decision", "tasks"):
        assert whole[name] == merged[name]
    for name in ("label", "digest", "verdict", "folder"):
        assert [model[name] for model in whole["models"]] == [model[name] for model in merged["models"]]
    assert (several.path / "merged/report.html").is_file()
    refused = [
        (
            ("s1", "s2/A"),
            "s1 is a run of the models A, B and s2/A of one model: shards of one",
        ),
        (
            ("s1/A/ledger.jsonl", "s1/B/ledger.jsonl"),
            "both shard 1/2; they are from two models: name the report dirs",
        ),
        (("s1",), "A: 1 of 2 shards missing: 2/2"),
        (("tasks",), "tasks: no comparison.json and no ledger.jsonl in this folder"),
    ]
    for shards, says in refused:
        ran = several.lmeval("merge", *shards, "-o", "refused")
        assert (2, True) == (ran.ret, says in ran.stderr.str())
    text = (several.path / "s1/comparison.json").read_text()
    several.write("s1/comparison.json", text.replace('"label": "A"', '"label": "../A"'))
    ran = several.lmeval("merge", "s1", "s2", "-o", "refused")
    assert (2, True) == (
        ran.ret,
        "a label may contain only letters, digits, _, . and -, got '../A'" in ran.stderr.str(),
    )
    assert not (several.path / "refused").exists()


def test_a_model_that_fails_does_not_keep_another_from_its_board(several: Project) -> None:
    ran = several.run_pytest(TWO[0], "--lm-adapter=D=models:Down", "--lm-retries=0", *TWO[1:])
    assert 3 == ran.ret
    boards = {label: several.board(f"reports/{label}") for label in "ABD"}
    assert {"A": True, "B": True, "D": False} == {label: board["complete"] for label, board in boards.items()}
    found = comparison(several)
    assert (3, ["A", "B"]) == (found["exit_code"], [each["name"] for each in found["ranking"]["standings"]])
    alone = several.run_pytest(TWO[0], "--lm-adapter=D=models:Down", "--lm-retries=0")
    alone.stdout.fnmatch_lines(["not ranked: fewer than two models have a score"])
    assert (None, 3) == ((found := comparison(several))["ranking"], found["exit_code"])


def test_a_model_that_dies_half_way_is_not_ranked_and_takes_nothing_from_the_others(several: Project) -> None:
    several.run_pytest(*TWO, "--lm-gate=none")
    whole = comparison(several)["ranking"]
    dying = ("--lm-adapter=D=models:Dying", "--lm-batch-size=1", "--lm-retries=0", "--lm-max-errors=12")
    ran = several.run_pytest(*TWO, *dying, "--lm-gate=none")
    assert 0 == ran.ret
    ran.stdout.fnmatch_lines(
        [
            "D      not gated * 5 *",
            "D: not ranked: a score for 5 of 12 examples; at least 80% are needed",
            "scores are over the 12 example(s) that all ranked models have a score for: numbers 12",
            "D: 7 not scored, 7 of which A got right",
        ]
    )
    found = comparison(several)["ranking"]
    p95 = {"p95_ms": None}
    assert [{**each, **p95} for each in whole["standings"]] == [{**each, **p95} for each in found["standings"]]
    for file in ("comparison.md", "report.html"):
        assert "D: 7 not scored, 7 of which A got right" in (several.path / "reports" / file).read_text()


def test_a_model_that_was_not_asked_has_no_verdict(several: Project) -> None:
    ran = several.run_pytest(*TWO, "-k", "[A]")
    ran.assert_outcomes(passed=12, deselected=12)
    ran.stdout.fnmatch_lines(["not ranked: fewer than two models have a score", "B: not asked: no example of it *"])
    assert (["B"], ["A"]) == (
        (found := comparison(several))["not_asked"],
        [model["label"] for model in found["models"]],
    )
    assert not [*(several.path / "reports/B").rglob("*.json*")]


@pytest.mark.parametrize("baseline", [pytest.param("base.json", marks=pytest.mark.again), "bases"])
def test_a_baseline_is_one_file_for_all_or_a_folder_with_labels(several: Project, baseline: str) -> None:
    update = "--lm-update-baseline"
    if baseline == "base.json":
        several.run_pytest("--lm-adapter=models:Good", "--lm-baseline=base.json", update)
        expected = {"A": "pass", "B": "regression"}
    else:
        assert 0 == several.run_pytest(*TWO, "--lm-baseline=bases", update).ret
        assert ["A.json", "B.json"] == sorted(path.name for path in (several.path / "bases").iterdir())
        expected = {"A": "pass", "B": "pass"}
    ran = several.run_pytest(*TWO, f"--lm-baseline={baseline}", "--junitxml=junit.xml")
    assert int("regression" in expected.values()) == ran.ret
    verdicts = {label: several.board(f"reports/{label}")["gate"]["verdict"] for label in expected}
    assert expected == verdicts
    suite = ElementTree.parse(several.path / "junit.xml").getroot()[0]
    properties = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
    assert expected == {label: properties[f"lm_verdict[{label}]"] for label in expected}
    gates = [case.attrib["name"] for case in suite.iter("testcase") if "gate" in case.attrib["name"]]
    assert ["gate[B]"] * ran.ret == gates


def test_a_baseline_that_several_models_would_write_or_remove_is_refused(several: Project) -> None:
    ran = several.run_pytest(*TWO, "--lm-baseline=base.json", "--lm-update-baseline")
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(["*2 models would write the same file *base.json: name a folder*"])
    assert 0 == several.run_pytest("--lm-adapter=models:Good", "--lm-include-per-example").ret
    board = (several.path / "reports/leaderboard.json").read_bytes()
    ran = several.run_pytest(*TWO, "--lm-baseline=reports/leaderboard.json")
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(["*this run writes that file itself, or moves it; keep a copy*"])
    assert board == (several.path / "reports/leaderboard.json").read_bytes()
    # A file for all may have any name.
    (several.path / "base").write_bytes(board)
    assert 1 == several.run_pytest(*TWO, "--lm-baseline=base").ret


def test_on_github_every_text_names_its_model_and_the_comparison_is_in_the_summary(
    several: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(several.path / "summary.md"))
    ran = several.run_pytest(*TWO)
    ran.stdout.fnmatch_lines(["*leaderboard: B (weak.v1)*", "::error *title=numbers%3A e3[[]B] failed::*"])
    summary = (several.path / "summary.md").read_text()
    assert ["**A**", "# Evals passed: good.v1", "**B**"] == [
        line for line in summary.splitlines() if line.startswith(("**A**", "**B**", "# Evals passed"))
    ]
    assert (several.path / "reports/comparison.md").read_text().strip() in summary
    assert "- B: examples: numbers: 9 example(s) below their threshold" in summary


def test_models_that_nothing_could_fail_are_not_called_passed(several: Project) -> None:
    ran = several.run_pytest(*TWO, "--lm-gate=none")
    ran.stdout.fnmatch_lines(["A      not gated *", "B      not gated *"])
    assert [False, False] == [model["gated"] for model in comparison(several)["models"]]


def test_options_are_those_of_a_label_or_of_all(several: Project) -> None:
    adapters = ("--lm-adapter=A=models:Good", "--lm-adapter=B=models:Good")
    several.run_pytest(*adapters, "--lm-adapter-arg=B:style=!", "--lm-gate=none")
    assert ({"style": "!"}, 0.0) == ((board := several.board("reports/B"))["adapter_options"], board["overall_score"])
    assert ({}, 1.0) == ((board := several.board("reports/A"))["adapter_options"], board["overall_score"])
    several.run_pytest(*adapters, "--lm-adapter-arg=style=!", "--lm-gate=none")
    assert [0.0, 0.0] == [several.board(f"reports/{label}")["overall_score"] for label in "AB"]


def test_all_models_spend_out_of_one_purse(several: Project) -> None:
    dear = ("--lm-adapter=A=models:Dear", "--lm-adapter=B=models:Dear")
    assert 3 == several.run_pytest(*dear, "--lm-max-cost=10", "--lm-batch-size=1", "--lm-gate=none").ret
    assert sum(several.board(f"reports/{label}")["usage"].get("cost", 0) for label in "AB") <= 10


def test_two_servers_are_asked_at_once(several: Project) -> None:
    slow = ("--lm-adapter=A=models:Slow", "--lm-adapter=B=models:Slow")
    several.run_pytest(*slow, "--lm-concurrency=2", "--lm-gate=none", "--lm-include-per-example")
    most = max(int(record["output"]) for label in "AB" for record in several.examples(f"reports/{label}").values())
    assert 2 < most <= 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--lm-adapter=models:Good", "--lm-adapter=models:Good"],
            "*two models have the label 'models-Good'; give each model its own label*",
        ),
        (["--lm-adapter=a=models:Good", TWO[0]], "*two models have the label 'a' or 'A', which differ only in case*"),
        (
            ["--lm-adapter=..=models:Good", TWO[0]],
            "*'..' cannot be a label, because reports need a folder*",
        ),
        (["--lm-adapter=Selection=models:Good", TWO[0]], "*'Selection' cannot be a label*"),
        (["--lm-adapter=report.html=models:Good", TWO[0]], "*'report.html' cannot be a label*"),
        (["--lm-adapter=a b=models:Good"], "*a label may contain only letters, digits, _, . and -, got 'a b'*"),
        ([*TWO, "--lm-adapter-arg=C:style=!"], "*no model has the label 'C'; labels: A, B*"),
    ],
)
def test_models_that_cannot_be_told_apart_or_do_not_exist_are_usage_errors(
    several: Project, options: list[str], message: str
) -> None:
    ran = several.run_pytest(*options)
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines([message])


def test_a_parametrised_fixture_is_a_usage_error_that_names_the_option(several: Project) -> None:
    several.write(
        "conftest.py",
        "import pytest, models\n"
        "@pytest.fixture(scope='session', params=[models.Good, models.Weak])\n"
        "def lm_adapter(request):\n    return request.param()\n",
    )
    ran = several.run_pytest("tasks")
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(
        ["*conftest.py:2: the fixture lm_adapter must not be parametrised*--lm-adapter=LABEL=SPEC*"]
    )


def test_one_model_needs_no_label_and_may_have_one(several: Project) -> None:
    ran = several.run_pytest("--lm-adapter=A=models:Good", "--lm-adapter-arg=A:style=")
    assert 0 == ran.ret
    assert "good.v1" == several.board()["adapter"]


def test_every_model_is_closed_where_one_does_not_close(several: Project) -> None:
    several.write("closing.py", CLOSING)
    models = ("--lm-adapter=A=closing:Closing", "--lm-adapter=B=closing:Closing")
    ran = several.run_pytest(*models, "--lm-adapter-arg=A:mark=first", "--lm-adapter-arg=B:mark=second")
    ran.stdout.fnmatch_lines(["*OSError: does not close*"])
    assert [True, True] == [(several.path / mark).exists() for mark in ("first", "second")]
