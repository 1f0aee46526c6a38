"""Models are ranked on the examples that all of them have, and the numbers are those of other people's formulas."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from operator import mul
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compare.rank import rank
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.stats.intervals import wilson_interval
from pytest_lmeval.types import ExampleResult
from tests.records.run_files import FACTS, infos_of, result, results_of
from tests.tables import each_row


def _run(name: str, results: list[ExampleResult]) -> RunFile:
    facts = replace(FACTS, adapter=name)
    infos = {info.name: info for info in infos_of(results)}
    return RunFile(
        path=Path(name), kind="ledger", facts=facts, complete=True, infos=infos, results=tuple(results), digest="d"
    )


def _of(name: str, **scores: Sequence[float | None]) -> RunFile:
    return _run(name, results_of(scores))


def test_the_best_mean_over_tasks_comes_first_and_the_others_are_told_how_far_behind() -> None:
    low = _of("low", sums=[0.0, 0.0, 1.0, 1.0], words=[1.0, 0.0])
    high = _of("high", sums=[1.0, 0.0, 1.0, 1.0], words=[1.0, 1.0])
    ranking = rank([low, high])
    first, second = ranking.standings
    assert {"sums": 4, "words": 2} == ranking.examples
    assert ("high", 0.875, None, None) == (first.name, first.score, first.difference, first.difference_ci95)
    assert ("low", 0.5, -0.375) == (second.name, second.score, second.difference)
    assert {"sums": 0.5, "words": 0.5} == second.tasks
    assert second.difference_ci95 is not None
    assert second.difference_ci95[0] < -0.375 < second.difference_ci95[1]


def test_of_a_single_task_the_interval_is_wilsons() -> None:
    ranking = rank([_of("a", sums=[1.0] * 8 + [0.0] * 2), _of("b", sums=[0.0] * 10)])
    assert [wilson_interval(8, 10), wilson_interval(0, 10)] == [standing.ci95 for standing in ranking.standings]


def test_a_win_counts_one_and_a_tie_half_over_all_other_models() -> None:
    a = _of("a", sums=[1.0, 1.0, 0.0, 0.0])
    b = _of("b", sums=[1.0, 0.0, 0.0, 0.0])
    c = _of("c", sums=[0.0, 1.0, 1.0, 0.0])
    wins = {standing.name: standing.win_rate for standing in rank([a, b, c]).standings}
    # a-b: 1 win, 3 ties; a-c: 1 win, 1 loss, 2 ties; b-c: 1 win, 2 losses, 1 tie.
    assert {"a": (2.5 + 2.0) / 8, "b": (1.5 + 1.5) / 8, "c": (2.0 + 2.5) / 8} == wins


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=6, max_size=6), min_size=2, max_size=4))
def test_win_rates_sum_to_half_the_models_and_order_does_not_matter(scores: list[list[float]]) -> None:
    runs = [_of(f"m{number}", sums=list(values)) for number, values in enumerate(scores)]
    ranking = rank(runs)
    assert pytest.approx(len(runs) / 2) == sum(standing.win_rate for standing in ranking.standings)
    assert ranking == rank(runs[::-1])
    assert sorted((standing.score for standing in ranking.standings), reverse=True) == [
        standing.score for standing in ranking.standings
    ]


def test_only_what_all_have_a_score_for_counts_and_the_rest_is_counted() -> None:
    a = _of("a", sums=[1.0] * 8, words=[0.0] * 2)
    b = _of("b", sums=[1.0, None] + [0.0] * 6, words=[0.0] * 2)
    ranking = rank([a, b])
    first, second = ranking.standings
    assert ("a", 0.5, 10, 1) == (first.name, first.score, first.scored, first.left_out)
    assert ("b", 9, 0) == (second.name, second.scored, second.left_out)
    assert pytest.approx(1 / 14) == second.score
    assert ({"sums": 7, "words": 2}, 10) == (ranking.examples, ranking.selected)
    assert ("b: 1 not scored, 1 of which a got right",) == ranking.not_scored


def test_a_model_that_went_down_or_was_cut_short_takes_no_example_from_the_others() -> None:
    good, bad = _of("good", t=[1.0] * 58 + [0.0] * 2), _of("bad", t=[1.0] * 26 + [0.0] * 34)
    down = _of("down", t=[1.0] + [None] * 59)
    cut = replace(_of("cut", t=[1.0] * 60), complete=False)
    ranking = rank([down, good, cut, bad])
    assert rank([good, bad]).standings == ranking.standings
    assert [
        ("down", "a score for 1 of 60 examples; at least 80% are needed"),
        ("cut", "the run is not complete, a score for 60 of 60 examples"),
    ] == [(each.name, each.reason) for each in ranking.unranked]
    assert "down: 59 not scored, 57 of which good got right" in ranking.not_scored


def test_pairs_are_compared_over_all_that_both_have_and_are_all_there_is_where_too_few_are_shared() -> None:
    full = _of("full", t=[1.0] * 20)
    early = _of("early", t=[None] * 4 + [0.0] * 8 + [1.0] * 8)
    late = _of("late", t=[1.0] * 16 + [None] * 4)
    ranking = rank([full, early, late])
    assert ((), [], {"t": 12}) == (ranking.standings, ranking.not_worse, ranking.examples)
    assert ranking.reason.startswith("all ranked models have a score for 12 of 20 examples; at least 80% are needed")
    sizes = {(pair.one, pair.other): pair.n for pair in ranking.pairs}
    assert {frozenset({"full", "early"}): 16, frozenset({"full", "late"}): 16, frozenset({"early", "late"}): 12} == {
        frozenset(names): n for names, n in sizes.items()
    }
    assert ranking.to_json()["pairs"][0]["is_shown"] is (ranking.pairs[0].p_adjusted <= 0.05)


def test_what_is_quarantined_or_excluded_is_no_gap() -> None:
    results = results_of({"t": [1.0] * 9 + [0.0]})
    aside = [replace(each, status="excluded", score=None) for each in results[:4]]
    held = [replace(each, status="quarantined") for each in results[4:6]]
    ranking = rank([_run("a", results), _run("b", [*aside, *held, *results[6:]])])
    assert ((), 8, {"t": 4}) == (ranking.unranked, ranking.selected, ranking.examples)


def test_clusters_widen_the_intervals() -> None:
    scores = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    apart = results_of({"sums": scores})
    together = [replace(each, cluster=str(number // 3)) for number, each in enumerate(apart)]
    other = results_of({"sums": [0.0] * 9})
    alone, shared = (rank([_run("a", results), _run("b", other)]).standings[0].ci95 for results in (apart, together))
    assert alone is not None
    assert shared is not None
    assert shared[1] - shared[0] > alone[1] - alone[0]


def test_one_graded_example_has_a_wide_interval() -> None:
    ranking = rank([_of("a", sums=[0.5]), _of("b", sums=[0.25])])
    assert [(0.103, 0.897), (0.052, 0.845)] == [
        pytest.approx(standing.ci95, abs=0.001) for standing in ranking.standings
    ]


@each_row(
    ("other", "why"),
    [
        (_of("b", words=[1.0]), "the tasks of one are sums, the tasks of the other words"),
        (_of("b", sums=[None]), "the tasks of one are sums, the tasks of the other none"),
        (_run("b", [result("sums", "z")]), "their ids of sums differ"),
        (
            _run("b", [replace(result("sums", "sums-0"), hash="0" * 64)]),
            "the ids are the same, but their content differs",
        ),
    ],
)
def test_boards_that_share_no_example_are_named_and_told_why(other: RunFile, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        rank([_of("a", sums=[1.0]), other])
    assert str(caught.value).startswith(f"a and b share no scored example: {why}")


def test_three_boards_that_overlap_in_pairs_only_are_refused() -> None:
    runs = [_of("a", x=[1.0], y=[1.0]), _of("b", y=[1.0], z=[1.0]), _of("c", z=[1.0], x=[1.0])]
    with pytest.raises(
        UsageError,
        match="fewer than two models can be ranked: a: a score for 2 of 3 examples; at least 80% are needed; b: ",
    ):
        rank(runs)


def test_one_board_or_the_same_file_twice_is_no_ranking() -> None:
    run = _of("a", sums=[1.0])
    with pytest.raises(UsageError, match="two boards or more"):
        rank([run])
    with pytest.raises(UsageError, match=r"^a: named more than once"):
        rank([run, run])


# Of 5 % in 200 rounds more than 18 come once in 250 times, of 5 % in 60 more than 8.
@pytest.mark.again
@pytest.mark.parametrize(("rounds", "most"), [(60, 8), pytest.param(200, 18, marks=pytest.mark.slow)])
def test_of_four_equal_models_one_is_called_worse_in_no_more_than_alpha_of_the_runs(rounds: int, most: int) -> None:
    chance, alarms = random.Random(3), 0
    for _ in range(rounds):
        hard = [chance.random() for _ in range(60)]
        runs = [run_of(name, [float(chance.random() < each) for each in hard]) for name in "abcd"]
        alarms += len(rank(runs).not_worse) < 4
    assert alarms <= most


def test_models_that_no_example_tells_apart_are_not_worse_than_each_other() -> None:
    same = [1.0, 0.0, 1.0, 0.5]
    ranking = rank([_of("a", sums=same), _of("b", sums=same), _of("c", sums=[0.0, 1.0, 1.0, 0.5])])
    assert ["a", "b", "c"] == ranking.not_worse
    assert [1.0, 1.0] == [standing.p_adjusted for standing in ranking.standings[1:]]


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=8))
def test_the_p_of_two_models_is_that_of_all_ways_to_toss_the_signs(pairs: list[tuple[float, float]]) -> None:
    ranking = rank([_of("a", sums=[one for one, _ in pairs]), _of("b", sums=[other for _, other in pairs])])
    differences = [one - other for one, other in pairs if one != other]
    seen = abs(sum(differences))
    sums = [abs(sum(map(mul, signs, differences))) for signs in product((-1, 1), repeat=len(differences))]
    # Twice the share that is more extreme on one side, and what is as extreme by half: never above 1.
    extreme = sum(each > seen for each in sums) + sum(each == seen for each in sums) / 2
    expected = min(1.0, extreme / len(sums)) if differences and seen else 1.0
    assert pytest.approx(expected, abs=1e-9) == ranking.standings[1].p_adjusted


def test_a_model_that_is_clearly_worse_is_not_among_those_that_are_not() -> None:
    good, near, bad = [1.0] * 60, [1.0] * 58 + [0.0] * 2, [1.0] * 30 + [0.0] * 30
    ranking = rank([run_of("bad", bad), run_of("good", good), run_of("near", near)])
    assert ["good", "near"] == ranking.not_worse
    assert [False, False, True] == [standing.is_worse for standing in ranking.standings]
    assert ranking.standings[2].p_adjusted < 1e-6 < 0.05 < ranking.standings[1].p_adjusted


def run_of(name: str, scores: Sequence[float]) -> RunFile:
    return _run(name, results_of({"t": scores}))
