"""A limit on cost holds before it is passed, however many requests are on their way."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import Budget
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, BudgetSpent
from pytest_lmeval.types import Completion, Generate, LogProb


def test_a_run_without_a_limit_has_no_budget() -> None:
    assert Engine(PricedBatch()).budget is None


def test_until_a_cost_is_known_one_is_on_its_way_at_a_time() -> None:
    budget = Budget(10.0)
    assert budget.allows(1)
    budget.commit(1)
    assert not budget.allows(1)
    budget.settle(Completion("a", cost=1.0))
    assert budget.allows(9)
    assert not budget.allows(10)


def test_what_is_on_its_way_counts_as_the_maximum_cost_seen() -> None:
    budget = Budget(10.0)
    budget.commit(2)
    budget.settle(Completion("a", cost=3.0))
    budget.settle(Completion("b", cost=1.0))
    assert budget.allows(2)
    budget.commit(1)
    assert budget.allows(1)
    assert not budget.allows(2)


def test_a_failed_request_is_no_longer_on_its_way() -> None:
    budget = Budget(2.0)
    budget.commit(1)
    budget.settle(Completion("a", cost=1.0))
    budget.commit(1)
    assert not budget.allows(1)
    budget.settle(AdapterError("no"))
    assert budget.allows(1)


def test_what_has_to_wait_is_woken_when_one_was_answered_or_not_asked_after_all() -> None:
    budget, woken = Budget(2.0), list[str]()
    assert budget.admit(lambda: woken.append("first"))
    assert not budget.admit(lambda: woken.append("second"))
    budget.settle(Completion("a", cost=1.0))
    assert ["second"] == woken
    assert budget.admit(lambda: woken.append("third"))
    assert not budget.admit(lambda: woken.append("fourth"))
    budget.release()
    assert ["second", "fourth"] == woken
    assert budget.admit(lambda: None)
    budget.settle(Completion("b", cost=1.0))
    with pytest.raises(BudgetSpent, match="2 of 2 is spent"):
        budget.admit(lambda: None)


def test_what_may_not_go_any_more_says_what_was_spent() -> None:
    budget = Budget(2.5)
    for _ in range(2):
        budget.commit(1)
        budget.settle(Completion("a", cost=1.0))
    with pytest.raises(BudgetSpent, match=r"--lm-max-cost: 2 of 2\.5 is spent.* up to 1"):
        budget.check(1)


@given(st.data(), st.floats(0.5, 20), st.integers(1, 30))
def test_requests_that_cost_no_more_than_the_first_never_pass_the_limit(data: Any, first: float, times: int) -> None:
    limit = first * times
    budget, spent, out = Budget(limit), 0.0, 1
    budget.commit(1)
    costs = iter([first])
    for _ in range(60):
        more = data.draw(st.integers(1, 5))
        if data.draw(st.booleans()) and budget.allows(more):
            budget.commit(more)
            out += more
        elif out:
            cost = next(costs, None) or data.draw(st.floats(0, first))
            budget.settle(Completion("a", cost=cost))
            spent, out = spent + cost, out - 1
    assert spent <= limit + 1e-9


def test_a_limit_on_costs_that_nobody_tells_stops_at_the_first_answer() -> None:
    budget = Budget(2.5)
    budget.commit(1)
    with pytest.raises(BudgetSpent, match="does not tell what a request costs"):
        budget.settle(Completion("a"))


class Priced:
    """Every request costs 1."""

    name = "priced"

    def __init__(self) -> None:
        self.asked = 0

    def answer(self, request: Generate) -> Completion:
        self.asked += 1
        return Completion(request.text, cost=1.0)


class PricedAsync(Priced):
    async def complete(self, request: Generate) -> Completion:
        return self.answer(request)


class PricedBatch(Priced):
    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        return [self.answer(request) for request in requests]


def run_until_spent(adapter: Priced, max_cost: float, repeats: int) -> tuple[int, bool]:
    """Return how many of 60 examples were answered, and whether the budget stopped the run."""

    def requests_of(key: Hashable) -> list[Generate]:
        return [Generate(f"{key}", repeat=number) for number in range(repeats)]

    engine = Engine(adapter, Policy(max_cost=max_cost, batch_size=4))
    keys = list(range(60))
    coming = iter(keys)
    engine.plan([keys[first : first + 4] for first in range(0, 60, 4)], lambda: next(coming, None))
    try:
        for answered, key in enumerate(keys):
            try:
                engine.respond(key, requests_of)
            except BudgetSpent:
                return answered, True
        return len(keys), False
    finally:
        engine.close()


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("max_cost", [22.0, 43.0, 99.5])
def test_a_run_stops_before_it_costs_more_than_it_may(kind: type[Priced], repeats: int, max_cost: float) -> None:
    adapter = kind()
    answered, stopped = run_until_spent(adapter, max_cost, repeats)
    assert adapter.asked <= max_cost
    assert stopped == (60 * repeats > max_cost)
    assert answered * repeats <= adapter.asked
    # What was paid for is not thrown away, and the limit is made use of to within a batch.
    assert answered * repeats >= min(60 * repeats, max_cost - 4 * repeats)


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
def test_a_run_that_may_cost_as_much_as_it_does_is_not_stopped(kind: type[Priced]) -> None:
    assert (60, False) == run_until_spent(kind(), 60.0, 1)


def test_a_log_probability_whose_cost_nobody_tells_stops_a_limited_run() -> None:
    limited = Budget(1.0)
    limited.commit(1)
    with pytest.raises(BudgetSpent, match="does not tell"):
        limited.settle(LogProb(-1.0))


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
def test_what_is_sent_ahead_counts_every_request_of_a_key(kind: type[Priced]) -> None:
    adapter, requests = kind(), [Generate("a"), Generate("b"), Generate("c")]
    engine = Engine(adapter, Policy(max_cost=8.0, batch_size=1))
    engine.respond("first", lambda key: requests)
    engine.send(["second", "third"], lambda key: requests)
    assert 1 == len(engine.jobs)
    engine.respond("second", lambda key: requests)
    with pytest.raises(BudgetSpent):
        engine.respond("third", lambda key: requests)
    engine.close()
    assert 6 == adapter.asked


class SlowBudget(Budget):
    """Takes its time between the end of a request and what it cost."""

    def cost_of(self, answer: Any) -> float:
        time.sleep(0.2)
        return super().cost_of(answer)


def test_a_request_is_either_on_its_way_or_paid_for_at_any_time() -> None:
    budget = SlowBudget(1.0)
    budget.commit(1)
    settling = threading.Thread(target=budget.settle, args=(Completion("a", cost=1.0),))
    settling.start()
    allowed = []
    while settling.is_alive():
        allowed.append(budget.allows(1))
    assert allowed
    assert not any(allowed)


class LateBudget(Budget):
    """Takes longer to note what came of a job than an engine waits before it looks for its answers again."""

    def settle_all(self, job: Job) -> None:
        time.sleep(0.4)
        super().settle_all(job)


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
def test_nothing_is_asked_before_what_was_answered_is_paid_for(kind: type[Priced]) -> None:
    adapter = kind()
    engine = Engine(adapter, Policy(batch_size=1), budget=LateBudget(1.0))
    engine.respond("first", lambda key: [Generate("a")])
    with pytest.raises(BudgetSpent):
        engine.respond("second", lambda key: [Generate("b")])
    engine.close()
    assert 1 == adapter.asked


def test_requests_of_a_job_that_failed_are_no_longer_on_their_way() -> None:
    budget = Budget(2.0)
    budget.commit(2)
    budget.settle_all(Job([Generate("a"), Generate("b")], answers=(), failure=KeyboardInterrupt()))
    assert not budget.is_waiting
