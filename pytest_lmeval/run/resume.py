"""Read an earlier run's ledger, and reuse its answers in a run that resumes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.asking.ask import without_thoughts
from pytest_lmeval.errors import LmevalError, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.leaderboard.details import confidences, is_function
from pytest_lmeval.records.answers import AnswersByExample, KnownAnswers, is_of, without
from pytest_lmeval.records.service import NONE_OUTSIDE, OUTSIDE, Outside
from pytest_lmeval.types import COST_UNKNOWN, Completion, ExampleResult, Generate, Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.records.answers import Recall
    from pytest_lmeval.records.tool_calls import CallsByExample, KnownCalls
    from pytest_lmeval.run.answers import Model
    from pytest_lmeval.run.plan import Unit


class Query(NamedTuple):
    """The request hash, model and number of repeats that must match for the run to reuse a response.

    ``key`` distinguishes a project's own models that have the same name.
    """

    request: str
    adapter: str
    repeats: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class HeldResults:
    """The last result for each (task, id) in a ledger, from runs with the current settings.

    ``damaged`` counts unreadable lines; usually, only the last line from a killed process is unreadable. ``keys`` holds
    each (task, id) with a result in the ledger, including results of runs with other settings. ``started`` and
    ``complete`` describe the last run in the ledger. ``has_other_settings`` means that no run in the ledger had the
    current settings. ``nothing`` is the reason why there is nothing to resume, or "". ``journal`` holds the answers for
    examples that may still lack a result, by judge; the model's key is "". ``calls`` holds these
    examples' tool calls that must run only once. ``outside`` holds the requests that belong to no example.
    """

    results: Mapping[tuple[str, str], ExampleResult] = field(default_factory=dict)
    damaged: int = 0
    keys: frozenset[tuple[str, str]] = frozenset()
    started: str = ""
    complete: bool = False
    has_other_settings: bool = False
    nothing: str = ""
    journal: Mapping[str, AnswersByExample] = field(default_factory=dict)
    outside: Outside = NONE_OUTSIDE
    calls: CallsByExample = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        """True if the run continues the ledger; False if the ledger is complete but has other settings."""
        return not (self.complete and self.has_other_settings)

    @property
    def cost(self) -> float:
        """The cost of all recorded answers, including answers for examples without a result."""
        costs = [result.usage.get("cost", 0.0) for result in self.results.values()]
        costs.append(self.outside.usage.get("cost", 0.0))
        return math.fsum([*costs, *(record.get("cost", 0.0) for record in self._unfinished())])

    @property
    def unfinished(self) -> int:
        """The number of recorded answers for examples without a result."""
        return len(self._unfinished())

    def responses(self, task: str, example: str, query: Query) -> Sequence[Response] | None:
        """Return an example's responses if they answer the current requests, otherwise None."""
        held = self.results.get((task, example))
        repeats = 0 if held is None else len(held.outputs or held.predictions)
        if held is None or is_function(held) or held.exchanges or not is_of(held.adapter_key, query.key):
            return None
        if Query(held.request, held.adapter, repeats) != query._replace(key=""):
            return None
        if not held.outputs:
            return _log_probs(held, repeats)
        first, *others = _completions(held, repeats)
        if "cost" in held.usage:
            unknown = int(held.usage.get(COST_UNKNOWN, 0))
            others[unknown:] = [replace(each, cost=0.0) for each in others[unknown:]]
        # The ledger has only the sums of the responses' usage: attribute them to the first response.
        counted = replace(
            first,
            prompt_tokens=_count(held, "prompt_tokens"),
            completion_tokens=_count(held, "completion_tokens"),
            reasoning_tokens=_count(held, "reasoning_tokens"),
            cost=held.usage.get("cost"),
        )
        return [counted, *others]

    def known(self, name: str, key: str) -> KnownAnswers:
        """Return answers for examples with several requests, from the model with ``name`` and ``key``."""
        results = [each for each in self.results.values() if each.adapter == name and is_of(each.adapter_key, key)]
        is_same = self.outside.adapter == name and is_of(self.outside.adapter_key, key)
        return KnownAnswers(results, "", self.journal, key, self.outside.answers if is_same else ())

    def judged(self, name: str, key: str) -> KnownAnswers:
        """Return answers to eval functions, from the judge with ``name`` and ``key``."""
        return KnownAnswers(self.results.values(), name, self.journal, key)

    def known_calls(self, task: str, example: str) -> KnownCalls:
        """Return an example's recorded tool calls."""
        from pytest_lmeval.records.tool_calls import known_calls

        return known_calls(self.calls, self.results.get((task, example)), (task, example))

    def _unfinished(self) -> list[Mapping[str, Any]]:
        by_example = (item for answers in self.journal.values() for item in answers.items())
        known = self.outside.answers
        left = [(key, records) for key, records in by_example if key not in self.results]
        return [each for key, records in left for each in (without(records, known) if key == OUTSIDE else records)]


