"""What a run may cost, kept before it is passed."""

from __future__ import annotations

import threading

from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.errors import AdapterError, BudgetSpent
from pytest_lmeval.types import Completion


class Budget:
    """Lets requests go as long as they could all cost what the dearest so far did without passing ``limit``.

    Until the first cost is known, one request, or one batch, is on its way at a time. Without a limit all may go.
    Safe to use from several threads.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._spent = 0.0
        self._dearest: float | None = None
        self._out = 0
        self._lock = threading.Lock()

    @property
    def is_waiting(self) -> bool:
        """Whether requests are on their way, whose costs are still to come."""
        return self._out > 0

    def allows(self, more: int) -> bool:
        """Tell whether ``more`` requests may go ahead of their time."""
        if self._limit is None:
            return True
        if self._dearest is None:
            return self._out == 0 and self._limit > 0
        return self._spent + (self._out + more) * self._dearest <= self._limit

    def check(self, more: int) -> None:
        """Raise BudgetSpent where ``more`` requests that are wanted now may not go."""
        if self._limit is not None and self._limit <= 0:
            raise BudgetSpent("stopped by --lm-max-cost: the run that is resumed has spent it")
        if self._limit is not None and self._spent + (self._out + more) * (self._dearest or 0.0) > self._limit:
            spent = (
                f"{self._spent:.6g} of {self._limit:.6g} is spent, and a request costs up to {self._dearest or 0:.6g}"
            )
            raise BudgetSpent(f"stopped by --lm-max-cost: {spent}")

    def commit(self, requests: int) -> None:
        """Note that requests are on their way."""
        with self._lock:
            self._out += requests

    def release(self) -> None:
        """Note that one of them is not asked after all."""
        with self._lock:
            self._out -= 1

    def settle(self, answer: Answer) -> None:
        """Note what came of one of them."""
        with self._lock:
            self._out -= 1
            if self._limit is None or isinstance(answer, AdapterError) or answer.cached:
                return
            cost = answer.cost if isinstance(answer, Completion) else None
            if cost is None:
                raise BudgetSpent("stopped by --lm-max-cost: the adapter does not tell what a request costs")
            self._spent += cost
            self._dearest = max(self._dearest or 0.0, cost)
