"""Cut answers, but not their thoughts, at the stop texts of their requests.

Some adapters ignore stop texts or send only a few of them, and some servers also apply stop texts to thoughts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_lmeval.stops import AsSent, first_stop
from pytest_lmeval.types import Completion, Generate, Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.ask import Answer
    from pytest_lmeval.asking.attempts import Asked, Attempts

_COUNTED = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "latency_ms")


def with_stops(
    answers: Sequence[Answer], requests: Sequence[Request], ask: Callable[[list[Request]], list[Answer]]
) -> list[Answer]:
    """Cut the answers at stop texts; use ``ask`` to repeat requests whose answers consist only of thoughts."""
    found = [_cut(answer, request) for answer, request in zip(answers, requests, strict=True)]
    stopped = [number for number, answer in enumerate(found) if _is_stopped_thinking(answer, requests[number])]
    again = ask([_without_stops(requests[number]) for number in stopped]) if stopped else ()
    for number, answer in zip(stopped, again, strict=True):
        found[number] = _cut(_with_usage_of(found[number], answer), requests[number])
    return found


async def answer_with_stops(attempts: Attempts, asked: Asked, request: Generate) -> Answer:
    """Make one attempt at ``request``; return the answer, cut at the request's stop texts.

    If a stop text ends the model's thoughts, repeat the request without stop texts, and send no further stop texts.
    """
    if isinstance(request.stop, AsSent):
        return await attempts.send(asked, request)
    if not attempts.sends_stops:
        return _cut(await attempts.send(asked, _without_stops(request)), request)
    answer = await attempts.send(asked, request)
    if _is_stopped_thinking(answer, request) and not (asked.sent is not None and asked.sent.budget.is_passed):
        attempts.sends_stops = False
        answer = _with_usage_of(answer, await attempts.send(asked, _without_stops(request)))
    return _cut(answer, request)


def _is_stopped_thinking(answer: Answer, request: Request) -> bool:
    """Return True if the answer consists only of thoughts, probably because a stop text ended the thoughts."""
    is_empty = isinstance(answer, Completion) and answer.has_no_answer and answer.finish_reason != "length"
    return is_empty and bool(_stops_of(request))


def _stops_of(request: Request) -> tuple[str, ...]:
    return request.stop if isinstance(request, Generate) and not isinstance(request.stop, AsSent) else ()


def _without_stops(request: Request) -> Request:
    return replace(request, stop=()) if isinstance(request, Generate) else request


def _cut(answer: Answer, request: Request) -> Answer:
    end = first_stop(answer.text, _stops_of(request)) if isinstance(answer, Completion) else None
    if end is None or not isinstance(answer, Completion):
        return answer
    # The log-probabilities also cover the text that was cut off.
    return replace(answer, text=answer.text[:end], finish_reason="stop", logprobs=())


def _with_usage_of(first: Answer, answer: Answer) -> Answer:
    """Return ``answer`` with the total tokens, cost and time of both answers."""
    if not isinstance(first, Completion) or not isinstance(answer, Completion):
        return answer
    return replace(answer, **{name: _sum(getattr(first, name), getattr(answer, name)) for name in _COUNTED})


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other
