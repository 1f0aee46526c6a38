"""Which examples are in quarantine: until the end of a day, and by the baseline's list where there is one."""

from __future__ import annotations

import pytest

from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.types import ExampleResult

OWN = {"until": "2026-03-01", "reason": "flips"}


def result(**fields: object) -> ExampleResult:
    given = {"status": "failed", "score": 0.0, **fields}
    return ExampleResult("t", "e", threshold=1.0, metric="exact_match", hash="h", **given)  # type: ignore[arg-type]  # the tests name them


@pytest.mark.parametrize(
    ("day", "is_in"), [("2026-02-28", True), ("2026-03-01", True), ("2026-03-02", False), ("2027-01-01", False)]
)
def test_it_lasts_until_the_end_of_its_day(day: str, is_in: bool) -> None:
    found = Quarantine(day).applied(result(quarantine=OWN))
    assert ("quarantined" if is_in else "failed", 0.0) == (found.status, found.score)


def test_where_there_is_a_list_it_alone_counts() -> None:
    listed = {("t", "other"): OWN}
    assert "failed" == Quarantine("2026-01-01", listed).applied(result(quarantine=OWN)).status
    assert "quarantined" == Quarantine("2026-01-01", {("t", "e"): OWN}).applied(result()).status
    assert "failed" == Quarantine("2026-03-02", {("t", "e"): OWN}).applied(result()).status


@pytest.mark.parametrize("status", ["excluded", "measured"])
def test_what_a_rule_left_out_stays_so(status: str) -> None:
    assert status == Quarantine("2026-01-01").applied(result(status=status, score=None, quarantine=OWN)).status


def test_recorded_results_are_judged_anew_by_the_day_and_mode_of_who_reads_them() -> None:
    recorded = result(status="quarantined", quarantine=OWN)
    statuses = {mode: Quarantine("2026-03-02").judged([recorded], mode)[0].status for mode in ("examples", "tasks")}
    assert {"examples": "failed", "tasks": "below"} == statuses
    assert "quarantined" == Quarantine("2026-03-01").judged([recorded], "tasks")[0].status
