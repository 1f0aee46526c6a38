"""Ledger and leaderboard of a run hold the same bytes as ever, but for times, versions and the machine.

To change on purpose what is written: set LMEVAL_TESTS_WRITE_FILES, run these tests, and read the difference in git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.conftest import NEEDLESS, RunModule
from tests.equality.kinds import SCENES, write_kind
from tests.golden.files.metered import EVALS, METERED

RECORDS = Path(__file__).parent / "records"
AGAIN = "LMEVAL_TESTS_WRITE_FILES"
# What differs between two runs of a project, on one machine or two, each with what is put in its place.
_DIFFERS = (
    (r'"timestamp": ?"[^"]*"', '"timestamp": "TIME"'),
    (r'("(?:request|ttft)_ms": ?)\[[^]]+\]', r"\g<1>[MS]"),
    # A step that begins within the first tenth of a millisecond does not say when.
    (r'(,\s*)?"start_ms": ?[\d.e+-]+', ""),
    (
        r'("(?:(?:latency|harness|model|duration|(?:duration_)?p50|(?:\w+_)?p95)_ms|wall_s|ms)": ?)[\d.e+-]+',
        r"\g<1>TIME",
    ),
    (r'("(?:platform|python|pytest[\w-]*|git|sandbox|level)": ?)(?:"[^"]*"|null)', r"\g<1>HERE"),
    (r'"argv": ?\[[^]]*\]', '"argv": []'),
)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def _write_scene(name: str, folder: Path) -> Sequence[str]:
    """Write the project; return the arguments of its run."""
    if name in SCENES:
        kind = SCENES[name]
        write_kind(kind, folder)
        (folder / "wrong.txt").write_text(kind.wrong)
        # Of every task the first examples: the first answers are right, the second wrong.
        return [*kind.options, *kind.paths, *([] if kind.needs_pytest else ["--lm-limit=2"])]
    _write(folder, {"metered": METERED, "repeats": METERED, "evals": EVALS}[name])
    options = {
        "metered": ["tasks", "--lm-max-errors=2", "--lm-retries=1"],
        "repeats": ["tasks/plain.jsonl", "--lm-repeats=2"],
        "evals": ["tests", "--lm-judge=model:Judge", "--lm-retries=1"],
    }
    return options[name]


def _normal(text: str) -> str:
    for pattern, replacement in _DIFFERS:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize("name", ["together", "functions", "metered", "repeats", "evals"])
def test_ledger_and_leaderboard_are_written_as_ever(name: str, tmp_path: Path, run_module: RunModule) -> None:
    quick = ["-q", "--tb=no", "-n0", *[f"-pno:{plugin}" for plugin in (*NEEDLESS, "cacheprovider")]]
    options = ["--lm-adapter=model:Model", "--lm-report-dir=reports", "--lm-include-per-example", "--lm-gate=tasks"]
    run_module(tmp_path, "pytest", *quick, *options, *_write_scene(name, tmp_path))
    files = ("ledger.jsonl", "leaderboard.json")
    written = {file: _normal((tmp_path / "reports" / file).read_text("ascii")) for file in files}
    if AGAIN in os.environ:
        for file, text in written.items():
            (RECORDS / f"{name}.{file}").write_text(text)
    for file, text in written.items():
        # Field by field, or what differs in a line of a thousand characters would not be shown.
        assert _fields((RECORDS / f"{name}.{file}").read_text()) == _fields(text)


def _fields(text: str) -> list[str]:
    return re.split(r'(?<=,)(?=")', text)
