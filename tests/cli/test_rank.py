"""``lmeval rank``: the command line, from real runs to the ranking that is printed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from tests.cli.conftest import Lmeval
from tests.conftest import Project


def test_the_better_run_comes_first(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, err = lmeval("rank", worse / "leaderboard.json", base / "ledger.jsonl")
    said, _, header, first, second, *_ = out.splitlines()
    assert f"stub.v1 ({base}/ledger.jsonl) is best; stub.v1 ({worse}/leaderboard.json) is worse (by at least" in said
    assert (0, "") == (code, err)
    assert ["model", "mean", "95", "%", "interval", "scored", "win"] == header.split()[:7]
    assert header.endswith("sums   words")
    assert re.match(re.escape(f"stub.v1 ({base}/ledger.jsonl)") + " +0.8958 ", first)
    assert re.match(re.escape(f"stub.v1 ({worse}/leaderboard.json)") + " +0.5625 ", second)
    assert "over the 20 example(s) that all ranked models have a score for: sums 12, words 8" in out


def test_json_and_markdown_say_the_same(lmeval: Lmeval, base: Path, worse: Path) -> None:
    runs = (base / "ledger.jsonl", worse / "ledger.jsonl")
    value = json.loads(lmeval("rank", *runs, "--format=json")[1])
    assert {"sums": 12, "words": 8} == value["examples"]
    best, other = value["standings"]
    # Of 20 pairs the better run wins nine, loses one and ties ten.
    assert (14 / 20, 6 / 20) == (best["win_rate"], other["win_rate"])
    assert (None, round(0.5625 - 0.8958333, 6)) == (best["difference"], round(other["difference"], 6))
    text = lmeval("rank", *runs, "--format=markdown")[1]
    assert "| 0.8958 |" in text
    assert "| 70.0 % |" in text
    assert text.startswith(f"**{value['decision'].split()[0]} ")
    assert "| model | mean |" in text


def test_published_models_are_ranked_as_published(lmeval: Lmeval, gsm8k: Path) -> None:
    code, out, _ = lmeval("rank", gsm8k / "lower/ledger.jsonl", gsm8k / "better/ledger.jsonl")
    lines = [line.split()[:2] for line in out.splitlines()[3:5]]
    assert code == 0
    expected = [("175b_verification", "0.5625"), ("175b_finetuning", "0.3472")]
    assert [[f"replay:{name}.replay.jsonl", score] for name, score in expected] == lines


def test_a_run_that_is_not_complete_is_named(lmeval: Lmeval, base: Path, worse: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join((worse / "ledger.jsonl").read_text().splitlines(keepends=True)[:6]))
    code, out, err = lmeval("rank", base / "ledger.jsonl", cut)
    assert (2, "") == (code, out)
    assert "fewer than two models can be ranked: " in err
    assert f"({cut}): the run is not complete, a score for 5 of 20 examples" in err
    # Two others are ranked, and the one is named.
    code, out, _ = lmeval("rank", base / "ledger.jsonl", worse / "ledger.jsonl", cut)
    assert code == 0
    assert f"({cut}): not ranked: the run is not complete, a score for 5 of 20 examples" in out


def test_boards_that_cannot_be_ranked_exit_2_and_are_named(
    lmeval: Lmeval, base: Path, gsm8k: Path, bare_board: Path
) -> None:
    other = gsm8k / "broken-100/ledger.jsonl"
    code, out, err = lmeval("rank", base / "ledger.jsonl", other)
    assert (2, "") == (code, out)
    assert "stub.v1 and replay:broken.replay.jsonl share no scored example" in err
    code, _, err = lmeval("rank", bare_board, other)
    assert (2, True) == (code, f"{bare_board}: a leaderboard without per-example records" in err)
    assert 2 == lmeval("rank", other)[0]


_OTHER_FILES: tuple[tuple[object, str], ...] = (
    ({"schema": "pytest-lmeval/leaderboard/99"}, "a newer version wrote pytest-lmeval/leaderboard/99"),
    ({"schema": "another/leaderboard/1"}, "schema: expected pytest-lmeval/leaderboard/2, got 'another/leaderboard/1'"),
    ({"schema": 5}, "schema: expected pytest-lmeval/leaderboard/2, got 5"),
    ([], "JSON, but not of a run"),
    ({"schema": "pytest-lmeval/leaderboard/1"}, "not a valid leaderboard of pytest-lmeval/leaderboard/2"),
)


def test_a_board_of_another_schema_is_named_and_refused(lmeval: Lmeval, base: Path, tmp_path: Path) -> None:
    other = tmp_path / "leaderboard.json"
    for content, says in _OTHER_FILES:
        other.write_text(json.dumps(content))
        for arguments in (("rank", base / "ledger.jsonl", other), ("history", other)):
            code, out, err = lmeval(*arguments)
            assert (2, "") == (code, out)
            assert err.startswith(f"lmeval {arguments[0]}: {other}: {says}")


def _comparison_of(page: Path) -> dict[str, Any]:
    text = page.read_text("ascii").partition('id="report-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_run_of_several_models_is_ranked_again_from_its_folder_with_its_labels_and_its_page(
    lmeval: Lmeval, project: Project, tmp_path: Path
) -> None:
    project.small_tasks()
    project.write("other.py", "from model import Model as M\n\n\nclass Model(M):\n    pass\n")
    project.run("--lm-adapter=ours=model:Model", "--lm-adapter=theirs=other:Model", "--lm-gate=none")
    folder, page = project.path / "reports", tmp_path / "page.html"
    code, out, err = lmeval("rank", folder, f"--html={page}")
    written, ran = _comparison_of(page), _comparison_of(folder / "report.html")

    assert (0, "") == (code, err)
    assert ["ours", "theirs"] == [line.split()[0] for line in out.splitlines()[3:5]]
    assert [column | {"page": ""} for column in ran["columns"]] == [
        column | {"page": "", "verdict": "not gated"} for column in written["columns"]
    ]
    # The link to each model's own page leads from where this one is.
    assert [f"{label}/report.html" for label in ("ours", "theirs")] == [column["page"] for column in ran["columns"]]
    assert all((page.parent / column["page"]).is_file() for column in written["columns"])
    assert ran["examples"] == written["examples"]
    # The page is ASCII, whatever a model is called.
    shutil.copytree(folder / "ours", tmp_path / "größer")
    assert 0 == lmeval("rank", folder / "ours", tmp_path / "größer", f"--html={page}")[0]
    assert "gr&#246;&#223;er" in page.read_text("ascii")
    # Of two folders with one label each model is named with its file, too.
    shutil.copytree(folder / "ours", tmp_path / "second" / "ours")
    shutil.copy(folder / "comparison.json", tmp_path / "second")
    code, out, _ = lmeval("rank", folder, tmp_path / "second")
    assert 0 == code
    assert 2 == len([line for line in out.splitlines()[3:] if line.startswith("ours (")])


def test_a_folder_that_holds_no_run_or_a_torn_one_is_refused(lmeval: Lmeval, base: Path, tmp_path: Path) -> None:
    code, _, err = lmeval("rank", tmp_path)
    assert (2, f"lmeval rank: {tmp_path}: no leaderboard.json in this folder\n") == (code, err)
    for name in ("leaderboard.json", "comparison.json"):
        folder = tmp_path / name.partition(".")[0]
        shutil.copytree(base, folder)
        (folder / name).write_text('{"models": [{"folder": 1}')
        code, _, err = lmeval("rank", base, folder)
        assert 2 == code
        assert str(folder / name) in err
    assert 2 == lmeval("rank", base, base / "ledger.jsonl", f"--html={base}/leaderboard.json/x")[0]
