"""Whatever a run comes to, exit code, board, JUnit, JSON report, ledger, terminal and Markdown say the same."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import PYTEST_INI, MadeOnce, Project, RunModule

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
        prompt = prompt.removeprefix("now: ")
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
OTHER_PROMPTS = [{**record, "prompt": f"now: {record['prompt']}"} for record in RECORDS]
HELD = [
    {**record, "extras": {"quarantine": {"until": "2999-12-31", "reason": "flips"}}} if number in (1, 3) else record
    for number, record in enumerate(RECORDS)
]
MODES = ("examples", "tasks", "baseline", "none")
TITLES = {
    "pass": "passed",
    "inconclusive": "passed, but inconclusive",
    "examples": "failed: examples below their threshold",
    "floor": "failed: below the floor",
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
    records: Sequence[Mapping[str, Any]] = RECORDS


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

# How runs are compared and judged besides; each is run in one mode.
COMPARED = {
    "another prompt, worse": (
        "baseline",
        Outcome("most", ("regression",) * 4, ("--lm-pair-by=id",), "", OTHER_PROMPTS),
    ),
    "another prompt, as good": ("baseline", Outcome("right", ("pass",) * 4, ("--lm-pair-by=id",), "", OTHER_PROMPTS)),
    "quarantined": ("examples", Outcome("one", ("pass",) * 4, records=HELD)),
    "quarantined, and others wrong": ("examples", Outcome("most", ("examples",) * 4, records=HELD)),
    "quarantined by a change": ("baseline", Outcome("most", ("regression",) * 4, records=HELD)),
    "out of the cache": ("baseline", Outcome("most", ("regression",) * 4, ("--lm-cache=answers",))),
}


@pytest.fixture(scope="module")
def baseline(made_once: MadeOnce, run_module: RunModule) -> bytes:
    """Provide the baseline of a run that got everything right."""
    options = ["--lm-adapter=scripted:Model", "--lm-baseline=base.json", "--lm-update-baseline", "-pno:randomly"]

    def fill(folder: Path) -> None:
        write_project(folder)
        assert 0 == run_module(folder, "pytest", *options).returncode

    return (made_once("baseline-of-reports", fill) / "base.json").read_bytes()


def write_project(folder: Path, records: Sequence[Mapping[str, Any]] = RECORDS) -> None:
    (folder / "scripted.py").write_text(MODEL)
    (folder / "pytest.ini").write_text(PYTEST_INI)
    (folder / "tasks").mkdir(exist_ok=True)
    (folder / "tasks/t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def run_to(project: Project, outcome: Outcome, mode: str, baseline: bytes, *options: str) -> pytest.RunResult:
    write_project(project.path, outcome.records)
    project.write("base.json", baseline)
    project.write("conftest.py", outcome.conftest)
    gate = ["--lm-baseline=base.json"] if mode == "baseline" else [f"--lm-gate={mode}"]
    reports = ["--junitxml=junit.xml", "--json-report", "--json-report-file=report.json"]
    how = ["--lm-adapter=scripted:Model", f"--lm-adapter-arg=how='{outcome.how}'", "--lm-batch-size=1"]
    return project.run_pytest(*how, *gate, *reports, *outcome.options, *options)


def check_agreement(project: Project, result: pytest.RunResult, outcome: Outcome, mode: str) -> None:
    verdict = outcome.verdicts[MODES.index(mode)]
    code = 1 if "-x" in outcome.options else CODES.get(verdict, 1)
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
        assert ("FAILED" if verdict == "examples" else verdict.upper()) in result.stdout.str()
    for reason in reasons:
        assert f"  {reason}" in result.outlines
        assert re.sub(r"\W", "", reason) in re.sub(r"&\w+;|\W", "", text)
    shown = embedded(folder / "reports/report.html")["board"]
    assert board["digest"] == shown["digest"]
    assert {**board["gate"], "comparison": None} == {**shown["gate"], "comparison": None}


def embedded(page: Path) -> dict[str, Any]:
    """Return what a page shows, or the first part of that."""
    found = re.search(r'<script type="application/json" id="[^"]*">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# Every other of all pairs: each outcome in half of the modes, and the reverse; by default every fourth.
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(
            name,
            mode,
            marks=pytest.mark.slow if (row + column) % 2 else pytest.mark.again if (row + column) % 4 else [],
        )
        for (row, name), (column, mode) in product(enumerate(OUTCOMES), enumerate(MODES))
    ],
)
def test_all_reports_of_a_run_agree(project: Project, baseline: bytes, name: str, mode: str) -> None:
    check_agreement(project, run_to(project, OUTCOMES[name], mode, baseline), OUTCOMES[name], mode)


@pytest.mark.parametrize("name", OTHERS)
def test_all_reports_agree_on_what_has_nothing_to_do_with_scores(project: Project, baseline: bytes, name: str) -> None:
    mode, outcome = OTHERS[name]
    check_agreement(project, run_to(project, outcome, mode, baseline), outcome, mode)


@pytest.mark.parametrize("name", ["most wrong", "cut short"])
def test_all_reports_of_workers_agree(project: Project, baseline: bytes, name: str) -> None:
    outcome = OUTCOMES.get(name) or OTHERS[name][1]
    check_agreement(project, run_to(project, outcome, "baseline", baseline, "-n2"), outcome, "baseline")


@pytest.mark.parametrize("name", COMPARED)
def test_all_reports_agree_however_a_run_is_compared(project: Project, baseline: bytes, name: str) -> None:
    mode, outcome = COMPARED[name]
    result = run_to(project, outcome, mode, baseline)
    if "--lm-cache=answers" in outcome.options:
        asked_for = project.board()["gate"]
        result = run_to(project, outcome, mode, baseline, "--lm-cache-mode=read-only")
        # But that answers may be the baseline's own, which only the second run can know of.
        assert asked_for == {**project.board()["gate"], "warnings": asked_for["warnings"]}
    check_agreement(project, result, outcome, mode)


def test_all_reports_of_several_models_agree(project: Project, baseline: bytes) -> None:
    write_project(project.path)
    project.write("base.json", baseline)
    expected = {"fine": "pass", "poor": "regression", "down": "incomplete"}
    hows = {"fine": "right", "poor": "most", "down": "raises"}
    models = [f"--lm-adapter={label}=scripted:Model" for label in hows]
    models += [f"--lm-adapter-arg={label}:how='{how}'" for label, how in hows.items()]
    reports = ["--junitxml=junit.xml", "--json-report", "--json-report-file=report.json"]
    result = project.run_pytest(*models, "--lm-baseline=base.json", "--lm-retries=0", *reports)
    assert 3 == result.ret
    boards = {label: project.board(f"reports/{label}") for label in hows}
    assert expected == {label: board["gate"]["verdict"] for label, board in boards.items()}
    suite = ElementTree.parse(project.path / "junit.xml").getroot()[0]
    junit = {node.attrib["name"]: node.attrib["value"] for node in suite.findall("properties/property")}
    report = json.loads((project.path / "report.json").read_text())
    assert (3, boards) == (report["exitcode"], report["lmeval"]["boards"])
    comparison = json.loads((project.path / "reports/comparison.json").read_text())
    assert comparison == report["lmeval"]["comparison"]
    page = embedded(project.path / "reports/report.html")
    assert (comparison["schema"], comparison["timestamp"]) == (page["schema"], page["timestamp"])
    assert (comparison["decision"], comparison["tasks"]) == (page["sentence"], page["table"])
    markdown = (project.path / "reports/comparison.md").read_text()
    for model in comparison["models"]:
        gate = boards[model["label"]]["gate"]
        check_model(project.path / "reports" / model["label"], model, gate, result)
        assert (gate["verdict"], "; ".join(gate["reasons"])) == (
            junit[f"lm_verdict[{model['label']}]"],
            junit[f"lm_reasons[{model['label']}]"],
        )
        assert f"| {model['label']} | {gate['verdict']} |" in markdown
        assert all(re.sub(r"\W", "", reason) in re.sub(r"&\w+;|\W", "", markdown) for reason in gate["reasons"])


def check_model(folder: Path, model: Mapping[str, Any], gate: Mapping[str, Any], result: pytest.RunResult) -> None:
    assert (gate["verdict"], gate["reasons"], True) == (model["verdict"], model["reasons"], model["gated"])
    assert (folder / "leaderboard.md").read_text().startswith(f"# Evals {TITLES[gate['verdict']]}: ")
    shown = embedded(folder / "report.html")["board"]["gate"]
    assert (gate["verdict"], gate["reasons"]) == (shown["verdict"], shown["reasons"])
    assert all(f"  {reason}" in result.outlines for reason in gate["reasons"] if gate["verdict"] != "pass")
    result.stdout.fnmatch_lines([f"{model['label']} * {gate['verdict']} *"])
    assert any(f"leaderboard: {model['label']} (scripted.v1)" in line for line in result.outlines)