class Recorded:
    """Finds an earlier run's answers to a unit's requests."""

    def __init__(self, held: HeldResults, model: Model, repeats: int, think_tags: tuple[str, str] | None) -> None:
        self._held = held
        self._model = model
        self._repeats = repeats
        self._think_tags = think_tags

    def responses(self, unit: Unit, requests: Sequence[Request]) -> Sequence[Response] | None:
        """Return the recorded answers to a unit's requests, or None."""
        repeats = unit.example.policy.repeats or self._repeats
        query = Query(request_hash(requests[: len(requests) // repeats]), self._model.name, repeats, self._model.key)
        held = self._held.responses(unit.task.name, unit.example.id, query)
        if held is None:
            return self._unscored(unit, requests)
        # Earlier versions recorded thoughts as part of the text, so separate them here.
        pairs = zip(held, cycle(requests), strict=False)
        taken = [without_thoughts(one, request, self._think_tags) for one, request in pairs]
        return [one for one in taken if not isinstance(one, LmevalError)]

    def _unscored(self, unit: Unit, requests: Sequence[Request]) -> Sequence[Response] | None:
        """Return the answers that waited for scoring when the earlier run ended, or None if an answer is missing."""
        if (unit.task.name, unit.example.id) not in self._held.journal.get("", ()):
            return None
        if unit.task.conversation(unit.example) is not None:
            return None
        recall = self.of(unit)
        taken = [recall.take(request) for request in requests if isinstance(request, Generate)]
        found = [answer for answer in taken if answer is not None]
        return found if len(found) == len(requests) else None

    def of(self, unit: Unit) -> Recall:
        """Return the recorded answers for an example with several requests."""
        return self._known.of(unit.task.name, unit.example.id)

    @cached_property
    def _known(self) -> KnownAnswers:
        return self._held.known(self._model.name, self._model.key)


def read_held(path: Path, asking: str) -> HeldResults:
    """Return the results in the ledger at ``path`` from runs with the fingerprint ``asking``, if the file exists.

    Omit results without an answer, so that the run requests these examples again. Raise UsageError if the file is not a
    ledger.
    """
    from pytest_lmeval.records.runfile import ledger_at

    if not path.exists():
        return HeldResults(nothing=f"there is no {path.parent.name}/{path.name}")
    ledger = ledger_at(path)
    if ledger is None:
        raise UsageError(f"{path}: not a ledger, it has no header; run without --lm-resume to start a new one")
    same = [run for run in ledger.runs if run.header.get("asking") == asking]
    results = {key: result for run in same for key, result in run.results.items()}
    # An output can be reused even if its scoring failed.
    answered = {key: result for key, result in results.items() if _is_answered(result)}
    last = ledger.runs[-1] if ledger.runs else None
    try:
        outside = Outside.last_of(run.run for run in same)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    return HeldResults(
        answered,
        ledger.damaged,
        frozenset(key for run in ledger.runs for key in run.results),
        started=str(last.header.get("timestamp", "")) if last else "",
        complete=last is not None and last.is_complete,
        has_other_settings=not same,
        outside=outside,
    )


def _log_probs(held: ExampleResult, repeats: int) -> Sequence[Response]:
    from pytest_lmeval.formats.loglikelihood import log_probs_of

    # All repeats have the same log-probabilities as the first repeat.
    details = held.details["repeats"][0] if repeats > 1 else held.details
    found = [one for _ in range(repeats) for one in log_probs_of(details)]
    times = held.request_ms if len(held.request_ms) == len(found) else [held.latency_ms] * len(found)
    return [replace(one, latency_ms=time) for one, time in zip(found, times, strict=True)]


def _is_answered(result: ExampleResult) -> bool:
    from pytest_lmeval.formats.loglikelihood import log_probs_of

    return bool(result.outputs or result.exchanges or log_probs_of(result.details) or is_function(result))


def _completions(held: ExampleResult, repeats: int) -> list[Completion]:
    times = held.request_ms if len(held.request_ms) == repeats else [held.latency_ms] * repeats
    firsts = held.ttft_ms if len(held.ttft_ms) == repeats else [None] * repeats
    thoughts = held.thoughts if len(held.thoughts) == repeats else [""] * repeats
    # The ledger counts each server's answers, but does not record which repeats each server answered.
    counted = [name for name, count in held.served_by.items() for _ in range(count)]
    served = counted if len(counted) == repeats else [""] * repeats
    found = [
        Completion.of_output(
            text, latency_ms=ms, ttft_ms=first, confidence=confidence, thoughts=thought, served_by=name
        )
        for text, ms, first, confidence, thought, name in zip(
            held.outputs, times, firsts, confidences(held), thoughts, served, strict=True
        )
    ]
    if held.cut_off and not any(each.is_cut_off for each in found):
        found[0] = replace(found[0], finish_reason="length")
    return found


def _count(result: ExampleResult, name: str) -> int | None:
    amount = result.usage.get(name)
    return None if amount is None else int(amount)
