"""Examples that take several requests for a response: what is asked next depends on the answers so far.

The requests of one job that can be asked at the same time make a round: for a batch adapter the next turn of all
examples of the batch, for an async adapter, whose jobs are single examples, the next turn of each at once.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError, LmevalError
from pytest_lmeval.records.answers import Recall
from pytest_lmeval.task import Aside, FollowUp
from pytest_lmeval.types import Completion, Exchange, Generate, Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.engine import Engine


class Player(Protocol):
    """The model that plays a user: whom to ask, what it said before, and what is recorded of a reply."""

    @property
    def engine(self) -> Engine: ...

    def taken(self, request: Generate) -> Generate:
        """Return a request as far as the model takes it."""

    def recalled(self, request: Generate) -> str | None:
        """Return what an earlier run has of its reply."""

    def record(self, request: Generate, reply: Completion) -> Mapping[str, object]:
        """Return what the details of the result have of a reply."""


class Conversation:
    """One response to an example under way: what was asked and answered, and ``request``, what to ask now.

    ``request`` is None at the end, and while ``aside`` is what ``player``, who plays the user, is to be asked first.
    What ``recall`` holds the answer to is not asked again; ``note`` is called with each other answer. ``follow_up`` is
    None for what is a single request: its answer is the response.
    """

    def __init__(
        self,
        first: Request,
        follow_up: FollowUp | None = None,
        recall: Recall | None = None,
        note: Callable[[Exchange], None] = lambda exchange: None,
        player: Player | None = None,
    ) -> None:
        self.request: Request | None = first
        self.aside: Aside | None = None
        self.player = player
        self._asides: list[Mapping[str, object]] = []
        self._follow_up = follow_up
        self._recall = recall or Recall()
        self._note = note
        self._exchanges: list[Exchange] = []
        self._answer: Answer | None = None
        self._error: LmevalError | None = None
        if player is not None:
            opening: Any = follow_up
            self._follow(lambda: opening.opening(first))
        self._take_known()

    @property
    def is_open(self) -> bool:
        """Whether there is something to ask."""
        return self.request is not None or self.aside is not None

    def take_aside(self, answer: Answer) -> None:
        """Go on with what the user said."""
        aside, self.aside = self.aside, None
        assert aside is not None
        assert self.player is not None
        if isinstance(answer, Completion):
            self._asides.append(self.player.record(aside.request, answer))
            self._follow(lambda: aside.take(answer.text))
            self._take_known()
        else:
            self.fail(answer if isinstance(answer, LmevalError) else AdapterError("a user says completions only"))

    def take(self, answer: Answer) -> None:
        """Go on with the answer to ``request``."""
        self._take(answer, is_new=True)
        self._take_known()

    def fail(self, error: LmevalError) -> None:
        """End here."""
        # Many requests may share one error, and each has exchanges of its own.
        self._error = copy.copy(error)
        self._error.exchanges = tuple(self._exchanges)
        self.request = None

    def answer(self) -> Answer | LmevalError:
        """Return the response, or the error in its place, with the answered requests in its ``exchanges``."""
        if self._error is not None:
            return self._error
        assert self._answer is not None
        return self._answer

    def _take(self, answer: Answer, *, is_new: bool) -> None:
        request = self.request
        if self._follow_up is None:
            self._answer, self.request = answer, None
        elif isinstance(answer, LmevalError):
            self.fail(answer)
        elif isinstance(answer, Completion) and isinstance(request, Generate):
            exchange = Exchange(request, answer)
            self._exchanges.append(exchange)
            if is_new:
                self._note(exchange)
            self._follow(partial(self._follow_up, self._exchanges))
        else:
            self.fail(AdapterError("only completions can be followed up"))

    def _follow(self, step: Callable[[], Generate | Aside | None]) -> None:
        """Take ``step``, and those after it for which the user need not be asked."""
        self.request = None
        try:
            following = step()
            while isinstance(following, Aside):
                following = self._known_aside(following)
                if self.aside is not None:
                    return
            self.request = self._numbered(following)
        except LmevalError as error:
            self.fail(AdapterError(str(error)))
        except Exception as error:  # a task's own code
            self.fail(AdapterError(f"what to ask next raised {type(error).__name__}: {error}"))
        else:
            if self.request is None:
                self._end()

    def _known_aside(self, aside: Aside) -> Generate | Aside | None:
        """Return what follows an aside whose reply is known; else note that it is to be asked."""
        assert self.player is not None
        known = self.player.recalled(aside.request)
        if known is None:
            self.aside = aside
            return None
        self._asides.append(self.player.record(aside.request, Completion(known)))
        return aside.take(known)

    def _end(self) -> None:
        last = self._exchanges[-1].response
        exchanges, asides = tuple(self._exchanges), tuple(self._asides)
        self._answer = Completion(last.text, tool_calls=last.tool_calls, exchanges=exchanges, asides=asides)

    def _numbered(self, request: Generate | None) -> Generate | None:
        before = sum(each.request == request for each in self._exchanges)
        return replace(request, nth=before) if request is not None and before else request

    def _take_known(self) -> None:
        while self._follow_up is not None and isinstance(self.request, Generate):
            known = self._recall.take(self.request)
            if known is None:
                return
            self._take(known, is_new=False)


def begin(job: Job, begun: Mapping[int, Conversation]) -> None:
    """Give ``job`` the conversations that its requests have ``begun``, by number; the others are talks of one round."""
    job.talks = [begun.get(number) or Conversation(one) for number, one in enumerate(job.requests)]
    for number, answer in job.known.items():
        job.talks[number].take(answer)


class Rounds:
    """Asks the rounds of jobs with conversations; what goes on is worked out in a thread of its own.

    ``submit`` queues jobs with whatever transport there is.
    """

    def __init__(self, submit: Callable[[Sequence[Job]], None], inbox: Inbox) -> None:
        self._submit = submit
        self._inbox = inbox
        self._arrived: queue.SimpleQueue[tuple[Job, list[Conversation], Job] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._others: set[Engine] = set()

    def close(self) -> None:
        """Go on with nothing more."""
        self._arrived.put(None)

    def ask(self, job: Job) -> None:
        """Ask the next round of ``job``; deliver its answers after the last one."""
        open_now = [talk for talk in job.talks if talk.is_open]
        if not open_now:
            answers = [talk.answer() for talk in job.talks]
            self._inbox.deliver(job, answers)  # type: ignore[arg-type]  # BudgetSpent among them is raised by the engine
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lmeval-rounds", daemon=True)
            self._thread.start()
        if aside := [talk for talk in open_now if talk.aside is not None]:
            self._ask_aside(job, aside)
            return
        requests = [talk.request for talk in open_now if talk.request is not None]
        self._submit([Job(requests, on_answer=lambda asked: self._arrived.put((job, open_now, asked)))])

    def _ask_aside(self, job: Job, talks: list[Conversation]) -> None:
        """Have the users of ``talks`` asked; the others of the job wait."""
        player = talks[0].player
        assert player is not None
        self._others.add(player.engine)
        requests: list[Request] = [player.taken(talk.aside.request) for talk in talks if talk.aside is not None]
        player.engine.ask([Job(requests)], lambda asked: self._arrived.put((job, talks, asked)))

    def look_after(self) -> None:
        """Replace the transports of those who play users where they hang."""
        for engine in [*self._others]:
            engine.look_after()

    def _run(self) -> None:
        while (arrived := self._arrived.get()) is not None:
            job, talks, asked = arrived
            if asked.failure is not None:
                self._inbox.fail(job, asked.failure)
                continue
            answers = list(asked.answers or ())
            answers += [AdapterError("the run ended before the answer")] * (len(talks) - len(answers))
            for talk, answer in zip(talks, answers, strict=True):
                (talk.take if talk.aside is None else talk.take_aside)(answer)
            self.ask(job)
