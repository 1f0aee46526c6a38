"""Two runs side by side: paired where both have their examples, and told plainly where they do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.compare.difference import ChangedTask, Difference, difference
from pytest_lmeval.compare.gate import GateSettings
from pytest_lmeval.records.runfile import RunFile, read_run
from pytest_lmeval.report.difference_text import difference_lines, difference_markdown
from pytest_lmeval.types import ExampleResult
from tests.records.run_files import infos_of, ledger_run, result, results_of, write_board, write_ledger

Scores = Mapping[str, Sequence[float | None]]
GATE = GateSettings(mode="baseline")
HOSTILE = "<b>\x1b[31mred|\n@you `x` \ud800"


def _ledger(folder: Path, results: list[ExampleResult], **fields: Any) -> RunFile:
    return read_run(write_ledger(folder, results, **fields))


def _difference(tmp_path: Path, old: Scores, new: Scores) -> Difference:
    later = "2026-11-21T09:00:00Z"
    runs = ledger_run(tmp_path / "old", old), ledger_run(tmp_path / "new", new, timestamp=later)
    return difference(*runs, GATE)


def test_too_little_left_to_compare_is_a_finding(tmp_path: Path) -> None:
    found = _difference(tmp_path, {"sums": [1.0] * 10}, {"words": [1.0] * 10})
    assert found.comparison is not None
    assert ("stale", True) == (found.comparison.verdict, found.is_finding)


def test_what_the_new_run_left_out_by_choice_is_neither_removed_nor_stale(tmp_path: Path) -> None:
    old = ledger_run(tmp_path / "old", {"sums": [1.0] * 10})
    half = results_of({"sums": [1.0] * 5})
    selection = {"limit": 5, "tasks": {"sums": {"available": 10, "selected": 5}}}
    found = difference(old, _ledger(tmp_path / "new", half, selection=selection), GATE)
    assert found.comparison is not None
    assert ("pass", 5, ()) == (found.comparison.verdict, found.comparison.paired, found.comparison.of("removed"))


def test_code_of_different_sandbox_levels_is_not_compared(tmp_path: Path) -> None:
    runs = [
        _ledger(tmp_path / level, results_of({"code": [1.0], "sums": [1.0]}, metric="code_exec"), manifest=manifest)
        for level, manifest in (("old", {"sandbox": "process"}), ("new", {"sandbox": "confined"}))
    ]
    found = difference(runs[0], runs[1], GATE)
    assert found.comparison is not None
    why = "run at sandbox level confined, in the baseline at process"
    assert {"code": why, "sums": why} == found.comparison.left_out


def test_a_task_whose_file_changed_is_named_with_both_hashes(tmp_path: Path) -> None:
    results = results_of({"sums": [1.0], "words": [1.0]})
    changed = [replace(info, sha256="b" * 64) if info.name == "sums" else info for info in infos_of(results)]
    old, new = _ledger(tmp_path / "old", results), _ledger(tmp_path / "new", results, infos=changed)
    found = difference(old, new, GATE)
    assert (ChangedTask("sums", "a" * 64, "b" * 64),) == found.changed_tasks
    assert f"task sums: its file changed, sha256 {'a' * 12} to {'b' * 12}" in difference_lines(found, 1)


def test_without_examples_only_the_scores_are_compared_and_it_says_so(tmp_path: Path) -> None:
    old = read_run(write_board(tmp_path, results_of({"sums": [1.0] * 20}), per_example=False))
    new = ledger_run(tmp_path, {"sums": [0.0] * 20, "words": [1.0]})
    found = difference(old, new, GATE)
    assert (None, False) == (found.comparison, found.is_finding)
    assert {"sums": (1.0, 0.0), "words": (None, 1.0)} == found.scores
    assert ["no paired test was possible" in note for note in found.notes] == [True]
    text = "\n".join(difference_lines(found, 1))
    assert "sums     1.0000  0.0000  -1.0000" in text
    assert "words         -  1.0000        -" in text
    assert "verdict" not in text
    assert difference_markdown(found, 1).startswith("# Comparison: scores only\n")


def test_a_reader_is_told_what_makes_the_files_doubtful(tmp_path: Path) -> None:
    old = ledger_run(tmp_path / "old", {"sums": [1.0]}, finished=False)
    new = replace(ledger_run(tmp_path / "new", {"sums": [1.0]}), damaged=2, digest="f" * 64)
    notes = difference(old, new, GATE).notes
    expected = ["not complete", "2 line(s) could not be read", "do not match its digest"]
    assert [True] * 3 == [part in note for part, note in zip(expected, notes, strict=True)]


def test_json_holds_all_of_it(tmp_path: Path) -> None:
    found = _difference(tmp_path, {"sums": [1.0, 1.0]}, {"sums": [1.0, 0.0]})
    value = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert {"old": 1.0, "new": 0.5} == value["scores"]["sums"] == value["overall"]
    (flip,) = value["comparison"]["worse"]
    assert ("sums-1", "say: sums-1", ["sums-1"]) == (flip["id"], flip["prompt"], flip["targets"])
    assert ("sums-1 1.0", "sums-1 0.0") == (flip["old"]["output"], flip["new"]["output"])
    assert [str(tmp_path / "old/ledger.jsonl"), "stub.v1"] == [value["old"][name] for name in ("path", "adapter")]


def test_flips_are_shown_up_to_the_limit_with_prompt_targets_and_both_outputs(tmp_path: Path) -> None:
    found = _difference(tmp_path, {"sums": [1.0] * 4}, {"sums": [0.0] * 3 + [1.0]})
    lines = difference_lines(found, 2)
    at = lines.index("passed before, and not now: 3 (2 shown)")
    assert [
        "",
        "sums: sums-0",
        "  prompt:",
        "    say: sums-0",
        "  targets:",
        "    'sums-0'",
        "  old (1.0000):",
        "    sums-0 1.0",
        "  new (0.0000):",
        "    sums-0 0.0",
        "",
        "sums: sums-1",
    ] == lines[at + 1 : at + 13]
    assert "sums: sums-2" not in lines
    assert "passed before, and not now: 3 (0 shown)" in difference_lines(found, 0)
    assert "... and 1 more" in difference_markdown(found, 2)
    assert "sums-0" not in difference_markdown(found, 0).partition("<details>")[2]


def test_hostile_text_reaches_neither_terminal_nor_markdown(tmp_path: Path) -> None:
    fields = {"outputs": (HOSTILE,), "prompt": HOSTILE, "targets": (HOSTILE,)}
    name = "bad\x1b[2J|<i>"
    runs = [
        _ledger(tmp_path / side, [result(name, name, score, **fields)], adapter=f"a\x07{side}")
        for side, score in (("old", 1.0), ("new", 0.0))
    ]
    found = difference(runs[0], runs[1], GATE)
    for text in ("\n".join(difference_lines(found, 5)), difference_markdown(found, 5)):
        assert all(char.isprintable() or char == "\n" for char in text)
    page = difference_markdown(found, 5).replace("<details>", "").replace("</details>", "")
    assert "<" not in page.replace("<summary>", "").replace("</summary>", "")
    assert "@" not in page


def test_long_texts_are_cut_and_markdown_fits_into_a_comment(tmp_path: Path) -> None:
    fields = {"outputs": ("long " * 2000,), "prompt": "p" * 5000}
    results = [result("sums", str(number), 1.0, **fields) for number in range(300)]
    worse = [replace(each, score=0.0, status="below") for each in results]
    found = difference(_ledger(tmp_path / "old", results), _ledger(tmp_path / "new", worse), GATE)
    assert len(difference_markdown(found, 1000).encode()) < 65_536
    lines = difference_lines(found, 1)
    assert f"    ...{'p' * 400}" in lines
    assert any(line.endswith("... (10,000 characters)") for line in lines)


def test_one_flip_of_an_exact_adapter_is_a_regression_against_a_run_of_the_same(tmp_path: Path) -> None:
    scores = {"sums": [1.0] * 40}, {"sums": [0.0, *[1.0] * 39]}
    exact = {"model": {"exact": True}}

    def verdict(adapter: str, manifest: Mapping[str, Any]) -> str:
        folder = tmp_path / adapter / str(len(manifest))
        old = _ledger(folder / "old", results_of(scores[0]), manifest=manifest)
        found = difference(
            old, _ledger(folder / "new", results_of(scores[1]), manifest=manifest, adapter=adapter), GATE
        )
        assert found.decision is not None
        return found.decision.verdict

    assert ["regression", "pass", "pass"] == [
        verdict("stub.v1", exact),
        verdict("other.v1", exact),
        verdict("stub.v1", {}),
    ]
