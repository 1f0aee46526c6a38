"""Whatever a run comes to, exit code, board, JUnit, JSON report, ledger, terminal and Markdown say the same."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import PYTEST_INI, Project, RunModule

MODEL = """
import pytest

class Model:
    name = "scripted.v1"

    def __init__(self, how="right"):
        self.how = how

    def generate(self, prompts):
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt):
        if self.how == "raises" and prompt == "q1":
            raise OSError("down")
        if self.how == "exits" and prompt == "q5":
            pytest.exit("enough", 0)
        wrong = {"one": ["q1"], "must": ["q2"], "most": ["q0", "q1", "q3", "q4", "q5", "q6", "q7"]}
        return "wrong" if prompt in wrong.get(self.how, []) else "right"
"""
BROKEN = """
import pytest
@pytest.fixture(autouse=True)
def broken(request):
    yield
    assert request.node.name != "e1"
"""
MASKED = """
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    report.outcome, report.longrepr = "passed", None
    return report
"""
SKIPPED = "import pytest\ndef pytest_runtest_setup(): pytest.skip('not today')\n"
RECORDS = [
    {"id": f"e{n}", "prompt": f"q{n}", "targets": ["right"], "metric": "exact_match", "extras": {"must_pass": n == 2}}
    for n in range(8)
]
MODES = ("examples", "tasks", "baseline", "none")
TITLES = {
    "pass": "passed",
    "inconclusive": "passed, but inconclusive",
    "examples": "failed: examples under their threshold",
    "floor": "failed: under the floor",
    "must_pass": "failed: an example that must pass does not",
    "regression": "failed: a regression",
    "incomplete": "failed: the run is incomplete",
}
CODES = {"pass": 0, "inconclusive": 0, "incomplete": 3}


class Outcome(NamedTuple):
    """What happens in a run, and the gate's verdict on it in each of MODES."""

    how: str
    verdicts: tuple[str, str, str, str]
    options: tuple[str, ...] = ()
    conftest: str = ""


OUTCOMES = {
    "right": Outcome("right", ("pass", "pass", "pass", "pass")),
    "one wrong": Outcome("one", ("examples", "pass", "inconclusive", "pass")),
    "most wrong": Outcome("most", ("examples", "pass", "regression", "pass")),
    "under a floor": Outcome("one", ("floor", "floor", "floor", "pass"), ("--lm-min-score=t=1",)),
    "must pass": Outcome("must", ("must_pass", "must_pass", "must_pass", "pass")),
    "an allowed error": Outcome("raises", ("pass",) * 4, ("--lm-max-errors=1",)),
}
# Of these the mode makes no difference; each is run in one.
OTHERS = {
    "tear-down": ("none", Outcome("right", ("examples",) * 4, conftest=BROKEN)),
    "an error": ("none", Outcome("raises", ("incomplete",) * 4)),
    "cut short": ("baseline", Outcome("exits", ("incomplete",) * 4)),
    "masked": ("examples", Outcome("one", ("examples",) * 4, conftest=MASKED)),
    "skipped": ("tasks", Outcome("right", ("incomplete",) * 4, conftest=SKIPPED)),
    "stopped": ("examples", Outcome("one", ("incomplete",) * 4, ("-x",))),
}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory, run_module: RunModule) -> bytes:
    """Provide the baseline of a run that got everything right."""
    folder = tmp_path_factory.mktemp("baseline")
    write_project(folder)
    options = ["--lm-adapter=scripted:Model", "--lm-baseline=base.json", "--lm-update-baseline", "-pno:randomly"]
    assert 0 == run_module(folder, "pytest", *options).returncode
    return (folder / "base.json").read_bytes()


