"""Two runs against each other: which results pair, what the verdict is, and what is said of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.compare.compare import Comparison, compare
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.stats.paired import holm, paired_test, pooled_test
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row


def result(id: str, score: float | None, task: str = "sums", **fields: Any) -> ExampleResult:
    """Return a result that passes at a score of 1; without a score it is an error."""
    status = "error" if score is None else "passed" if score >= 1.0 else "below"
    known: dict[str, Any] = {"status": status, "hash": f"h-{id}", "threshold": 1.0, "metric": "exact_match"} | fields
    return ExampleResult(task=task, id=id, score=score, **known)


def run(scores: Iterable[float | None], task: str = "sums") -> list[ExampleResult]:
    return [result(f"e{n:03}", score, task) for n, score in enumerate(scores)]


def answers(right: int, wrong: int) -> list[float]:
    return [1.0] * right + [0.0] * wrong


def broken(results: list[ExampleResult], count: int) -> list[ExampleResult]:
    """Return the results with the first ``count`` of them wrong."""
    return [replace(each, score=0.0, status="below") if n < count else each for n, each in enumerate(results)]


def verdicts(comparison: Comparison) -> dict[str, str]:
    return {change.task: change.verdict for change in (*comparison.tasks, comparison.pooled)}


# Pairs


def test_a_run_against_itself_passes_and_says_what_it_could_have_shown() -> None:
    old = run(answers(60, 40))
    comparison = compare(old, old)
    assert ("pass", 100, 100) == (comparison.verdict, comparison.paired, comparison.expected)
    assert () == comparison.worse + comparison.better
    assert [
        "sums: no regression: 0.6000 -> 0.6000, +0.0 points (-2.6 to +2.6), 0 worse and 0 better of 100; "
        "p 1; smallest drop this run would detect with 80 % power: 5.4 points"
    ] == list(comparison.reasons)


def test_examples_that_another_field_scores_are_no_pair() -> None:
    before = {"score_field": "judge.right"}
    old = [*run(answers(9, 0)), result("a", 1.0, details=before), result("b", 1.0, details={"repeats": [before]})]
    new = [*run(answers(9, 0)), result("a", 1.0, details={"score_field": "judge.polite"}), old[-1]]
    new.append(replace(result("c", None), status="measured"))
    old.append(result("c", 1.0))
    comparison = compare(old, new)
    assert (("sums", "a"), ("sums", "c")) == comparison.of("changed")
    assert (10, 12) == (comparison.paired, comparison.expected)


def test_measured_examples_are_named_and_alone_are_no_pass() -> None:
    measured = [replace(each, status="measured", score=None) for each in run(answers(3, 0), "lists")]
    both = compare([*run(answers(9, 0)), *measured], [*run(answers(9, 0)), *measured])
    assert ("pass", 9, 9, False) == (both.verdict, both.paired, both.expected, both.only_measured)
    assert (
        "not compared: 3 measured by aggregations only; compared: 9 of the baseline's 12 examples" == both.coverage[0]
    )
    alone = compare(measured, measured)
    assert ("stale", True) == (alone.verdict, alone.only_measured)
    assert alone.reasons[0].startswith("nothing could be compared: 3 examples are measured by aggregations only")


def test_results_pair_by_task_id_and_content() -> None:
    old = [*run(answers(9, 0)), result("a", 1.0, "words"), result("gone", 1.0, "words")]
    new = [*run(answers(9, 0)), result("a", 1.0, "words", hash="other"), result("b", 1.0, "words")]
    comparison = compare(old, new)
    assert (("words", "b"),) == comparison.of("new")
    assert (("words", "a"),) == comparison.of("changed")
    assert (("words", "gone"),) == comparison.of("removed")
    assert (9, 11) == (comparison.paired, comparison.expected)
    assert ["words: only 0 of its 2 examples in the baseline were compared"] == list(comparison.reasons[1:])
    assert [
        "not compared: 1 changed (1 passed before), 1 removed (1 passed before), 1 new; "
        "compared: 9 of the baseline's 11 examples",
        "changed: words: a",
        "removed: words: gone",
        "new: words: b",
        "0 of 1 changed examples could be scored with their old targets",
    ] == list(comparison.coverage)


def test_an_id_pairs_within_its_task_only() -> None:
    comparison = compare([result("a", 1.0, "one")], [result("a", 0.0, "two")])
    assert ((("two", "a"),), (("one", "a"),)) == (comparison.of("new"), comparison.of("removed"))


def test_what_was_not_to_be_asked_but_was_is_a_pair() -> None:
    old = run(answers(5, 0))
    comparison = compare(old, broken(old, 5), outside=lambda task, id: True)
    assert (5, "regression") == (comparison.paired, comparison.verdict)


@each_row("status", ["error", "timeout", "excluded"])
def test_an_example_that_is_not_scored_now_is_no_pair_and_not_removed_and_is_named(status: str) -> None:
    old = run(answers(10, 0))
    comparison = compare(old, [replace(old[0], score=None, status=status), *old[1:]])  # type: ignore[arg-type]
    assert (9, 10, (), ()) == (comparison.paired, comparison.expected, comparison.of("removed"), comparison.worse)
    assert ("sums", "e000") in comparison.of("unscored")
    assert (
        "not compared: 1 not scored (1 passed before); compared: 9 of the baseline's 10 examples",
        "not scored: sums: e000",
    ) == comparison.coverage


def test_an_example_that_had_no_score_is_no_pair_and_not_expected() -> None:
    new = run(answers(10, 0))
    comparison = compare([replace(new[0], score=None, status="error"), *new[1:]], new)
    assert (9, 9, ()) == (comparison.paired, comparison.expected, comparison.of("new"))
    assert (
        "not compared: 1 without a score in the baseline; compared: 9 of the baseline's 10 examples"
        == (comparison.coverage[0])
    )


def test_a_task_that_is_left_out_is_not_looked_at_and_named() -> None:
    old = [*run(answers(10, 0)), *run(answers(10, 0), "code")]
    comparison = compare(old, broken(old, 0)[:10] + broken(old[10:], 10), left_out={"code": "another sandbox"})
    assert ("pass", 10, 10) == (comparison.verdict, comparison.paired, comparison.expected)
    assert "code: left out: another sandbox" in comparison.reasons
    assert (
        "not compared: 10 in tasks that are left out (10 passed before); compared: 10 of the baseline's 20 examples",
    ) == comparison.coverage
    assert {"code": "another sandbox"} == comparison.left_out


def test_each_side_passes_by_its_own_status() -> None:
    old = run([0.6] * 2)
    lowered = [replace(each, status="passed", threshold=0.5) for each in old]
    comparison = compare(old, lowered)
    assert (2, 0, "pass") == (len(comparison.better), len(comparison.worse), comparison.verdict)


# Stale


@pytest.mark.parametrize(("left", "verdict"), [(8, "pass"), (7, "stale")])
def test_fewer_than_eighty_percent_of_the_baseline_s_examples_are_a_stale_baseline(left: int, verdict: str) -> None:
    old = run(answers(10, 0))
    comparison = compare(old, [replace(each, hash="new") if n >= left else each for n, each in enumerate(old)])
    assert verdict == comparison.verdict
    stale = "stale baseline: 7 of its 10 examples could be compared (70%; at least 80% are needed)"
    assert (stale == comparison.reasons[0]) is (verdict == "stale")


@each_row(("old", "new"), [([], []), ([], [1.0]), ([1.0], []), ([None], [1.0])])
def test_a_comparison_of_nothing_is_never_green(old: list[float | None], new: list[float | None]) -> None:
    comparison = compare(run(old), run(new))
    assert ("stale", 0) == (comparison.verdict, comparison.paired)
    some = len([score for score in old if score is not None])
    counted = f"0 of its {some} examples could be compared (0%; at least 80% are needed)"
    assert f"stale baseline: {counted if some else 'none of its examples could be compared'}" == (comparison.reasons[0])
    pooled = comparison.pooled
    assert ("uncompared", None, 1.0, True) == (pooled.verdict, pooled.old, pooled.p, pooled.exact)


def test_a_stale_baseline_hides_no_regression() -> None:
    old = run(answers(100, 0))
    new = broken(old, 30)[:70]
    comparison = compare(old, new)
    assert "stale" == comparison.verdict
    assert comparison.reasons[1].startswith("sums: regression: 1.0000 -> 0.5714")


# Verdicts


def test_a_drop_in_one_task_of_many_is_a_regression_of_that_task() -> None:
    tasks = [run(answers(40, 10), f"t{n}") for n in range(10)]
    old = [each for task in tasks for each in task]
    comparison = compare(old, [*broken(tasks[0], 9), *old[50:]])
    assert "regression" == comparison.verdict == verdicts(comparison)["t0"]
    assert {"pass"} == {verdict for task, verdict in verdicts(comparison).items() if task not in ("t0", "overall")}
    assert comparison.reasons[0].startswith(
        "t0: regression: 0.8000 -> 0.6200, -18.0 points (at least 1.6, at most 37.3)"
    )
    assert comparison.reasons[0].endswith("9 worse and 0 better of 50; p 0.00098, 0.02 adjusted")


def test_small_drops_in_every_task_are_a_regression_overall() -> None:
    tasks = [run(answers(40, 10), f"t{n}") for n in range(10)]
    comparison = compare(
        [each for task in tasks for each in task], [each for task in tasks for each in broken(task, 1)]
    )
    assert {"pass", "regression"} == set(verdicts(comparison).values())
    assert "regression" == comparison.verdict == comparison.pooled.verdict
    assert comparison.reasons[0].startswith("overall: regression: 0.8000 -> 0.7800, -2.0 points")


def test_the_same_the_other_way_round_is_an_improvement() -> None:
    old = run(answers(30, 20))
    comparison = compare(broken(old, 9), old)
    assert ("improvement", 9) == (comparison.verdict, len(comparison.better))
    assert comparison.reasons[0].startswith("sums: improvement: 0.4200 -> 0.6000, +18.0 points")
    assert comparison.reasons[0].endswith("0 worse and 9 better of 50")


def test_a_large_drop_that_is_not_significant_is_inconclusive_and_says_what_could_be_shown() -> None:
    old = run(answers(18, 2))
    comparison = compare(old, broken(old, 2))
    assert "inconclusive" == comparison.verdict
    assert comparison.reasons[0].startswith("sums: inconclusive: 0.9000 -> 0.8000, -10.0 points")
    assert comparison.reasons[0].endswith("p 0.12; smallest drop this run would detect with 80 % power: 35.1 points")


def test_so_few_pairs_that_no_drop_would_show_are_said_to_be() -> None:
    old = run(answers(3, 0))
    assert compare(old, broken(old, 3)).reasons[0].endswith("; too few pairs to detect any drop with 80 % power")


@pytest.mark.parametrize(("wrong", "verdict"), [(4, "pass"), (5, "inconclusive")])
def test_five_points_are_spoken_of_and_four_are_not(wrong: int, verdict: str) -> None:
    # Ten others got better, which keeps it from being significant.
    old, new = run([*[1.0] * 90, *[0.0] * 10]), run([*[0.0] * (wrong + 10), *[1.0] * (90 - wrong)])
    assert verdict == compare(old, new).verdict


def test_inconclusive_outweighs_an_improvement_elsewhere() -> None:
    up, down = run(answers(30, 20), "up"), run(answers(18, 2), "down")
    comparison = compare([*broken(up, 9), *down], [*up, *broken(down, 2)])
    assert {"up": "improvement", "down": "inconclusive"}.items() <= verdicts(comparison).items()
    assert "inconclusive" == comparison.verdict


@each_row(("tolerance", "verdict"), [(0.0, "regression"), (0.17, "regression"), (0.18, "pass")])
def test_a_significant_drop_has_to_be_larger_than_the_tolerance(tolerance: float, verdict: str) -> None:
    old = run(answers(40, 10))
    comparison = compare(old, broken(old, 9), Criteria(tolerance=tolerance))
    assert verdict == comparison.verdict
    assert comparison.reasons[0].endswith("within the tolerance of 18.0 points") is (verdict == "pass")


def test_a_tolerated_drop_is_not_spoken_of_as_inconclusive() -> None:
    old = run(answers(18, 2))
    assert "pass" == compare(old, broken(old, 2), Criteria(tolerance=0.1)).verdict


@pytest.mark.parametrize(("alpha", "verdict"), [(0.05, "regression"), (0.005, "inconclusive")])
def test_alpha_is_the_whole_run_s(alpha: float, verdict: str) -> None:
    old = run(answers(30, 0))
    assert verdict == compare(old, broken(old, 6), Criteria(alpha=alpha)).verdict


@pytest.mark.parametrize(
    ("criteria", "why"),
    [(Criteria(strict=True), "strict: each such example counts"), (Criteria(exact=True), "the adapter always gives")],
)
def test_one_flip_is_a_regression_where_every_flip_counts(criteria: Criteria, why: str) -> None:
    old = run(answers(500, 0))
    comparison = compare(old, broken(old, 1), criteria)
    assert ("regression", "pass") == (comparison.verdict, compare(old, broken(old, 1)).verdict)
    assert any(why in reason and "sums: e000" in reason for reason in comparison.reasons)


def test_a_flip_for_the_better_does_not_make_up_for_one_for_the_worse_where_every_flip_counts() -> None:
    old = [*run(answers(10, 10))]
    new = [*broken(old, 1)[:10], *(replace(each, score=1.0, status="passed") for each in old[10:])]
    assert "regression" == compare(old, new, Criteria(strict=True)).verdict
    assert "improvement" == compare(old, new).verdict


def test_a_graded_drop_without_a_flip_is_judged_by_the_test_even_where_every_flip_counts() -> None:
    old = run([0.9] * 40)
    assert "regression" == compare(old, run([0.8] * 40), Criteria(strict=True)).verdict
    assert "pass" == compare(old, run([0.9] * 39 + [0.8]), Criteria(strict=True)).verdict


def test_ten_wrong_answers_about_one_text_are_no_regression() -> None:
    old = [replace(each, cluster="text" if n < 10 else "") for n, each in enumerate(run(answers(60, 0)))]
    assert "inconclusive" == compare(old, broken(old, 10)).verdict
    plain = run(answers(60, 0))
    assert "regression" == compare(plain, broken(plain, 10)).verdict


def test_tasks_weigh_equally_in_what_is_overall() -> None:
    small, large = run(answers(4, 0), "small"), run(answers(400, 0), "large")
    comparison = compare([*small, *large], [*broken(small, 2), *large])
    assert (1.0, 0.75, -0.25, 404) == (
        comparison.pooled.old,
        comparison.pooled.new,
        comparison.pooled.change,
        comparison.pooled.paired,
    )


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0.5, 1]), st.sampled_from([0, 0.5, 1])), max_size=40)
)
def test_tasks_and_overall_have_half_of_alpha_each_and_a_single_task_all_of_it(
    triples: list[tuple[str, float, float]],
) -> None:
    old = [result(str(n), score, task) for n, (task, score, _) in enumerate(triples)]
    new = [result(str(n), score, task) for n, (task, _, score) in enumerate(triples)]
    comparison = compare(old, new)
    differences = {task: [new - old for name, old, new in triples if name == task] for task, _, _ in sorted(triples)}
    adjusted = holm({task: paired_test(each).p for task, each in differences.items()})
    parts = 2 if len(differences) > 1 else 1
    assert {task: min(1.0, parts * p) for task, p in adjusted.items()} == {
        change.task: change.p_adjusted for change in comparison.tasks
    }
    if triples:
        pooled = pooled_test([(each, ()) for each in differences.values()], alpha=0.05 / parts)
        assert (pooled.p, min(1.0, parts * pooled.p)) == (comparison.pooled.p, comparison.pooled.p_adjusted)
        assert pooled.detectable == comparison.pooled.detectable


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from([0.0, 0.3, 1.0, None]), st.sampled_from([0.0, 0.3, 1.0, None])
        ),
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_results_never_matters(
    triples: list[tuple[str, float | None, float | None]], toss: random.Random
) -> None:
    old = [result(str(n), score, task) for n, (task, score, _) in enumerate(triples)]
    new = [result(str(n), score, task) for n, (task, _, score) in enumerate(triples)]
    assert compare(old, new) == compare(toss.sample(old, len(old)), toss.sample(new, len(new)))


# As JSON, and in words


def test_the_json_holds_everything_and_a_flip_with_what_was_said() -> None:
    old = [result("e1", 1.0, prompt="say 4", targets=("4",), outputs=("It is 4",), predictions=("4",), line=7)]
    new = [replace(old[0], score=0.0, status="below", prompt="say 4!", outputs=("It is 5",), predictions=("5",))]
    record = compare(old, [*new, result("e2", 1.0)]).to_json()
    assert record == json.loads(json.dumps(record, allow_nan=False))
    assert [
        {
            "task": "sums",
            "id": "e1",
            "line": 7,
            "prompt": "say 4!",
            "targets": ["4"],
            "old": {"output": "It is 4", "prediction": "4", "score": 1.0, "status": "passed"},
            "new": {"output": "It is 5", "prediction": "5", "score": 0.0, "status": "below"},
        }
    ] == record["worse"]
    assert [{"task": "sums", "id": "e2"}] == record["new"]
    assert {
        "alpha": 0.05,
        "tolerance": 0.0,
        "strict": False,
        "exact": False,
        "pair_by": "content",
        "models": 1,
    } == record["criteria"]
    assert ["sums"] == [change["task"] for change in record["tasks"]]
    assert "overall" == record["pooled"]["task"]
    assert "inconclusive" == record["verdict"]


def test_many_flips_are_counted_and_the_first_named() -> None:
    old = run(answers(100, 0))
    reasons = compare(old, broken(old, 8), Criteria(strict=True)).reasons
    assert (
        "overall: 8 example(s) passed before and do not now; strict: each such example counts: sums: e000, sums: e001, "
        "sums: e002, sums: e003, sums: e004 and 3 more" in reasons
    )


def test_names_from_files_cannot_start_a_line_or_move_the_cursor() -> None:
    old = [result("a\n::error::\x1b[2J", 1.0, "task\u2028"), result("b", 1.0)]
    comparison = compare(old, [], left_out={"x\ny": "\x1b"})
    for line in (*comparison.reasons, *comparison.coverage):
        assert line.isprintable()


@each_row(
    ("count", "said"),
    [
        (40, "all 40 examples of the baseline were compared"),
        (1, "the baseline's one example was compared"),
        (0, "nothing was compared: the baseline is empty"),
    ],
)
def test_that_nothing_was_left_out_is_said_too(count: int, said: str) -> None:
    old = run(answers(count, 0))
    assert (said,) == compare(old, old).coverage


def test_what_passed_before_is_named_first_and_marked_in_the_json() -> None:
    old = [*run([0.0] * 6), result("z", 1.0)]
    comparison = compare(old, [])
    assert "removed: sums: z, sums: e000, sums: e001, sums: e002, sums: e003 and 2 more" in comparison.coverage
    removed = comparison.to_json()["removed"]
    assert [{"task": "sums", "id": "z", "passed_before": True}] == [each for each in removed if each["passed_before"]]
    assert 7 == len(removed)


@each_row("alpha", [0.0, 1.0, float("nan"), -1])
def test_an_alpha_that_is_no_chance_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"alpha is .*: expected a number between 0 and 1"):
        Criteria(alpha=alpha)


@each_row("tolerance", [-0.1, 1.5, float("nan")])
def test_a_tolerance_that_is_no_difference_of_scores_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"tolerance is .*: expected a number from 0 to 1"):
        Criteria(tolerance=tolerance)
