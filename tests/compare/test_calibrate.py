"""Two runs of one model tell how much flips by chance, and what the gate makes of it."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.compare import calibrate as module
from pytest_lmeval.compare.calibrate import Calibration, calibrate
from pytest_lmeval.compare.compare import compare
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.needed import overall_level
from pytest_lmeval.compare.pairing import Pair, pair_up
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.stats.intervals import wilson_interval
from pytest_lmeval.types import ExampleResult
from tests.conftest import MadeOnce
from tests.records.run_files import FACTS, infos_of, result, results_of

LATER = replace(FACTS, timestamp="2026-11-21T09:00:00Z")


def _runs(first: list[ExampleResult], second: list[ExampleResult]) -> tuple[RunFile, RunFile]:
    infos = {info.name: info for info in infos_of([*first, *second])}
    one = RunFile(
        path=Path("one"), kind="ledger", facts=FACTS, complete=True, infos=infos, results=tuple(first), digest="d"
    )
    return one, replace(one, path=Path("other"), facts=LATER, results=tuple(second))


def _noisy(count: int, flips: int, **fields: str) -> tuple[list[ExampleResult], list[ExampleResult]]:
    """Return two runs of a task, of which ``flips`` examples changed sides, half of them each way."""
    scores = [float(number % 2) for number in range(count)]
    flipped = [1 - score if number < flips else score for number, score in enumerate(scores)]
    return results_of({"sums": scores}, **fields), results_of({"sums": flipped}, **fields)


@pytest.fixture(scope="module")
def noisy(made_once: MadeOnce, request: pytest.FixtureRequest) -> Calibration:
    rounds = 400 if request.config.getoption("all") else 200

    def fill(folder: Path) -> None:
        found = calibrate(*_runs(*_noisy(400, 40)), Criteria(), rounds=rounds)
        (folder / "calibration.pickle").write_bytes(pickle.dumps(found))

    found: Calibration = pickle.loads((made_once("calibration", fill) / "calibration.pickle").read_bytes())
    return found


def test_flips_are_counted_by_task_and_over_all(noisy: Calibration) -> None:
    (task,) = noisy.tasks
    assert ("sums", 400, 40, 0.1) == (task.task, task.examples, task.flips, task.flip_rate)
    assert wilson_interval(40, 400) == task.ci95
    assert (0.5, 0.5) == task.scores
    assert ("overall", 400, 40) == (noisy.overall.task, noisy.overall.examples, noisy.overall.flips)


def test_the_smallest_detectable_drop_is_that_of_the_comparison(noisy: Calibration) -> None:
    first, second = _noisy(400, 40)
    comparison = compare(first, second)
    assert (comparison.pooled.detectable, comparison.tasks[0].detectable) == (
        noisy.overall.detectable,
        noisy.tasks[0].detectable,
    )


def test_false_alarms_come_about_as_often_as_alpha_says(noisy: Calibration) -> None:
    alarms = noisy.false_alarms
    assert alarms.rounds in (200, 400)
    assert alarms.alarms / alarms.rounds == alarms.rate
    # Alarms twice as often as alpha says would be beyond this with a chance of 79 % in 200 rounds, of 86 % in 400.
    assert 0.015 < alarms.rate < 0.085
    assert wilson_interval(alarms.alarms, alarms.rounds) == alarms.ci95


def test_larger_suites_are_simulated_less_often_but_always_a_hundred_times() -> None:
    assert [1000, 300, 100] == [module._rounds(pairs) for pairs in (20, 1000, 50_000)]


def test_strict_alarms_at_nearly_every_rerun_of_a_model_that_varies() -> None:
    strict = calibrate(*_runs(*_noisy(100, 20)), Criteria(strict=True), rounds=50)
    assert 50 == strict.false_alarms.alarms


@pytest.mark.again
def test_the_same_seed_gives_the_same_rounds() -> None:
    runs = _runs(*_noisy(60, 30))
    first, again, other = (
        calibrate(*runs, Criteria(alpha=0.3), seed=seed, rounds=100).false_alarms for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_round_alarms_where_compare_does() -> None:
    # The shortcut takes the same decisions as the whole comparison.
    chance = random.Random(0)
    decided = set()
    for _ in range(40):
        shift = chance.random()
        first = results_of({"a": [1.0] * 12, "b": [0.5] * 8})
        scores = {
            "a": [float(chance.random() > shift) for _ in range(12)],
            "b": [chance.choice([0.0, 0.5, 1.0]) for _ in range(8)],
        }
        second = results_of(scores)
        pairs = pair_up(first, second, (), lambda task, id: False).pairs
        expected = compare(first, second).verdict == "regression"
        assert expected == module._alarms(pairs, Criteria())
        decided.add(expected)
    assert {True, False} == decided


def test_a_cluster_is_drawn_and_swapped_as_one() -> None:
    first, second = (
        [result("sums", f"{cluster}{number}", score, cluster=cluster) for cluster in "ab" for number in range(3)]
        for score in (1.0, 0.0)
    )
    pairs = [Pair(old, new) for old, new in zip(first, second, strict=True)]
    clusters = module._clusters(pairs)
    assert [[3, 3]] == [[len(members) for members in task] for task in clusters]
    seen = set()
    for seed in range(20):
        drawn = module._drawn(clusters, random.Random(seed))
        groups = [drawn[:3], drawn[3:]]
        assert all(len({pair.cluster for pair in group}) == 1 for group in groups)
        assert all(len({pair.old_score for pair in group}) == 1 for group in groups)
        assert groups[0][0].cluster != groups[1][0].cluster
        seen.add((groups[0][0].old_score, groups[1][0].old_score))
    assert 4 == len(seen)


def test_a_smaller_drop_takes_more_repeats_and_more_examples(noisy: Calibration) -> None:
    assert [0.05, 0.02, 0.01] == [need.drop for need in noisy.needed]
    examples = [need.examples for need in noisy.needed]
    assert examples == sorted(examples)
    most, fewer, fewest = (need.repeats for need in noisy.needed)
    assert 1 == most
    assert fewer is not None
    assert 1 < fewer
    # Of 400 examples a hundredth is four that go from right to wrong: no test tells so few from chance.
    assert fewest is None


def test_the_repeats_and_examples_needed_show_the_drop_and_one_less_does_not() -> None:
    for flips in (100, 200, 400):
        first, second = _noisy(1000, flips)
        (need, *_) = calibrate(*_runs(first, second), Criteria(), rounds=5).needed
        # As many examples as it says, with flips in the same share, and one in ten fewer.
        for factor, shown in ((1.02, True), (0.9, False)):
            count = round(need.examples * factor)
            detectable = compare(*_noisy(count, round(count * flips / 1000))).pooled.detectable
            assert shown == (detectable is not None and detectable <= need.drop)


@pytest.mark.parametrize("tasks", [1, 2])
def test_what_is_needed_is_reckoned_as_the_comparison_reckons_what_is_detectable(tasks: int) -> None:
    first, second = _noisy(400, 40)
    first, second = (
        [replace(each, task=f"t{number % tasks}", hash=f"{number}") for number, each in enumerate(results)]
        for results in (first, second)
    )
    detectable = compare(first, second).pooled.detectable
    variances = module._variances(pair_up(first, second, (), lambda task, id: False).pairs, 1)
    assert detectable is not None
    assert variances.detectable(0.05 / tasks) == pytest.approx(detectable)
    drop = detectable + 0.001
    (need,) = variances.needed(overall_level(0.05, tasks), (drop,))
    assert need.repeats == 1
    assert 380 < need.examples <= 400


def test_the_repeats_that_there_were_are_counted_in() -> None:
    first, second = _noisy(400, 300)
    twice = (
        [replace(each, outputs=("a", "b")) for each in first],
        [replace(each, outputs=("a", "b")) for each in second],
    )
    once, repeated = (
        calibrate(*_runs(first, second), Criteria(), rounds=5),
        calibrate(*_runs(*twice), Criteria(), rounds=5),
    )
    assert (1, 2) == (once.repeats, repeated.repeats)
    assert once.needed[0].repeats is not None
    assert 1 < once.needed[0].repeats
    assert repeated.needed[0].repeats is not None
    assert 2 * once.needed[0].repeats - 1 <= repeated.needed[0].repeats <= 2 * once.needed[0].repeats


def test_a_model_that_never_varies_needs_one_response_and_is_told_so() -> None:
    found = calibrate(*_runs(*_noisy(400, 0)), Criteria(), rounds=5)
    assert (0, 0.0) == (found.false_alarms.alarms, found.overall.flip_rate)
    assert 1 == found.needed[0].repeats
    assert ("no example flipped: if the model's answers never vary, strict costs nothing",) == found.notes


def test_the_reader_is_told_what_may_not_be_one_model() -> None:
    one, other = _runs(*_noisy(20, 4))
    renamed = replace(other, facts=replace(LATER, adapter="b"), complete=False, results=(other.results or ())[1:])
    notes = calibrate(one, renamed, Criteria(), rounds=5).notes
    assert [
        "other: not complete",
        "the adapters are stub.v1 and b: the numbers hold only if it is one model",
        "skipped 1 example(s) that are in one run only",
    ] == list(notes)
    options = replace(other, facts=replace(LATER, adapter_options={"seed": 1}))
    assert "the adapter options differ" in calibrate(one, options, Criteria(), rounds=5).notes[0]


def test_runs_that_share_answers_are_refused() -> None:
    one, other = _runs(*_noisy(20, 4))
    cached = replace(other, results=tuple(replace(each, cached=1) for each in one.results or ()))
    with pytest.raises(UsageError, match=r"20 example\(s\) have the same answers from a cache, .* without --lm-cache"):
        calibrate(one, cached, Criteria(), rounds=5)


def test_runs_of_different_content_are_refused() -> None:
    one, other = _runs(*_noisy(20, 4))
    changed = replace(other, results=tuple(replace(each, hash="0" * 64) for each in other.results or ()))
    with pytest.raises(UsageError, match=r"20 example\(s\) of different content, such as sums:sums-0, "):
        calibrate(one, changed, Criteria(), rounds=5)
    elsewhere = replace(other, results=tuple(results_of({"words": [1.0]})))
    with pytest.raises(UsageError, match="share no scored example"):
        calibrate(one, elsewhere, Criteria(), rounds=5)
