"""A limit on cost holds before it is passed, however many requests are on their way."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.asking import streaming
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import Budget, Sent
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterError, AdapterTimeout, BudgetSpent
from pytest_lmeval.types import Completion, Generate, LogProb


def test_a_run_without_a_limit_has_no_budget() -> None:
    assert Engine(PricedBatch()).budget is None


def nothing() -> None:
    """Wake no one."""


def sent(budget: Budget, requests: int = 1, room: int = 0) -> Sent:
    """Return requests that the budget let go."""
    found = budget.take(requests, room or requests, nothing)
    assert isinstance(found, Sent)
    return found


def refusal(budget: Budget) -> str:
    """Return why the budget lets nothing go any more."""
    found = budget.take(1, 1, nothing)
    assert isinstance(found, BudgetSpent)
    return str(found)


def paid(*costs: float) -> list[Answer]:
    return [Completion("a", cost=cost) for cost in costs]


def test_until_a_cost_is_known_one_is_in_flight_at_a_time() -> None:
    budget = Budget(10.0)
    first = sent(budget)
    assert budget.take(1, 1, nothing) is None
    first.settle(paid(1.0))
    sent(budget, 9)
    assert budget.take(1, 1, nothing) is None


def test_what_is_in_flight_counts_as_the_maximum_cost_seen() -> None:
    budget = Budget(10.0)
    sent(budget, 2).settle(paid(3.0, 1.0))
    sent(budget)
    assert budget.take(2, 2, nothing) is None
    sent(budget)


def test_what_is_useless_alone_needs_room_for_all_of_it() -> None:
    budget = Budget(4.0)
    sent(budget).settle(paid(1.0))
    first = sent(budget)
    assert budget.take(1, 3, nothing) is None
    sent(budget, 1, 2)
    first.settle(paid(1.0))


def test_a_failed_request_is_in_flight_no_longer() -> None:
    budget = Budget(2.0)
    sent(budget).settle(paid(1.0))
    second = sent(budget)
    assert budget.take(1, 1, nothing) is None
    second.settle([AdapterError("no")])
    sent(budget)


def test_what_has_to_wait_is_woken_once_when_one_was_answered_or_dropped() -> None:
    budget, woken = Budget(2.0), list[str]()

    def wake() -> None:
        woken.append("one")

    first = sent(budget)
    assert [None, None] == [budget.take(1, 1, wake), budget.take(1, 1, wake)]
    first.settle(paid(1.0))
    assert ["one"] == woken
    second = sent(budget)
    assert budget.take(1, 1, wake) is None
    second.settle()
    second.settle(paid(1.0))
    assert (["one", "one"], 1.0) == (woken, budget.spent)
    sent(budget).settle(paid(1.0))
    assert "2 of 2 is spent" in refusal(budget)


def test_what_may_not_go_any_more_says_what_was_spent_and_nothing_goes_after_it() -> None:
    budget = Budget(2.5)
    sent(budget, 2).settle(paid(1.0, 1.0))
    for _ in range(2):
        assert re.search(r"--lm-max-cost: 2 of 2\.5 is spent.* may cost 1", refusal(budget))


@pytest.mark.parametrize(("limit", "cost", "times"), [(3.0, 0.1, 30), (0.3, 0.1, 3), (0.7, 0.07, 10)])
def test_costs_that_sum_up_to_the_limit_but_for_rounding_are_within_it(limit: float, cost: float, times: int) -> None:
    budget = Budget(limit)
    for _ in range(times):
        sent(budget).settle(paid(cost))
    assert not budget.is_passed
    assert refusal(budget)


@given(st.data(), st.floats(0.5, 20), st.integers(1, 30))
def test_requests_that_cost_no_more_than_the_first_never_pass_the_limit(data: Any, first: float, times: int) -> None:
    limit = first * times
    budget = Budget(limit)
    out = [sent(budget)]
    costs = iter([first])
    for _ in range(60):
        more = data.draw(st.integers(1, 5))
        found = budget.take(1, more, nothing) if data.draw(st.booleans()) else None
        if isinstance(found, BudgetSpent):
            break
        if found is not None:
            out.append(found)
        elif out:
            cost = next(costs, None) or data.draw(st.floats(0, first))
            out.pop().settle(paid(cost))
    assert budget.spent <= limit + 1e-9


@given(st.lists(st.floats(0, 50), min_size=1, max_size=80), st.integers(1, 8))
def test_nothing_is_sent_after_the_limit_was_passed(costs: list[float], concurrency: int) -> None:
    budget, out = Budget(10.0), list[Sent]()
    for cost in costs:
        was_passed = budget.is_passed
        while len(out) < concurrency and isinstance(found := budget.take(1, 1, nothing), Sent):
            out.append(found)
            assert not was_passed
        if not out:
            break
        out.pop(0).settle(paid(cost))


def test_a_limit_on_costs_that_are_not_told_stops_at_the_first_answer() -> None:
    budget = Budget(2.5)
    answers = sent(budget).settle([Completion("a")])
    assert [BudgetSpent] == [type(each) for each in answers]
    assert "does not report what a request costs" in refusal(budget)


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


def test_a_log_probability_whose_cost_is_not_told_stops_a_limited_run() -> None:
    (answer,) = sent(Budget(1.0)).settle([LogProb(-1.0)])
    assert isinstance(answer, BudgetSpent)


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
def test_what_is_sent_ahead_counts_every_request_of_a_key(kind: type[Priced]) -> None:
    adapter, requests = kind(), [Generate("a"), Generate("b"), Generate("c")]
    engine = Engine(adapter, Policy(max_cost=8.0, batch_size=1))
    engine.respond("first", lambda key: requests)
    engine.send(["second", "third"], lambda key: requests)
    engine.respond("second", lambda key: requests)
    with pytest.raises(BudgetSpent):
        engine.respond("third", lambda key: requests)
    engine.close()
    assert 6 == adapter.asked


class SlowBudget(Budget):
    """Takes its time between the end of a request and what it cost."""

    def _paid(self, answer: Any) -> Any:
        time.sleep(0.2)
        return super()._paid(answer)


def test_a_request_is_either_in_flight_or_paid_for_at_any_time() -> None:
    budget = SlowBudget(1.0)
    settling = threading.Thread(target=sent(budget).settle, args=(paid(1.0),))
    settling.start()
    while (found := budget.take(1, 1, nothing)) is None:
        pass
    assert isinstance(found, BudgetSpent)
    settling.join()


class LateBudget(Budget):
    """Takes longer to count an answer than an engine waits before it looks for it again."""

    def settle(self, sent: Sent, answers: Sequence[Answer] = ()) -> list[Answer]:
        time.sleep(0.4)
        return super().settle(sent, answers)


@pytest.mark.parametrize("kind", [PricedAsync, PricedBatch])
def test_nothing_is_asked_before_what_was_answered_is_paid_for(kind: type[Priced]) -> None:
    adapter = kind()
    engine = Engine(adapter, Policy(batch_size=1), budget=LateBudget(1.0))
    engine.respond("first", lambda key: [Generate("a")])
    with pytest.raises(BudgetSpent):
        engine.respond("second", lambda key: [Generate("b")])
    engine.close()
    assert 1 == adapter.asked


class Dearer(Priced):
    """From the sixth on a request costs ten thousand times as much."""

    def answer(self, request: Generate) -> Completion:
        self.asked += 1
        return Completion(request.text, cost=0.0001 if self.asked <= 5 else 1.0)


class DearerAsync(Dearer):
    async def complete(self, request: Generate) -> Completion:
        answer = self.answer(request)
        await asyncio.sleep(0.005)
        return answer


class DearerBatch(Dearer):
    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        return [self.answer(request) for request in requests]


@pytest.mark.parametrize(("kind", "most"), [(DearerAsync, 5 + 16), (DearerBatch, 8)])
def test_what_is_queued_is_not_sent_after_the_limit_was_passed(kind: type[Dearer], most: int) -> None:
    adapter = kind()
    _, stopped = run_until_spent(adapter, 1.0, 1)
    assert (True, most) == (stopped, adapter.asked)


class Blocking(Priced):
    """Its first request blocks the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    async def complete(self, request: Generate) -> Completion:
        if request.text == "blocks":
            self.may_go_on.wait(60)
        return self.answer(request)


def test_what_a_hanging_adapter_was_asked_is_in_flight_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_GRACE_S", 0.5)
    adapter, budget = Blocking(), Budget(1.0)
    engine = Engine(adapter, Policy(timeout_s=0.5, retries=0), budget)
    other = Engine(PricedBatch(), Policy(), budget)
    with pytest.raises(AdapterTimeout):
        engine.respond("a", lambda key: [Generate("blocks")])
    assert ["b"] == [getattr(answer, "text", "") for answer in other.respond("b", lambda key: [Generate("b")])]
    adapter.may_go_on.set()
    engine.close()
    other.close()
