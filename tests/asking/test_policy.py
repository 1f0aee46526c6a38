"""How long to wait before asking again, and which part of a run's limits is one process's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.asking.policy import backoff_s
from pytest_lmeval.run.settings import RunSettings
from tests.tables import each_row


@given(st.integers(0, 50))
def test_the_wait_doubles_up_to_a_minute_and_half_of_it_is_chance(attempt: int) -> None:
    full = min(60.0, 0.5 * 2**attempt)
    assert full / 2 <= backoff_s(attempt, None) <= full


def test_two_clients_do_not_wait_alike() -> None:
    assert 1 < len({backoff_s(3, None) for _ in range(20)})
    assert 1 < len({backoff_s(3, 7.0) for _ in range(20)})


@given(st.integers(0, 50), st.floats(0, 600))
def test_what_the_server_asked_for_is_waited_and_hardly_more(attempt: int, asked: float) -> None:
    assert asked <= backoff_s(attempt, asked) <= 1.1 * asked


@each_row("asked", [601.0, 86_400.0, 1e300, float("inf")])
def test_no_server_makes_a_run_wait_for_hours(asked: float) -> None:
    assert 600 <= backoff_s(0, asked) <= 660


@each_row("asked", [-1.0, float("-inf"), 0.0])
def test_a_time_in_the_past_is_no_wait(asked: float) -> None:
    assert 0.0 == backoff_s(0, asked)


@given(st.integers(1, 500), st.integers(1, 64))
def test_the_processes_together_keep_to_the_concurrency_of_the_run(concurrency: int, share: int) -> None:
    own = RunSettings(concurrency=concurrency, share=share).policy(0.0).concurrency
    assert own >= 1
    assert own * share <= max(concurrency, share)


@given(st.floats(0.01, 1e6), st.integers(1, 64))
def test_the_processes_together_keep_to_the_cost_of_the_run(cost: float, share: int) -> None:
    own = RunSettings(max_cost=cost, share=share).policy(0.0).max_cost
    assert own is not None
    assert own * share <= cost * (1 + 1e-12)


def test_without_a_limit_on_cost_a_process_has_none() -> None:
    assert RunSettings(share=4).policy(0.0).max_cost is None