def write_project(folder: Path) -> None:
    (folder / "scripted.py").write_text(MODEL)
    (folder / "pytest.ini").write_text(PYTEST_INI)
    (folder / "tasks").mkdir()
    (folder / "tasks/t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))


def run_to(project: Project, outcome: Outcome, mode: str, baseline: bytes, *options: str) -> pytest.RunResult:
    write_project(project.path)
    project.write("base.json", baseline)
    project.write("conftest.py", outcome.conftest)
    gate = ["--lm-baseline=base.json"] if mode == "baseline" else [f"--lm-gate={mode}"]
    reports = ["--junitxml=junit.xml", "--json-report", "--json-report-file=report.json"]
    how = ["--lm-adapter=scripted:Model", f"--lm-adapter-arg=how='{outcome.how}'", "--lm-batch-size=1"]
    return project.run_pytest(*how, *gate, *reports, *outcome.options, *options)


def expected_code(verdict: str, outcome: Outcome) -> int:
    return 1 if "-x" in outcome.options else CODES.get(verdict, 1)


def check_agreement(project: Project, result: pytest.RunResult, verdict: str, code: int) -> None:
    assert code == result.ret
    board = project.board()
    assert verdict == board["gate"]["verdict"]
    assert (verdict != "incomplete") == board["complete"]
    counts = result.parseoutcomes()
    red = counts.get("failed", 0) + counts.get("errors", 0) + counts.get("error", 0)
    assert (code != 0) == (red > 0)
    assert board["counts"]["below"] == counts.get("below", 0)
    check_junit(project.path, board, red)
    check_json(project.path, board, code, red)
    check_texts(project.path, board, result)
    runs = [json.loads(line).get("run") for line in (project.path / "reports/ledger.jsonl").read_text().splitlines()]
    assert [board["gate"]] == [run["facts"]["gate"] for run in runs if run]


def check_junit(folder: Path, board: dict[str, Any], red: int) -> None:
    suite = ElementTree.parse(folder / "junit.xml").getroot()[0]
    gate = board["gate"]
    properties = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
    assert (gate["mode"], gate["verdict"]) == (properties["lm_gate"], properties["lm_verdict"])
    assert "; ".join(gate["reasons"]) == properties["lm_reasons"]
    assert red == int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    statuses = [node.attrib["value"] for node in suite.iter("property") if node.attrib["name"] == "lm_status"]
    assert board["counts"]["scored"] == sum(status in ("passed", "failed", "below") for status in statuses)


def check_json(folder: Path, board: dict[str, Any], code: int, red: int) -> None:
    report = json.loads((folder / "report.json").read_text())
    summary = report["summary"]
    assert code == report["exitcode"]
    assert board == report["lmeval"]
    assert red == summary.get("failed", 0) + summary.get("error", 0)


def check_texts(folder: Path, board: dict[str, Any], result: pytest.RunResult) -> None:
    verdict, reasons = board["gate"]["verdict"], board["gate"]["reasons"]
    text = (folder / "reports/leaderboard.md").read_text()
    is_off = verdict == "pass" and not board["gate"]["decided_by"]
    assert text.startswith("# Evals not gated: " if is_off else f"# Evals {TITLES[verdict]}: ")
    said = "INCOMPLETE: no overall score*" if verdict == "incomplete" else f"gate {board['gate']['mode']}: *"
    if verdict != "pass":
        result.stdout.fnmatch_lines([said])
        assert verdict.upper() in result.stdout.str()
    for reason in reasons:
        assert f"  {reason}" in result.outlines
        assert re.sub(r"\W", "", reason) in re.sub(r"&\w+;|\W", "", text)
    page = (folder / "reports/report.html").read_text()
    assert all(word in page for word in (board["digest"], board["gate"]["mode"]))


@pytest.mark.parametrize(("name", "mode"), list(product(OUTCOMES, MODES)))
def test_all_reports_of_a_run_agree(project: Project, baseline: bytes, name: str, mode: str) -> None:
    outcome = OUTCOMES[name]
    verdict = outcome.verdicts[MODES.index(mode)]
    result = run_to(project, outcome, mode, baseline)
    check_agreement(project, result, verdict, expected_code(verdict, outcome))


@pytest.mark.parametrize("name", OTHERS)
def test_all_reports_agree_on_what_has_nothing_to_do_with_scores(project: Project, baseline: bytes, name: str) -> None:
    mode, outcome = OTHERS[name]
    result = run_to(project, outcome, mode, baseline)
    check_agreement(project, result, outcome.verdicts[0], expected_code(outcome.verdicts[0], outcome))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("one wrong", "examples"),
        ("most wrong", "baseline"),
        ("must pass", "tasks"),
        ("an allowed error", "none"),
    ],
)
def test_all_reports_of_workers_agree(project: Project, baseline: bytes, name: str, mode: str) -> None:
    outcome = OUTCOMES[name]
    verdict = outcome.verdicts[MODES.index(mode)]
    result = run_to(project, outcome, mode, baseline, "-n2")
    check_agreement(project, result, verdict, expected_code(verdict, outcome))


@pytest.mark.parametrize("name", ["masked", "tear-down", "cut short"])
def test_all_reports_of_workers_agree_on_what_has_nothing_to_do_with_scores(
    project: Project, baseline: bytes, name: str
) -> None:
    mode, outcome = OTHERS[name]
    result = run_to(project, outcome, mode, baseline, "-n2")
    check_agreement(project, result, outcome.verdicts[0], expected_code(outcome.verdicts[0], outcome))
