"""Shards join into the run that was never split; what is not a whole set of shards is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compare.merged_gate import gate_settings, gated
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, digest
from pytest_lmeval.leaderboard.quarantine import judged
from pytest_lmeval.records.runfile import RunFile, board_of, read_run
from pytest_lmeval.records.shards import merge
from pytest_lmeval.types import ExampleResult
from tests.records.run_files import FACTS, board_of_results, infos_of, result, results_of, write_ledger

RESULTS = results_of({"sums": [1.0, 0.0, 1.0, 1.0, 0.5], "words": [1.0, 1.0, 0.0, 1.0]})
GATE = {"mode": "tasks", "verdict": "pass", "reasons": [], "settings": {"mode": "tasks", "floors": {"sums": 0.9}}}


def write_shards(
    folder: Path, results: Sequence[ExampleResult] = RESULTS, count: int = 3, **facts: Any
) -> list[RunFile]:
    """Return the shards of a run, as --lm-shard deals them out."""
    whole = {info.name: info for info in infos_of(results)}
    shards = []
    for part in range(count):
        mine = list(results[part::count])
        infos = [
            replace(whole[name], selected=sum(each.task == name for each in mine))
            for name in whole
            if any(each.task == name for each in mine)
        ]
        counts = {info.name: {"available": info.available, "selected": info.selected} for info in infos}
        manifest = {**FACTS.manifest, "argv": ["pytest", "--lm-shard", f"{part + 1}/{count}", "--lm-limit=9"]}
        given = {"gate": GATE, "manifest": manifest, **facts}
        selection = {**given.pop("selection", {}), "shard": f"{part + 1}/{count}", "tasks": counts}
        path = write_ledger(folder / f"s{part + 1}", mine, infos=infos, selection=selection, **given)
        shards.append(read_run(path))
    return shards


def _changed(shard: RunFile, **facts: Any) -> RunFile:
    return replace(shard, facts=replace(shard.facts, **facts))


def _refusal(shards: Sequence[RunFile]) -> str:
    with pytest.raises(UsageError) as caught:
        merge(shards)
    return str(caught.value)


# Joined


@pytest.fixture(scope="module")
def four_shards(tmp_path_factory: pytest.TempPathFactory) -> list[RunFile]:
    return write_shards(tmp_path_factory.mktemp("shards"), count=4)


@given(order=st.permutations(range(4)))
def test_the_order_of_the_shards_changes_no_result(four_shards: list[RunFile], order: list[int]) -> None:
    assert board_of_results(RESULTS).digest == board_of(merge([four_shards[part] for part in order])).digest


def test_more_shards_than_examples_of_a_task_leave_nothing_out(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, count=7)
    assert any("words" not in shard.infos for shard in shards)
    merged = merge(shards)
    assert ({}, len(RESULTS)) == (merged.selection, len(merged.results or ()))


def test_a_selection_besides_the_shard_stays_one(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, selection={"limit": 5})
    limited = [
        replace(shard, infos={name: replace(info, available=50) for name, info in shard.infos.items()})
        for shard in shards
    ]
    counts = {task: {"available": 50, "selected": count} for task, count in (("sums", 5), ("words", 4))}
    assert {"limit": 5, "tasks": counts} == merge(limited).selection


def test_what_the_shards_could_not_do_adds_up(tmp_path: Path) -> None:
    first, second, third = write_shards(tmp_path)
    shards = [
        _changed(first, missing=["a"], skipped=1, max_errors=2),
        _changed(second, missing=["b"], skipped=2, max_errors=1),
        third,
    ]
    facts = merge(shards).facts
    assert (["a", "b"], 3, 2) == (facts.missing, facts.skipped, facts.max_errors)
    board = board_of(merge(shards))
    assert (False, 14) == (board.complete, board.counts["collected"])


def test_the_command_of_the_merged_run_names_no_shard(tmp_path: Path) -> None:
    manifest = merge(write_shards(tmp_path)).manifest
    assert (["pytest", "--lm-limit=9"], 3) == (manifest["argv"], manifest["shards"])
    (shard,) = write_shards(tmp_path, count=1, manifest={"argv": ["pytest", "--lm-shard=1/1", "x"]})
    assert ["pytest", "x"] == merge([shard]).manifest["argv"]


# Refused


CASES: list[tuple[Callable[[list[RunFile]], list[RunFile]], str]] = [
    (
        lambda shards: [*shards[:2], _changed(shards[2], selection={"shard": "3/4"})],
        "s1/ledger.jsonl is shard 1/3 and s3/ledger.jsonl is shard 3/4: not parts of one run",
    ),
    (
        lambda shards: [_changed(shards[0], selection={"shard": "4/3"}), *shards[1:]],
        "s1/ledger.jsonl: selection.shard: expected I/N, got '4/3'",
    ),
    (
        lambda shards: [replace(shards[0], digest="f" * 64), *shards[1:]],
        "s1/ledger.jsonl: its results do not match the digest in its footer",
    ),
    (
        lambda shards: [shards[0], _with_info(shards[1], selected=0), shards[2]],
        "task sums: 2 example(s) in s1/ledger.jsonl and 0 in s2/ledger.jsonl: these shards had different",
    ),
]


def _with_info(shard: RunFile, **fields: Any) -> RunFile:
    return replace(shard, infos={**shard.infos, "sums": replace(shard.infos["sums"], **fields)})


DIFFERENT: list[tuple[Callable[[RunFile], RunFile], str, str, str]] = [
    (lambda shard: _changed(shard, adapter="other"), "different adapters", "'stub.v1'", "'other'"),
    (lambda shard: _changed(shard, adapter_options={"t": 1}), "different adapter options", "{}", "{'t': 1}"),
    (lambda shard: _changed(shard, manifest={**shard.manifest, "repeats": 3}), "different --lm-repeats", "1", "3"),
    (
        lambda shard: _changed(shard, manifest={"repeats": 1, "sandbox": "none"}),
        *("different --lm-sandbox", "'process'", "'none'"),
    ),
    (
        lambda shard: _changed(shard, selection={**shard.selection, "limit": 4}),
        *("different selections", "{}", "{'limit': 4}"),
    ),
    (lambda shard: _with_info(shard, sha256="b" * 64), "task sums: different sha256", "a" * 64, "b" * 64),
    (lambda shard: _with_info(shard, available=9), "task sums: different available", "5", "9"),
]


@pytest.mark.parametrize(("change", "what", "one", "other"), DIFFERENT, ids=[what for _, what, _, _ in DIFFERENT])
def test_shards_that_were_run_differently_are_refused_with_both_values(
    tmp_path: Path, change: Callable[[RunFile], RunFile], what: str, one: str, other: str
) -> None:
    first, second, third = write_shards(tmp_path)
    refusal = _refusal([first, change(second), third]).replace(f"{tmp_path}/", "")
    assert refusal.startswith(f"{what}: {one} in s1/ledger.jsonl, {other} in s2/ledger.jsonl")


@pytest.mark.parametrize(("change", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_what_is_no_whole_set_of_shards_is_refused_by_name(
    tmp_path: Path, change: Callable[[list[RunFile]], list[RunFile]], message: str
) -> None:
    refusal = _refusal(change(write_shards(tmp_path))).replace(f"{tmp_path}/", "")
    assert refusal.startswith(message)


def test_an_example_in_two_shards_is_refused_by_name(tmp_path: Path) -> None:
    first, second, third = write_shards(tmp_path)
    assert first.results
    assert second.results
    doubled = (first.results[0], *second.results[1:])
    second = replace(second, results=doubled, digest=digest(doubled))
    refusal = _refusal([first, second, third]).replace(f"{tmp_path}/", "")
    assert "1 example (sums-0 of sums in s1/ledger.jsonl and s2/ledger.jsonl) in two shards" == refusal


# Gated


def _gated(shards: Sequence[RunFile], root: Path = Path(), **asked: Any) -> Leaderboard:
    return gated(merge(shards), gate_settings(shards, asked), root)[1]


def _verdict(shards: Sequence[RunFile], root: Path = Path(), **asked: Any) -> tuple[str, str, int]:
    _, board, code = gated(merge(shards), gate_settings(shards, asked), root)
    gate = board.facts.gate or {}
    return gate["mode"], gate["verdict"], code


def test_the_gate_is_the_one_that_the_shards_recorded(tmp_path: Path) -> None:
    board = _gated(write_shards(tmp_path))
    assert ("tasks", "floor", 1) == _verdict(write_shards(tmp_path))
    assert [0.9, None] == [row.min_score for row in board.tasks]


def test_floors_asked_for_are_added_to_those_recorded(tmp_path: Path) -> None:
    shards = write_shards(tmp_path)
    assert ("tasks", "pass", 0) == _verdict(shards, floors={"sums": 0.1})
    board = _gated(shards, floors={"overall": 0.99})
    assert 2 == len((board.facts.gate or {})["reasons"])


def test_another_mode_judges_every_example_anew(tmp_path: Path) -> None:
    board = _gated(write_shards(tmp_path), mode="examples")
    assert ("examples", "floor", 1) == _verdict(write_shards(tmp_path), mode="examples")
    statuses = [each.status for row in board.tasks for each in row.per_example]
    assert (3, 0) == (statuses.count("failed"), statuses.count("below"))
    assert ("none", "pass", 0) == _verdict(write_shards(tmp_path), mode="none")


def test_the_mode_recorded_leaves_what_another_plugin_decided_alone(tmp_path: Path) -> None:
    # Under the gate examples these would have failed, but for a mark such as xfail.
    excused = [each for each in RESULTS if each.status in ("passed", "below")]
    gate = {**GATE, "mode": "examples", "settings": {"mode": "examples"}}
    assert ("examples", "pass", 0) == _verdict(write_shards(tmp_path, excused, gate=gate))


def test_what_a_mark_excused_stays_excused_under_another_mode(tmp_path: Path) -> None:
    excused = [each for each in RESULTS if each.status in ("passed", "below")]
    gate = {**GATE, "mode": "examples", "settings": {"mode": "examples"}}
    shards = write_shards(tmp_path, excused, gate=gate)
    pinned = replace(result("sums", "a", 0.0, must_pass=True), status="below")
    assert "below" == judged([pinned], "tasks", recorded="examples")[0].status
    assert "failed" == judged([pinned], "tasks", recorded="none")[0].status
    assert ("tasks", "pass", 0) == _verdict(shards, mode="tasks")


def test_an_example_that_must_pass_fails_in_every_mode_but_none() -> None:
    wrong = result("sums", "a", 0.0, must_pass=True)
    assert ["failed", "failed", "failed", "below"] == [
        judged([wrong], mode)[0].status for mode in ("examples", "tasks", "baseline", "none")
    ]
    assert ["passed", "error"] == [
        each.status for each in judged([result("sums", "a"), result("sums", "b", None)], "tasks")
    ]


def test_a_baseline_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.json: no such file"):
        _gated(write_shards(tmp_path), tmp_path, baseline="gone.json")


def test_settings_on_which_the_shards_differ_have_to_be_asked_for(tmp_path: Path) -> None:
    first, second, third = write_shards(tmp_path)
    other = _changed(second, gate={"mode": "none", "settings": {"mode": "none", "floors": {"sums": 0.9}}})
    with pytest.raises(UsageError, match=r"the gate's mode is 'tasks' in .*s1/.* and 'none' in .*s2/"):
        _gated([first, other, third])
    assert ("tasks", "floor", 1) == _verdict([first, other, third], mode="tasks")


@pytest.mark.parametrize(
    ("setting", "detail"),
    [
        ({"alpha": "x"}, "alpha: unexpected 'x'"),
        ({"floors": {"sums": "high"}}, "floors.sums: expected a number from 0 to 1, got 'high'"),
        ({"limits": {"sums.cost": "low"}}, "limits.sums.cost: expected a number >= 0, got 'low'"),
    ],
)
def test_settings_of_the_wrong_type_are_refused(tmp_path: Path, setting: dict[str, Any], detail: str) -> None:
    with pytest.raises(UsageError, match=f"s1/ledger.jsonl: gate.settings.{detail}"):
        _gated(write_shards(tmp_path, gate={"mode": "tasks", "settings": setting}))


def test_a_shard_that_is_not_complete_makes_the_run_incomplete(tmp_path: Path) -> None:
    first, second, third = write_shards(tmp_path)
    cut = _changed(second, finished=False, interruptions=["out of money"])
    board = _gated([first, cut, third])
    assert ("tasks", "incomplete", 3) == _verdict([first, cut, third])
    assert f"{second.path}: out of money" in (board.facts.gate or {})["reasons"]
    lost = _changed(third, missing=["tasks/sums.jsonl::x"])
    assert "no result: tasks/sums.jsonl::x" in (_gated([first, second, lost]).facts.gate or {})["reasons"]


def test_an_error_that_was_allowed_leaves_the_decision_to_the_gate(tmp_path: Path) -> None:
    results = [*RESULTS[:-1], result("words", "words-3", None)]
    shards = write_shards(tmp_path, results, max_errors=1, gate={**GATE, "settings": {"mode": "tasks"}})
    assert (True, ("tasks", "pass", 0)) == (_gated(shards).complete, _verdict(shards))
    assert ("none", "pass", 0) == _verdict(shards, mode="none")
    assert 3 == _verdict([_changed(shard, max_errors=0) for shard in shards])[2]
