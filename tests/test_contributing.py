"""The changes that CONTRIBUTING.md shows apply to this tree, touch as few files as it says, and work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.report.html.browser import find_chromium, running_browser

ROOT = Path(__file__).parents[1]
SECTION = re.search(r"## What a change touches\n(.*?)\n## ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)
assert SECTION is not None
CHANGES = dict(re.findall(r"### An? (.*?)\n.*?```diff\n(.*?\n)```", SECTION[1], re.DOTALL))
FILES = {"metric": 1, "adapter": 2, "file format": 2, "gate option": 3, "column of the report": 3}
# Loads and runs the task file that is its argument, and writes the board with whatever the run was to show.
PROGRAM = """
import json, sys
import pytest_lmeval as lm
from pytest_lmeval.report.html import write_report
from pytest_lmeval.report.markdown import markdown
from pytest_lmeval.report.terminal_text import terminal_table
registry = lm.default_registry(entry_points=False)
path, spec = sys.argv[1:]
board = lm.run_leaderboard(lm.load_tasks(path, registry=registry), lm.make_adapter(spec, registry), registry=registry)
write_report("page.html", board.to_json(), [])
print(json.dumps([lm.__file__, board.to_json(), terminal_table(board), markdown(board)]))
"""
END = "\n===== end of a run\n"
# The exit code of a run that exceeds the limit, by gate.
GATES = {"examples": 1, "tasks": 1, "baseline --lm-baseline=before/ledger.jsonl": 1, "none": 0}
LIMITED = [f"--lm-max-unparsed={most} --lm-gate={gate}" for gate in GATES for most in (0.5, 0.99)]
# The arguments of every run come first, then its own.
RUNS = f"""
import sys, pytest
for options in {["--help", "--lm-report-dir=before", *LIMITED]}:
    print("exit code", int(pytest.main([*sys.argv[1:], *options.split()])), end={END!r})
"""
SUM = {"id": "sum", "prompt": "1 + 1 =", "targets": ["2"], "metric": "exact_match"}


class Copy:
    """A copy of the package, and what a process that imports it makes of a task file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "pytest_lmeval", folder / "pytest_lmeval")

    def apply(self, diff: str) -> None:
        # A temporary folder inside a checkout is none of its own.
        surroundings = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        command = ["git", "apply", "-"]
        done = subprocess.run(command, cwd=self.folder, input=diff, env=surroundings, capture_output=True, text=True)
        assert 0 == done.returncode, done.stderr

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = ("PYTEST_", "GITHUB_", "LM_", "CI")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        surroundings = {**inherited, "PYTHONPATH": str(self.folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.folder, env=surroundings, capture_output=True, text=True)

    def run(self, name: str, content: str, spec: str = "toy") -> tuple[dict[str, Any], list[str], str]:
        """Return the board of a task file, as JSON, as a table and as Markdown."""
        (self.folder / name).write_text(content)
        done = self.python("-c", PROGRAM, name, spec)
        assert 0 == done.returncode, done.stderr
        home, board, table, markdown = json.loads(done.stdout)
        assert Path(home).is_relative_to(self.folder)
        return board, table, markdown


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    if shutil.which("git") is None:
        needs.lacking("git", "needs git")
    return Copy(tmp_path)


def _metric(copy: Copy) -> None:
    record = {**SUM, "metric": "brief", "extras": {"most_words": 0}}
    board, _, _ = copy.run("t.jsonl", json.dumps(record) + "\n" + json.dumps({**record, "id": "b", "extras": {}}))
    assert ("brief", 0.5) == (board["tasks"][0]["metric"], board["overall_score"])


def _adapter(copy: Copy) -> None:
    board, _, _ = copy.run("t.jsonl", json.dumps({**SUM, "prompt": "say: 2"}), "echo:say: ")
    assert ("echo:say: ", 1.0) == (board["adapter"], board["overall_score"])


def _format(copy: Copy) -> None:
    board, _, _ = copy.run("sums.tsv", "1 + 1 =\t2\n2 + 2 =\t5\n")
    assert ("sums", 0.5) == (board["tasks"][0]["task"], board["overall_score"])


def _gate_option(copy: Copy) -> None:
    spec = {"category": "classification", "metric_name": "accuracy", "post_process": "extract_letter", "targets": ["A"]}
    prompts = [
        "Which?",
        "Which one?",
        "What is the capital of Australia?\nA) Sydney\nB) Canberra\nAnswer with a letter:",
    ]
    records = [{**spec, "task_id": f"s{number}", "prompt": prompt} for number, prompt in enumerate(prompts)]
    (copy.folder / "t.jsonl").write_text("\n".join(map(json.dumps, records)))
    (copy.folder / "pytest.ini").write_text("[pytest]\nlm_thresholds = accuracy=0\n")
    done = copy.python("-c", RUNS, "-ppytest_lmeval.plugin", "t.jsonl", "--lm-adapter=toy", "-q", "-pno:cacheprovider")
    helped, _, *runs = done.stdout.split(END)[:-1]
    assert "--lm-max-unparsed=P" in helped
    for (gate, code), over, held in zip(GATES.items(), runs[::2], runs[1::2], strict=True):
        assert over.endswith(f"exit code {code}"), over
        assert "2 example(s) held no answer to extract" in over
        assert held.endswith("exit code 0"), held
        assert ("NOT GATED" in held, "NOT GATED" in over) == (gate == "none",) * 2


def _column(copy: Copy) -> None:
    board, table, markdown = copy.run("t.jsonl", json.dumps(SUM))
    assert board["tasks"][0]["latency_ms"] == board["tasks"][0]["slowest_ms"]
    assert ["ms", "slowest"] == table[0].split()[-2:]
    assert "| ms | slowest |" in markdown
    page = copy.folder / "page.html"
    assert '"title":"Slowest"' in page.read_text()
    if program := find_chromium():
        with running_browser(program) as browser:
            browser.open(page)
            assert "Slowest" == browser.texts(".scores thead th")[-1]
            assert browser.texts(".scores tbody td")[-1].endswith("s")
    schema = json.loads((copy.folder / "pytest_lmeval/schemas/leaderboard.json").read_text())
    jsonschema = needs.module("jsonschema")
    jsonschema.validate(board, schema)


CHECKS: dict[str, Callable[[Copy], None]] = {
    "metric": _metric,
    "adapter": _adapter,
    "file format": _format,
    "gate option": _gate_option,
    "column of the report": _column,
}


@pytest.mark.parametrize("change", ["metric", *(pytest.param(each, marks=pytest.mark.again) for each in [*CHECKS][1:])])
def test_a_change_that_is_shown_does_what_it_is_for(change: str, copy: Copy) -> None:
    copy.apply(CHANGES[change])
    CHECKS[change](copy)


def test_a_change_touches_as_few_files_as_is_said() -> None:
    assert FILES == {
        change: len(re.findall(r"^\+\+\+ b/pytest_lmeval/", diff, re.M)) for change, diff in CHANGES.items()
    }
