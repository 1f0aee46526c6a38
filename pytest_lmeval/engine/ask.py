"""One batch of requests to one batch of responses, whatever kind of adapter answers and however it misbehaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.errors import AdapterError, AdapterTimeout
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Request, Response

__all__ = ["Answer", "ask"]

Answer = Response | AdapterError


def ask(adapter: Any, requests: Sequence[Request], passthrough: tuple[type[BaseException], ...] = ()) -> list[Answer]:
    """Return one answer per request, in order; whatever cannot be used is an AdapterError in its place.

    ``passthrough`` are the exceptions that mean to stop the run, not the batch.
    """
    answers: dict[int, Answer] = {}
    for kind, method in (
        (Generate, _generate_method(adapter)),
        (LogLikelihood, getattr(adapter, "loglikelihood", None)),
    ):
        numbers = [number for number, request in enumerate(requests) if isinstance(request, kind)]
        if numbers:
            batch = [requests[number] for number in numbers]
            answers.update(zip(numbers, _ask_kind(adapter, kind, method, batch, passthrough), strict=True))
    return [answers[number] for number in range(len(requests))]


def _ask_kind(
    adapter: Any,
    kind: type[Request],
    method: Callable[[list[Any]], Any] | None,
    batch: list[Request],
    passthrough: tuple[type[BaseException], ...],
) -> list[Answer]:
    name = adapter_name(adapter)
    if method is None:
        missing = "loglikelihood" if kind is LogLikelihood else "any of complete, generate_requests, generate"
        return [AdapterError(f"adapter {name} has no {missing}")] * len(batch)
    started = time.perf_counter()
    try:
        returned = method(batch)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except passthrough:
        raise
    except AdapterError as error:
        return [error] * len(batch)
    except TimeoutError as error:
        return [AdapterTimeout(f"adapter {name}: {_describe(error)}")] * len(batch)
    except BaseException as error:  # SystemExit out of a client library ends its batch, not the run
        return [AdapterError(f"adapter {name} raised {_describe(error)}")] * len(batch)
    each_ms = (time.perf_counter() - started) * 1000 / len(batch)
    return _check_returned(returned, batch, name, each_ms)


def _generate_method(adapter: Any) -> Callable[[list[Any]], Any] | None:
    if callable(getattr(adapter, "complete", None)):
        return lambda batch: _complete_all(adapter, batch)
    if callable(getattr(adapter, "generate_requests", None)):
        return lambda batch: adapter.generate_requests(batch)
    if callable(getattr(adapter, "generate", None)):
        return lambda batch: adapter.generate([request.text for request in batch])
    return None


def _complete_all(adapter: Any, batch: list[Generate]) -> list[Any]:
    import asyncio

    async def gather() -> list[Any]:
        return await asyncio.gather(*(_complete_one(adapter, request) for request in batch))

    return asyncio.run(gather())


async def _complete_one(adapter: Any, request: Generate) -> Any:
    started = time.perf_counter()
    try:
        completion = await adapter.complete(request)
    except AdapterError as error:
        return error
    except TimeoutError as error:
        return AdapterTimeout(f"adapter {adapter_name(adapter)}: {_describe(error)}")
    except Exception as error:
        return AdapterError(f"adapter {adapter_name(adapter)} raised {_describe(error)}")
    if isinstance(completion, Completion) and completion.latency_ms is None:
        return replace(completion, latency_ms=(time.perf_counter() - started) * 1000)
    return completion


def _check_returned(returned: Any, batch: Sequence[Request], name: str, each_ms: float) -> list[Answer]:
    if isinstance(returned, str | bytes) or not isinstance(returned, Sequence):
        wrong = f"adapter {name} returned {type(returned).__name__} for {len(batch)} request(s); expected a list"
        return [AdapterError(wrong)] * len(batch)
    if len(returned) != len(batch):
        wrong = f"adapter {name} returned {len(returned)} response(s) for {len(batch)} request(s)"
        return [AdapterError(wrong)] * len(batch)
    return [_check_one(answer, request, name, each_ms) for answer, request in zip(returned, batch, strict=True)]


def _check_one(answer: Any, request: Request, name: str, each_ms: float) -> Answer:
    if isinstance(answer, AdapterError):
        return answer
    if isinstance(request, LogLikelihood):
        if isinstance(answer, LogProb):
            return answer if answer.latency_ms is not None else replace(answer, latency_ms=each_ms)
        return AdapterError(f"adapter {name} returned {type(answer).__name__}, expected LogProb")
    if isinstance(answer, str):
        return Completion(str(answer), each_ms)
    if isinstance(answer, Completion) and isinstance(answer.text, str):
        return answer if answer.latency_ms is not None else replace(answer, latency_ms=each_ms)
    got = f"Completion of {type(answer.text).__name__}" if isinstance(answer, Completion) else type(answer).__name__
    return AdapterError(f"adapter {name} returned {got}, expected text")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
