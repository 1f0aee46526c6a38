"""Run conversations, in which a response takes several requests, and later requests depend on earlier answers.

A round consists of requests from one job that the run can send together. For a batch adapter, a round is the next turn
of all examples in the batch. For an async adapter, each job has one example, so a round is the next turn of that
example.
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


class UserModel(Protocol):
    """The model that simulates a user, with its recorded replies."""

    @property
    def engine(self) -> Engine: ...

    def taken(self, request: Generate) -> Generate:
        """Return the request without the options that the model rejects."""

    def recalled(self, request: Generate) -> str | None:
        """Return the model's reply to this request in an earlier run, or None."""

    def record(self, request: Generate, reply: Completion) -> Mapping[str, object]:
        """Convert a reply into the format of a result's details."""


class Conversation:
    """A response in progress, with its exchanges so far and the next ``request``.

    ``request`` is None at the end, and while ``aside`` waits for a reply from ``user``, the model that simulates the
    user. The run does not send requests whose answers ``recall`` knows; it calls ``note`` with every other exchange.
    Without ``follow_up``, the response takes a single request.
    """

    def __init__(
        self,
        first: Request,
        follow_up: FollowUp | None = None,
        recall: Recall | None = None,
        note: Callable[[Exchange], None] = lambda exchange: None,
        user: UserModel | None = None,
    ) -> None:
        self.request: Request | None = first
        self.aside: Aside | None = None
        self.user = user
        self._asides: list[Mapping[str, object]] = []
        self._follow_up = follow_up
        self._recall = recall or Recall()
        self._note = note
        self._exchanges: list[Exchange] = []
        self._answer: Answer | None = None
        self._error: LmevalError | None = None
        if user is not None:
            opening: Any = follow_up
            self._follow(lambda: opening.opening(first))
        self._take_known()

    @property
    def is_open(self) -> bool:
        """True if the run must still send a request or an aside."""
        return self.request is not None or self.aside is not None

    def take_aside(self, answer: Answer) -> None:
        """Continue the conversation with the simulated user's reply."""
        aside, self.aside = self.aside, None
        assert aside is not None
        assert self.user is not None
        if isinstance(answer, Completion):
            self._asides.append(self.user.record(aside.request, answer))
            self._follow(lambda: aside.take(answer.text))
            self._take_known()
        else:
            self.fail(
                answer
                if isinstance(answer, LmevalError)
                else AdapterError("a simulated user must reply with a Completion")
            )

    def take(self, answer: Answer) -> None:
        """Continue the conversation with the answer to ``request``."""
        self._take(answer, is_new=True)
        self._take_known()

    def fail(self, error: LmevalError) -> None:
        """End the conversation with an error."""
        # Several requests may share one error, but each has its own exchanges.
        self._error = copy.copy(error)
        self._error.exchanges = tuple(self._exchanges)
        self.request = None

    def answer(self) -> Answer | LmevalError:
        """Return the response, or the error that ended the conversation, with its ``exchanges`` before the error."""
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
            self.fail(AdapterError("only completions can have follow-ups"))

    def _follow(self, step: Callable[[], Generate | Aside | None]) -> None:
        """Run ``step``, and then further steps as long as the simulated user's replies are known."""
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
        except Exception as error:  # raised by a task's own code
            self.fail(AdapterError(f"the follow-up raised {type(error).__name__}: {error}"))
        else:
            if self.request is None:
                self._end()

    def _known_aside(self, aside: Aside) -> Generate | Aside | None:
        """Return the next step if the user's reply is known; otherwise, set ``aside`` and return None."""
        assert self.user is not None
        known = self.user.recalled(aside.request)
        if known is None:
            self.aside = aside
            return None
        self._asides.append(self.user.record(aside.request, Completion(known)))
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
    """Assign conversations to requests of ``job`` by number; turn other requests into conversations of one round."""
    job.talks = [begun.get(number) or Conversation(one) for number, one in enumerate(job.requests)]
    for number, answer in job.known.items():
        job.talks[number].take(answer)


class Rounds:
    """Runs the rounds of jobs with conversations; a separate thread computes the next round.

    ``submit`` sends jobs to a transport.
    """

    def __init__(self, submit: Callable[[Sequence[Job]], None], inbox: Inbox) -> None:
        self._submit = submit
        self._inbox = inbox
        self._arrived: queue.SimpleQueue[tuple[Job, list[Conversation], Job] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._others: set[Engine] = set()

    def close(self) -> None:
        """Stop the thread after the current round."""
        self._arrived.put(None)

    def ask(self, job: Job) -> None:
        """Send the next round of ``job``; after the last round, deliver the answers."""
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
        user = talks[0].user
        assert user is not None
        self._others.add(user.engine)
        requests: list[Request] = [user.taken(talk.aside.request) for talk in talks if talk.aside is not None]
        user.engine.ask([Job(requests)], lambda asked: self._arrived.put((job, talks, asked)))

    def look_after(self) -> None:
        """Replace each transport of a simulated user that hangs."""
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
