"""The board for a pull request: verdict first, what flipped, and what no text of a model may do to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_lmeval.compare.gate import MODES, decide
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.report.markdown import COMMENT_BYTES, markdown
from pytest_lmeval.text import escape_markdown
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

A = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", category="arithmetic", latency_ms=2.0)
B = replace(A, id="b", status="failed", score=0.0, unparsed=True, latency_ms=3.0)
C = replace(A, task="words", id="c", metric="f1", score=0.5, category="")
ERROR = replace(A, id="d", status="error", score=None, latency_ms=None)
HOSTILE = ["a|b", "[x](http://example.org)", "<script>", "*a*", "`a`", "a\nb", "# a", "_a_", "![x](y)", "\\|", "@team"]
CHANGE = {
    "task": "sums",
    "verdict": "regression",
    "old": 0.9,
    "new": 0.5,
    "change": -0.4,
    "p_adjusted": 0.001,
    "worse": 1,
    "better": 0,
}


def _board(*results: ExampleResult, **facts: Any) -> Leaderboard:
    return build_board((), results, RunFacts("2026-11-21T08:00:00Z", **{"adapter": "toy.v1"} | facts))


def _unescaped(line: str, char: str) -> int:
    return line.replace("\\\\", "").replace(f"\\{char}", "").count(char)


def _compared(*said: str) -> dict[str, Any]:
    flips = [
        {"task": "sums", "id": f"e{n}", "targets": ["4"], "old": {"prediction": "4"}, "new": {"prediction": text}}
        for n, text in enumerate(said)
    ]
    comparison = {"tasks": [CHANGE], "pooled": CHANGE | {"task": "overall"}, "worse": flips, "better": []}
    return {
        "mode": "baseline",
        "verdict": "regression",
        "reasons": [],
        "comparison": comparison | {"left_out": {"code": "why"}},
    }


def test_the_verdict_stands_before_the_rows() -> None:
    lines = markdown(_board(A, B, C)).split("\n")
    assert "# Leaderboard: toy.v1" == lines[0]
    assert "**Overall 0.5000**: 3 of 3 examples scored." == lines[2]
    first = lines.index("| task | metric | score | 95 % interval | correct | errors | unparsed | ms |")
    assert "| sums | exact\\_match | 0.5000 | 0.095 to 0.905 | 1/2 |  | 1 | 2.5 |" == lines[first + 2]
    assert "| arithmetic | 0.5000 | 2 |" in lines


def test_an_incomplete_run_says_so_first() -> None:
    text = markdown(_board(A, ERROR))
    assert "**Incomplete**: 1 of 2 examples scored; there is no overall score." in text
    assert "Overall" not in text


def test_the_gate_gives_its_verdict_and_every_reason() -> None:
    reasons = ["sums: 0.5 is under 0.9", "words: | is under 1"]
    gate = {"mode": "tasks", "verdict": "floor", "reasons": reasons, "warnings": ["sums: all 5 outputs are empty"]}
    text = markdown(_board(A, gate=gate))
    assert text.startswith("# Evals failed: below the floor: toy.v1\n")
    assert "- sums: 0.5 is under 0.9\n- words: \\| is under 1\n" in text
    assert "- Doubtful: sums: all 5 outputs are empty\n" in text


def test_the_digest_and_the_time_are_there() -> None:
    board = _board(A)
    assert f"digest `{board.digest}` · 2026-11-21T08:00:00Z" in markdown(board)


@each_row("name", HOSTILE)
def test_a_name_opens_no_cell_no_line_and_no_markup_of_its_own(name: str) -> None:
    info = TaskInfo(name, "", metric=name)
    text = markdown(build_board([info], [replace(A, task=name, category=name)], RunFacts("t", name)))
    plain = markdown(
        build_board([replace(info, name="x", metric="x")], [replace(A, task="x", category="x")], RunFacts("t", "x"))
    )
    assert plain.count("\n") == text.count("\n")
    for ours, theirs in zip(plain.split("\n"), text.split("\n"), strict=True):
        for char in "|<[]`*_":
            assert _unescaped(ours, char) == _unescaped(theirs, char) or "digest" in ours


@each_row("mode", MODES)
def test_every_verdict_of_the_gate_has_its_words(mode: str) -> None:
    from pytest_lmeval.compare.gate import GateSettings

    for results in ((A, B), (A,), (A, ERROR)):
        board = _board(*results)
        settings = GateSettings(mode=mode, floors={"overall": 0.9}, update=mode == "baseline")
        gate = decide(board, settings=settings).to_json()
        assert markdown(_board(*results, gate=gate)).startswith("# Evals ")


def test_what_flipped_stands_with_both_answers_and_the_right_one() -> None:
    text = markdown(_board(A, gate=_compared("5")))
    assert "| sums | regression | 0.9000 | 0.5000 | -0.4000 | - | 0.001 | 1 | 0 |" in text
    assert "- interval: confidence interval of the change; it excludes 0 exactly if" in text
    assert "<details><summary>Passed before, and not now: 1</summary>" in text
    assert "| sums: e0 | 4 | 4 | 5 |" in text
    assert "- not compared: code: why" in text


def test_a_long_list_of_flips_is_cut_and_counted() -> None:
    text = markdown(_board(A, gate=_compared(*["x" * 5000] * 60)))
    assert "... and 35 more" in text
    assert "x" * 81 not in text


def test_the_report_fits_into_a_comment_and_says_that_it_was_cut() -> None:
    text = markdown(_board(*[replace(A, task=f"task-{n:04}") for n in range(2000)]))
    assert COMMENT_BYTES >= len(text.encode())
    assert text.endswith("(cut here; the rest is in the report's files)\n")


def test_repeats_have_a_table_of_their_own() -> None:
    details = {"scores": [1.0, 0.0], "majority_score": 1.0}
    text = markdown(_board(replace(A, details=details)))
    assert "| task | asked | differ | maj@2 | pass@1 | pass@2 | pass^2 |" in text
    assert "| sums | 2 | 1 | 1.0000 | 0.5000 | 1.0000 | 0.0000 |" in text


def test_a_shard_says_that_it_is_one() -> None:
    assert "**Shard 1/2**: 1 of 1 examples scored" in markdown(_board(A, selection={"shard": "1/2"}))


@each_row(
    ("text", "shown"),
    [
        ("@team #12", "&#64;&#8203;team &#35;&#8203;12"),
        ("see https://a.example and www.b.example", "see https&#58;//a.example and www&#46;b.example"),
        ("HTTP://a.example WWW.b.example", "HTTP&#58;//a.example WWW&#46;b.example"),
        ("a@b.example mailto:a@b.example", "a&#64;&#8203;b.example mailto:a&#64;&#8203;b.example"),
        ("a: b, 1:2, //x, www", "a: b, 1:2, //x, www"),
        ("a &amp; <b>", "a &amp;amp; &lt;b\\>"),
        ("\x1b[1m", "\\\\x1b\\[1m"),
    ],
)
def test_what_a_model_writes_mentions_nobody_and_links_nothing(text: str, shown: str) -> None:
    assert shown == escape_markdown(text)


def test_what_failed_stands_with_what_was_wanted_and_said() -> None:
    wrong = replace(B, targets=("4",), predictions=("5 @team",))
    broken = replace(ERROR, error="adapter stub.v1 gave up", must_pass=True)
    text = markdown(_board(A, wrong, broken))
    assert "<details><summary>Failed: 2</summary>" in text
    first, second = (line for line in text.split("\n") if line.startswith("| sums: "))
    assert "| sums: d | error |  | adapter stub.v1 gave up |  |" == first
    assert "| sums: b | failed | 4 | 5 &#64;&#8203;team | 0 |" == second


def test_of_many_failures_the_first_are_shown_and_the_others_counted() -> None:
    text = markdown(_board(*[replace(B, id=f"e{n:02}") for n in range(30)]))
    assert "... and 5 more" in text
