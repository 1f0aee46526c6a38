"""Send one batch of requests to an adapter of any kind, and convert failures into errors for the requests."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.adapters.facts import adapter_name, method
from pytest_lmeval.arguments import THINK_TAGS
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, BudgetSpent, TransientError
from pytest_lmeval.postprocess import split_thoughts
from pytest_lmeval.records.checked import checked
from pytest_lmeval.text import OURS, error_text, raised_in
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Request, Response

Answer = Response | AdapterError | BudgetSpent
# Finish reasons of an interrupted answer, whose text is incomplete.
_BROKEN_OFF = frozenset({"error", "abort"})


def ask(
    adapter: Any,
    requests: Sequence[Request],
    passthrough: tuple[type[BaseException], ...] = (),
    think_tags: tuple[str, str] | None = THINK_TAGS,
    cuts: bool = True,
) -> list[Answer]:
    """Return one answer per request, in order; replace an unusable answer with an AdapterError.

    ``passthrough`` are exceptions that stop the run, not just the batch. ``think_tags`` are the tags around thoughts at
    the beginning of an answer; if they are None, thoughts stay in the text. If ``cuts`` is True, answers end before
    stop texts.
    """
    answers: dict[int, Answer] = {}
    for kind, answer in ((Generate, _generate_method(adapter)), (LogLikelihood, method(adapter, "loglikelihood"))):
        numbers = [number for number, request in enumerate(requests) if isinstance(request, kind)]
        if numbers:
            batch = [requests[number] for number in numbers]
            answers.update(zip(numbers, _ask_kind(adapter, kind, answer, batch, passthrough), strict=True))
    found = [without_thoughts(answers[number], request, think_tags) for number, request in enumerate(requests)]
    if cuts and any(isinstance(request, Generate) and request.stop for request in requests):
        from pytest_lmeval.asking.stops import with_stops

        return with_stops(found, requests, lambda some: ask(adapter, some, passthrough, think_tags))
    return found


def _ask_kind(
    adapter: Any,
    kind: type[Request],
    answer: Callable[[list[Any]], Any] | None,
    batch: list[Request],
    passthrough: tuple[type[BaseException], ...],
) -> list[Answer]:
    if answer is None:
        missing = "loglikelihood" if kind is LogLikelihood else "any of complete, generate_requests, generate"
        return [AdapterError(f"adapter {adapter_name(adapter)} has no {missing}")] * len(batch)
    started = time.perf_counter()
    try:
        returned = answer(batch)
    except BaseException as error:
        found = unusable(adapter, error, passthrough)
        found.together = len(batch)
        return [found] * len(batch)
    each_ms = (time.perf_counter() - started) * 1000 / len(batch)
    return _check_returned(returned, batch, adapter, each_ms)


def unusable(adapter: Any, error: BaseException, passthrough: tuple[type[BaseException], ...] = ()) -> AdapterError:
    """Convert an exception that the adapter raised into an AdapterError for the requests.

    The function reraises exceptions that stop the run. A SystemExit, for example from a client library, does not stop
    the run.
    """
    if isinstance(error, (KeyboardInterrupt, GeneratorExit, *passthrough)):
        raise error
    if isinstance(error, AdapterError):
        return error
    from pytest_lmeval.asking.limits import Unreachable, hint_of, is_unreachable

    kind = AdapterTimeout if isinstance(error, TimeoutError) else AdapterError
    if kind is AdapterError and is_unreachable(error):
        kind = Unreachable
    place = raised_in(error, skips=lambda path: path.startswith(OURS))
    where = f" ({place})" if place else ""
    found = kind(f"adapter {adapter_name(adapter)} raised {error_text(error)}{where}{hint_of(error)}")
    # An attribute of exceptions raised by clients such as OpenAI's.
    status = getattr(error, "status_code", None)
    found.status = status if isinstance(status, int) and 400 <= status <= 599 else 0
    return found


def _generate_method(adapter: Any) -> Callable[[list[Any]], Any] | None:
    own = method(adapter, "generate_requests")
    if own is None and method(adapter, "generate") is not None:
        return lambda batch: _generate_texts(adapter, batch)
    return own


def _generate_texts(adapter: Any, batch: list[Generate]) -> Any:
    asked = [request for request in batch if not request.tools]
    if len(asked) == len(batch):
        return adapter.generate([request.text for request in batch])
    refusal = AdapterError(f"adapter {adapter_name(adapter)} accepts only text, no tools: it has only generate")
    answers = iter(adapter.generate([request.text for request in asked]) if asked else ())
    return [refusal if request.tools else next(answers) for request in batch]


def _check_returned(returned: Any, batch: Sequence[Request], adapter: Any, each_ms: float) -> list[Answer]:
    who = f"adapter {adapter_name(adapter)}"
    if isinstance(returned, str | bytes) or not isinstance(returned, Sequence):
        from pytest_lmeval.asking.limits import Unusable

        return [Unusable(f"{who} returned {_no_list(returned, len(batch))}")] * len(batch)
    if len(returned) != len(batch):
        wrong = f"{len(returned)} response(s) for {len(batch)} request(s)"
        return [AdapterError(f"{who} returned {wrong}")] * len(batch)
    return [check_answer(answer, request, adapter, each_ms) for answer, request in zip(returned, batch, strict=True)]


def _no_list(returned: object, requests: int) -> str:
    hint = ""
    if inspect.iscoroutine(returned):
        returned.close()  # otherwise Python warns that it was never awaited
        hint = "; an async adapter needs `async def complete(self, request)`"
    return f"{type(returned).__name__} for {requests} request(s); expected a list{hint}"


def check_answer(answer: Any, request: Request, adapter: Any, latency_ms: float) -> Answer:
    """Return ``answer`` with its latency; if it is not a response to ``request``, return an AdapterError."""
    if isinstance(answer, AdapterError):
        return answer
    kind = LogProb if isinstance(request, LogLikelihood) else Completion
    if isinstance(answer, str) and kind is Completion:
        return Completion(str(answer), latency_ms)
    if not isinstance(answer, kind):
        wanted = "text" if kind is Completion else "LogProb"
        return AdapterError(f"adapter {adapter_name(adapter)} returned {_kind_of(answer)}, expected {wanted}")
    try:
        found = checked(answer)
    except ValueError as error:
        return AdapterError(f"adapter {adapter_name(adapter)} returned a {kind.__name__} with {error}")
    if isinstance(found, Completion) and found.finish_reason in _BROKEN_OFF:
        beginning = f": it began with {found.text!r:.80}" if found.text else ""
        ended = f"the answer broke off (finish_reason {found.finish_reason}){beginning}"
        return TransientError(f"adapter {adapter_name(adapter)}: {ended}")
    return found if found.latency_ms is not None else replace(found, latency_ms=latency_ms)


def _kind_of(answer: Any) -> str:
    name = type(answer).__name__
    # Another package may have a class of the same name.
    is_another = name in ("Completion", "LogProb") and not isinstance(answer, Completion | LogProb)
    return f"{type(answer).__module__}.{name}" if is_another else name


def without_thoughts(answer: Answer, request: Request, tags: tuple[str, str] | None) -> Answer:
    """Move thoughts from the beginning of a completion's text to the field ``thoughts``.

    Every answer from a model, a judge or a recording passes through this function.
    """
    if not isinstance(answer, Completion):
        return answer
    if answer.thoughts and answer.text.isspace():
        return replace(answer, text="")
    if tags is None:
        return answer
    # The server has already separated the thoughts, so the text is the answer.
    opened = not answer.thoughts and _opens_thoughts(request, tags[0])
    # Fast path: almost no text contains a tag.
    if not opened and tags[1] not in answer.text and tags[0] not in answer.text:
        return answer
    found = split_thoughts(answer.text, tags, opened=opened)
    # The log-probabilities also cover the thoughts.
    return (
        answer
        if found is None
        else replace(answer, thoughts=_both(answer.thoughts, found[0]), text=found[1], logprobs=())
    )


def _both(reported: str, found: str) -> str:
    """Join the thoughts from the field and those from the text; some servers send the same thoughts in both."""
    parts = [reported, found] if reported.strip() != found.strip() else [reported]
    return "\n".join([part for part in parts if part.strip()]) or found


def _opens_thoughts(request: Request, tag: str) -> bool:
    prompt = request.prompt if isinstance(request, Generate) else ""
    if isinstance(prompt, str) or not prompt or prompt[-1].role != "assistant":
        return False
    return prompt[-1].content.rstrip().endswith(tag)


def with_attempts(answer: Answer, attempts: int) -> Answer:
    """Add the number of attempts to ``answer``, and to the message of an error."""
    if isinstance(answer, Completion | LogProb):
        return answer if attempts == 1 else replace(answer, retries=attempts - 1)
    if isinstance(answer, AdapterDown | BudgetSpent):
        return answer
    kind = AdapterTimeout if isinstance(answer, AdapterTimeout) else AdapterError
    error = kind(f"{answer} ({attempts} attempt{'s' if attempts > 1 else ''})")
    error.retries = attempts - 1
    error.status, error.said = answer.status, dict(answer.said)
    return error
