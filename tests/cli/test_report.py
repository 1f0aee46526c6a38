"""``lmeval report``: the HTML report of a real run, from its ledger or its board."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from tests.cli.conftest import Lmeval


def test_the_report_is_written_beside_the_ledger(lmeval: Lmeval, base: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes((base / "ledger.jsonl").read_bytes())
    code, out, err = lmeval("report", ledger)
    page = (tmp_path / "report.html").read_text()
    first, why, last = out.splitlines()
    assert (0, "gate tasks: not gated", f"wrote {tmp_path}/report.html", "") == (code, first, last, err)
    assert "  no result can fail this run: " in why
    assert page.startswith("<!")
    assert "stub.v1" in page
    assert "sums-11" in page


def test_a_baseline_brings_its_answers_and_the_comparison(
    lmeval: Lmeval, base: Path, worse: Path, tmp_path: Path
) -> None:
    page = tmp_path / "deep/page.html"
    code, out, _ = lmeval("report", worse / "leaderboard.json", "--baseline", base / "ledger.jsonl", "-o", page)
    text = page.read_text()
    coverage = "all 20 examples of the baseline were compared"
    assert (0, ["gate baseline: regression", f"wrote {page}"]) == (code, [out.splitlines()[0], out.splitlines()[-1]])
    assert f"  {coverage}" in out.splitlines()
    assert f"<li>{coverage}</li>" in text
    assert f'"coverage":["{coverage}"]' in text
    assert '"verdict":"regression"' in text
    assert f"compared with {base}/ledger.jsonl: stub.v1, " in html.unescape(text)
    lmeval("report", worse / "leaderboard.json", "-o", page)
    assert '"verdict":"regression"' not in page.read_text()


def test_what_cannot_be_read_or_written_is_a_usage_error(
    lmeval: Lmeval, base: Path, tmp_path: Path, bare_board: Path
) -> None:
    ledger = base / "ledger.jsonl"
    code, _, err = lmeval("report", bare_board)
    assert (2, True) == (code, "without per-example records" in err)
    code, _, err = lmeval("report", ledger, "-o", ledger)
    assert (2, True) == (code, "this is an input" in err)
    (tmp_path / "link").symlink_to(ledger)
    code, _, err = lmeval("report", ledger, "-o", tmp_path / "link")
    assert (2, True) == (code, "this is an input" in err)
    (tmp_path / "file").write_text("")
    code, _, err = lmeval("report", ledger, "-o", tmp_path / "file/page.html")
    assert (2, True) == (code, "cannot be written" in err)


@pytest.mark.parametrize("command", ["calibrate", "diff", "merge", "rank", "report"])
def test_every_command_tells_its_arguments(lmeval: Lmeval, command: str) -> None:
    code, out, err = lmeval(command, "--help")
    assert (0, "") == (code, err)
    assert out.startswith(f"usage: lmeval {command} ")
