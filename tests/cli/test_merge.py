"""``lmeval merge``: the shards of a real run become the run; what is no whole set of shards is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.cli import merge as merging
from pytest_lmeval.records import runfile, stored
from tests.cli.conftest import Evaluate, Lmeval
from tests.schemas import faults

FILES = ["leaderboard.json", "leaderboard.md", "ledger.jsonl", "report.html"]


def _board(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "leaderboard.json").read_text())
    return value


def test_the_merged_run_has_the_digest_and_scores_of_the_unsharded_one(
    lmeval: Lmeval, base: Path, shards: list[Path], tmp_path: Path
) -> None:
    code, out, err = lmeval("merge", *shards, "-o", tmp_path / "whole")
    assert (0, "") == (code, err)
    assert sorted(FILES) == sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert "gate tasks: pass" in out
    merged, whole = _board(tmp_path / "whole"), _board(base)
    same = ("digest", "overall_score", "complete", "counts", "categories")
    assert [whole[name] for name in same] == [merged[name] for name in same]
    assert [row["score"] for row in whole["tasks"]] == [row["score"] for row in merged["tasks"]]
    assert "selection" not in merged
    assert all(_board(shard.parent)["overall_score"] is None for shard in shards)


def test_shards_whose_texts_stay_in_their_files_come_to_the_same_bytes(
    lmeval: Lmeval, worse: Path, shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--include-per-example", "--gate=examples", "--baseline", worse / "ledger.jsonl", "--min-score=sums=0.1")
    there = lmeval("merge", *shards, "-o", tmp_path / "small", *options)
    monkeypatch.setattr(runfile, "LARGE", 0)
    monkeypatch.setattr(stored, "_SHORT", 1)
    code, out, err = lmeval("merge", *shards, "-o", tmp_path / "large", *options)
    assert there == (code, out.replace(str(tmp_path / "large"), str(tmp_path / "small")), err)
    small, large = ({name: (tmp_path / size / name).read_bytes() for name in FILES} for size in ("small", "large"))
    assert small == large


def test_the_merged_files_are_what_their_schemas_say(lmeval: Lmeval, shards: list[Path], tmp_path: Path) -> None:
    lmeval("merge", *shards, "-o", tmp_path, "--include-per-example")
    assert [] == faults("leaderboard", _board(tmp_path))
    assert [] == faults("ledger", *map(json.loads, (tmp_path / "ledger.jsonl").read_text().splitlines()))


def test_the_merged_ledger_is_a_run_like_any_other(
    lmeval: Lmeval, base: Path, shards: list[Path], tmp_path: Path
) -> None:
    lmeval("merge", *shards, "-o", tmp_path)
    code, out, _ = lmeval("diff", base / "ledger.jsonl", tmp_path / "ledger.jsonl", "--strict")
    assert (0, True) == (code, "verdict: pass" in out)
    code, _, err = lmeval("merge", tmp_path / "ledger.jsonl", "-o", tmp_path / "again")
    assert (2, True) == (code, "no shard" in err)


def test_the_gate_runs_on_the_merged_board(
    lmeval: Lmeval, base: Path, worse: Path, shards: list[Path], tmp_path: Path
) -> None:
    cases = [
        (("--min-score=sums=0.99",), 1, "floor"),
        (("--gate=examples",), 1, "examples"),
        (("--gate=none", "--min-score=sums=0.99"), 0, "pass"),
        (("--baseline", str(worse / "ledger.jsonl")), 0, "pass"),
        (("--baseline", str(worse / "ledger.jsonl"), "--strict"), 1, "regression"),
    ]
    for options, expected, verdict in cases:
        code, out, _ = lmeval("merge", *shards, "-o", tmp_path, *options)
        gate = _board(tmp_path)["gate"]
        assert (expected, verdict) == (code, gate["verdict"]), options
        told = "not gated" if (gate["mode"], verdict) == ("none", "pass") else verdict
        assert f"gate {gate['mode']}: {told}" in out
    assert "comparison" in gate
    assert "  all 20 examples of the baseline were compared\n" in out
    assert "regression" in (tmp_path / "leaderboard.md").read_text()


def test_a_shard_that_was_cut_short_is_refused_and_one_with_errors_is_incomplete(
    lmeval: Lmeval, shards: list[Path], tmp_path: Path
) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(shards[0].read_text().splitlines(keepends=True)[:3]))
    code, _, err = lmeval("merge", cut, *shards[1:], "-o", tmp_path / "out")
    assert (2, f"lmeval merge: {cut}: its run did not finish; complete it with --lm-resume\n") == (code, err)
    changed = _with_an_error(shards[0], tmp_path / "error.jsonl")
    code, out, _ = lmeval("merge", changed, *shards[1:], "-o", tmp_path / "out")
    assert (3, True) == (code, "gate tasks: incomplete" in out)
    code, out, _ = lmeval("merge", changed, *shards[1:], "-o", tmp_path / "out", "--max-errors=5%")
    assert (0, True) == (code, "1 example(s) could not be scored; --lm-max-errors allows" in out)


def test_a_shard_with_a_torn_line_is_refused_and_nothing_is_written(
    lmeval: Lmeval, shards: list[Path], tmp_path: Path
) -> None:
    torn = tmp_path / "torn.jsonl"
    header, result, *others = shards[0].read_text().splitlines(keepends=True)
    torn.write_text("".join([header, f"{result[:80]}\n", *others]))
    code, _, err = lmeval("merge", torn, *shards[1:], "-o", tmp_path / "out")
    why = "1 unreadable line(s) from here on, cut or changed; rerun this shard without --lm-resume"
    assert (2, f"lmeval merge: {torn}:2: {why}\n") == (code, err)
    assert not (tmp_path / "out").exists()


def _with_an_error(ledger: Path, path: Path) -> Path:
    from pytest_lmeval.leaderboard.board import digest
    from pytest_lmeval.types import ExampleResult

    header, *results, run, footer = (json.loads(line) for line in ledger.read_text().splitlines())
    results[0] = {**results[0], "status": "error", "score": None, "outputs": [], "error": "broken"}
    footer["footer"]["digest"] = digest(ExampleResult.from_json(json.dumps(result)) for result in results)
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *results, run, footer)))
    return path


def test_holes_doubles_and_strangers_are_refused_by_name(
    lmeval: Lmeval, base: Path, shards: list[Path], tmp_path: Path, bare_board: Path
) -> None:
    first, second, third = shards
    cases = [
        ((first, third), "1 of 3 shards missing: 2/3"),
        ((first, second, second, third), f"{second} and {second} are both shard 2/3"),
        ((first, second, base / "ledger.jsonl"), f"{base}/ledger.jsonl: no shard"),
        ((first, second, bare_board), f"{bare_board}: a leaderboard"),
    ]
    for ledgers, message in cases:
        code, out, err = lmeval("merge", *ledgers, "-o", tmp_path / "out")
        assert (2, "") == (code, out)
        assert message in err
    assert not (tmp_path / "out").exists()


def test_no_ledger_that_is_still_needed_is_overwritten(lmeval: Lmeval, shards: list[Path], tmp_path: Path) -> None:
    before = shards[0].read_bytes()
    code, _, err = lmeval("merge", *shards, "-o", shards[0].parent)
    assert (2, True) == (code, "contains a ledger to merge" in err)
    assert before == shards[0].read_bytes()
    (tmp_path / "ledger.jsonl").write_text('{"header": {}}\n')
    code, _, err = lmeval("merge", *shards, "-o", tmp_path)
    assert (2, True) == (code, "contains the ledger of an incomplete run" in err)


def test_a_merge_that_dies_leaves_no_board_of_older_shards(
    lmeval: Lmeval, shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 == lmeval("merge", *shards, "-o", tmp_path)[0]
    (tmp_path / "core.csv").write_text("of an older run")

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(merging, "markdown", die)
    with pytest.raises(KeyboardInterrupt):
        lmeval("merge", *shards, "-o", tmp_path)
    assert {"previous", "ledger.jsonl"} == {path.name for path in tmp_path.iterdir()}
    monkeypatch.undo()
    assert 0 == lmeval("merge", *shards, "-o", tmp_path)[0]


def test_a_merge_moves_what_an_older_one_left_as_a_run_does(lmeval: Lmeval, shards: list[Path], tmp_path: Path) -> None:
    names = ("leaderboard.json", "leaderboard.md", "report.html", "ledger.jsonl")
    assert 0 == lmeval("merge", *shards, "-o", tmp_path)[0]
    before = [(tmp_path / name).read_bytes() for name in names]
    assert 0 == lmeval("merge", *shards, "-o", tmp_path, "--max-errors=1")[0]
    assert before == [(tmp_path / "previous" / name).read_bytes() for name in names]
    status, out, err = lmeval("diff", tmp_path / "previous/leaderboard.json", tmp_path / "leaderboard.json")
    assert (0, "") == (status, err), out

    # What is there is not compared with: the next merge would compare with itself.
    status, _, err = lmeval("merge", *shards, "-o", tmp_path, "--baseline", tmp_path / "previous/leaderboard.json")
    assert 2 == status
    assert "the merge would overwrite it" in err
    # To write the page anew is no run.
    kept = (tmp_path / "previous/report.html").read_bytes()
    (tmp_path / "report.html").write_text("older")
    assert 0 == lmeval("report", tmp_path / "ledger.jsonl")[0]
    assert kept == (tmp_path / "previous/report.html").read_bytes()


def test_what_cannot_be_written_or_parsed_is_a_usage_error(lmeval: Lmeval, shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    code, _, err = lmeval("merge", *shards, "-o", tmp_path / "file")
    assert (2, True) == (code, "file: cannot be" in err)
    for option in ("--max-errors=x", "--max-errors=101%", "--min-score=sums", "--gate=all", "--alpha=2"):
        assert 2 == lmeval("merge", *shards, "-o", tmp_path, option)[0]
    code, _, err = lmeval("merge", *shards, "-o", tmp_path, "--min-score=sum=0.5")
    assert (2, True) == (code, "did you mean 'sums'?" in err)


def test_a_baseline_that_the_merged_run_would_replace_is_refused_and_left(
    lmeval: Lmeval, stub_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluate: Evaluate
) -> None:
    monkeypatch.chdir(stub_project)
    whole = evaluate(stub_project, "whole", "--lm-adapter=model:Model", "--lm-include-per-example")
    before = (whole / "leaderboard.json").read_bytes()
    options = ("--lm-adapter=model:Model", "--lm-baseline=whole/leaderboard.json")
    ledgers = [evaluate(stub_project, f"b{part}", *options, f"--lm-shard={part}/2") / "ledger.jsonl" for part in (1, 2)]
    code, _, err = lmeval("merge", *ledgers, "-o", whole)
    assert (2, True) == (code, "baseline whole/leaderboard.json: the merge would overwrite it" in err)
    assert before == (whole / "leaderboard.json").read_bytes()


def test_a_gate_that_compares_needs_a_baseline(lmeval: Lmeval, shards: list[Path], tmp_path: Path) -> None:
    code, _, err = lmeval("merge", *shards, "-o", tmp_path / "m", "--gate=baseline")
    assert (2, True) == (code, "the gate 'baseline' needs a baseline" in err)
