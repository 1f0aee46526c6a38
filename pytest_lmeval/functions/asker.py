"""From an eval function to an engine, one request at a time, and back."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import replace

from pytest_lmeval.adapters.protocol import ANY_OPTION
from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, BudgetSpent
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.hashes import with_ordinal
from pytest_lmeval.records.answers import KnownAnswers, Recall
from pytest_lmeval.types import Completion, Exchange, Generate

_LOOK_S = 0.25
_GATHER_S = 0.005
_OF_TOOLS = ("name", "description", "parameters")


class Asker:
    """Asks a model on behalf of examples, within the run's limits; it lives in ``loop``.

    What ``known`` holds an answer to is not asked, once for each time that it was; ``note`` is called with every other
    answer. Requests for a batch adapter are gathered, for 5 ms or until there are as many as a batch has.
    """

    def __init__(
        self, engine: Engine, loop: Loop, known: KnownAnswers | None, note: Callable[[Exchange], None], key: str = ""
    ) -> None:
        self.engine = engine
        self.name, self.key = adapter_name(engine.adapter), key
        self._loop = loop
        self._known = known
        self._note = note
        self._recalls: dict[tuple[str, str], Recall] = {}
        self._seen: dict[tuple[str, str], Counter[tuple[int, str]]] = {}
        self._gathered: list[tuple[Generate, asyncio.Future[Job]]] = []
        self._arrived: deque[tuple[Job, list[tuple[Generate, asyncio.Future[Job]]]]] = deque()
        self._is_woken = False
        self._settled = asyncio.Event()
        self._options: frozenset[str] = frozenset(getattr(engine.adapter, "request_options", ()))

    async def ask(self, request: Generate, sent: Generate | None = None) -> Completion:
        """Return the answer to a request; raise AdapterError without one, BudgetSpent where the limit forbids it.

        Options that the adapter does not take are an error, unless ``sent`` is what it is asked in place of the
        request: see :meth:`taken`. May be awaited in any event loop.
        """
        if self._loop.is_here():
            return await self._ask(request, sent)
        return await asyncio.wrap_future(self._loop.submit(self._ask(request, sent)))

    def taken(self, request: Generate) -> tuple[Generate, set[str]]:
        """Return a request as far as the adapter takes it, and the names of what it does not take."""
        if ANY_OPTION in self._options:
            return request, set()
        options = {name: value for name, value in request.options.items() if name in self._options}
        tools = tuple({name: tool[name] for name in _OF_TOOLS if name in tool} for tool in request.tools)
        left_out = {f"tools[].{name}" for tool in request.tools for name in tool if name not in _OF_TOOLS}
        return replace(request, options=options, tools=tools), left_out | (request.options.keys() - options.keys())

    def ask_blocking(self, request: Generate) -> Completion:
        """Do as :meth:`ask` and wait; for any thread but the loop's."""
        future: Future[Completion] = self._loop.submit(self._ask(request))
        while True:
            try:
                return future.result(_LOOK_S)
            except NotYet:
                if future.done():
                    raise
                self.engine.look_after()

    async def _ask(self, request: Generate, sent: Generate | None = None) -> Completion:
        if self.engine.caches:
            request = with_ordinal(request, self._seen.setdefault((request.task, request.id), Counter()))
        if self._known is not None and (known := self._recalled(self._known, request)) is not None:
            return known
        refused = request.options.keys() - self._options
        if refused and sent is None and ANY_OPTION not in self._options:
            takes = f"it takes {', '.join(sorted(self._options))}" if self._options else "it takes none per request"
            raise AdapterError(f"adapter {self.name} does not take {', '.join(sorted(refused))} from lm.ask; {takes}")
        await self._turn()
        answer = await self._answer(request if sent is None else sent)
        self._settle(answer)
        if isinstance(answer, AdapterError):
            raise answer
        assert isinstance(answer, Completion)
        self._note(Exchange(request, answer))
        return answer

    def _settle(self, answer: Answer) -> None:
        if self.engine.budget is not None:
            try:
                self.engine.budget.settle(answer)
            finally:
                self._settled.set()

    def _recalled(self, known: KnownAnswers, request: Generate) -> Completion | None:
        example = (request.task, request.id)
        if example not in self._recalls:
            self._recalls[example] = known.of(*example)
        return self._recalls[example].take(request)

    async def _turn(self) -> None:
        budget = self.engine.budget
        if budget is None:
            return
        while not budget.allows(1):
            if not budget.is_waiting:
                budget.check(1)
                raise BudgetSpent("stopped by --lm-max-cost")
            self._settled.clear()
            try:
                # Requests of other tasks settle without a word to this loop.
                await asyncio.wait_for(self._settled.wait(), _LOOK_S)
            except TimeoutError:
                continue
        budget.commit(1)

    async def _answer(self, request: Generate) -> Answer:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Job] = loop.create_future()
        if self.engine.streams:
            self._send([(request, future)])
        else:
            self._gathered.append((request, future))
            if len(self._gathered) >= self.engine.policy.batch_size:
                self._flush()
            elif len(self._gathered) == 1:
                loop.call_later(_GATHER_S, self._flush)
        job = await future
        if job.failure is not None:
            raise job.failure
        return _answer_in(job, request)

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            self._send(gathered)

    def _send(self, gathered: list[tuple[Generate, asyncio.Future[Job]]]) -> None:
        self.engine.ask([request for request, _ in gathered], self._on_answer(gathered))

    def _on_answer(self, gathered: list[tuple[Generate, asyncio.Future[Job]]]) -> Callable[[Job], None]:
        def arrived(job: Job) -> None:
            # In a thread of the engine's. One message wakes the loop for all that arrives until it turns.
            self._arrived.append((job, gathered))
            if not self._is_woken:
                self._is_woken = True
                try:
                    self._loop.events.call_soon_threadsafe(self._hand_out)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    self._arrived.clear()

        return arrived

    def _hand_out(self) -> None:
        self._is_woken = False
        while self._arrived:
            job, gathered = self._arrived.popleft()
            for request, future in gathered:
                if not future.done():
                    future.set_result(job)
                else:
                    self._settle_unheard(job, request)

    def _settle_unheard(self, job: Job, request: Generate) -> None:
        """Count what an answer cost that nobody waits for any more: its request was cancelled."""
        if job.failure is None:
            with suppress(BudgetSpent):  # the next request meets it
                self._settle(_answer_in(job, request))
        elif self.engine.budget is not None:
            self.engine.budget.release()
            self._settled.set()


def _answer_in(job: Job, request: Generate) -> Answer:
    place = next(number for number, each in enumerate(job.requests) if each is request)
    assert job.answers is not None
    return job.answers[place]
