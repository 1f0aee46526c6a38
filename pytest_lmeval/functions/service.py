"""Answer and record the requests that an application sends outside of examples."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pytest_lmeval.functions.example import ExampleState, allow_failures
from pytest_lmeval.functions.steps import Step, usage_of_steps
from pytest_lmeval.records.service import OUTSIDE, Outside

if TYPE_CHECKING:
    from pytest_lmeval.functions.clients.answering import Clients
    from pytest_lmeval.functions.clients.body import Talks

_SEVERAL = (
    "several models: a request outside of examples could be for any of them; pass lm.headers or lm.token on, or run "
    "one model at a time"
)
_LONGEST = 200


class ServiceUrl(str):
    """The base URL for requests outside of examples, a string with the method :meth:`may_fail`."""

    __slots__ = ("_state",)
    _state: ExampleState

    @classmethod
    def of(cls, url: str, state: ExampleState) -> ServiceUrl:
        """Return ``url``; ``state`` records the requests."""
        made = cls(url)
        made._state = state
        return made

    def may_fail(self) -> AbstractContextManager[None]:
        """Allow requests outside of examples to fail if they begin within the ``with`` block.

        Failures of these requests do not make the run incomplete.
        """
        return allow_failures(self._state, self._state.unused.block("lm_base_url.may_fail"))


class Service:
    """Requests from one process that belong to no example.

    ``answers`` handles the requests, and is None if a run has several models. ``running`` are the current examples.
    ``preparing`` counts the fixtures that pytest is setting up, which may send requests. ``during`` counts requests
    that arrived while examples ran and no fixture was being set up.
    """

    def __init__(
        self, answers: Clients | None, running: Collection[ExampleState], on_late: Callable[[ExampleState, str], None]
    ) -> None:
        self._answers = answers
        self._running = running
        self.state = ExampleState(*OUTSIDE, 0, on_late)
        self.talks: Talks = {}
        self.preparing = 0
        self.during = 0
        self.state.begin()

    def take(self) -> Clients:
        """Count a request; return its handler, or raise RequestRefused if the model for the request is unknown."""
        if self._answers is None:
            from pytest_lmeval.functions.clients.body import refused

            error = refused(421, _SEVERAL)
            self.state.steps.append(Step("request", "lm_base_url", error=str(error)))
            raise error
        self.during += bool(self._running) and not self.preparing
        return self._answers

    @property
    def faults(self) -> list[str]:
        """Messages about failed requests that were not allowed to fail, and about calls that had no effect."""
        unused = self.state.unused.messages
        failed = [step for step in self.state.steps if step.error and not step.may_fail]
        if failed:
            first = f"{failed[0].name}: {' '.join(failed[0].error.split())[:_LONGEST]}"
            unused.append(f"{len(failed)} request(s) outside of examples, to lm_base_url, ended in an error ({first})")
        return unused

    def requests(self) -> Outside:
        """Return a record of all requests for the ledger."""
        if self._answers is None:
            return Outside()
        steps = [*self.state.steps]
        recorded = [step.to_json() for step in steps]
        return Outside(*self._answers.model, len(steps), self.during, usage_of_steps(steps), recorded)
