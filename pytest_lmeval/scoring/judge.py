"""Query models that judge another model's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.adapters.protocol import without_best_effort
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.errors import ScoringError
from pytest_lmeval.hashes import judge_key
from pytest_lmeval.records.answers import is_of
from pytest_lmeval.types import Completion, ExampleResult, Generate

Known = Mapping[str, Mapping[str, str]]
"""The judges' replies in the run to resume, by :func:`judge_key` and ``adapter_key``."""


@dataclass(eq=False)
class NamedJudges:
    """Judges that tasks name; ``open_model`` creates each judge and its adapter on first use.

    If the run has no judge, this object replaces it, and any request raises an error that explains how to name a judge.
    """

    open_model: Callable[[str], Judge] | None
    name: str = field(default="", init=False)
    adapter_key: str = field(default="", init=False)
    _models: dict[str, Judge] = field(default_factory=dict, init=False, repr=False)

    def model(self, spec: str) -> Judge:
        """Return the judge with the adapter ``spec``."""
        if self.open_model is None:
            raise ScoringError(f"judge model {spec!r}: a judge that a task named names no others")
        if spec not in self._models:
            self._models[spec] = self.open_model(spec)
        return self._models[spec]

    def key(self, request: Generate) -> str:
        """Return the key under which a result's details record the judge's reply to ``request``."""
        return judge_key(self.name, request)

    def ask(self, requests: Sequence[Generate]) -> list[Completion]:
        """Raise ScoringError, because the run has no judge."""
        raise ScoringError("no judge: name a model with --lm-judge SPEC, or give the scorer a model_key")

    def send(self, requests: Sequence[Generate]) -> None:
        """Do nothing, because the run has no judge."""


class Judge(NamedJudges):
    """A judge that sends requests to its model, early if possible.

    The judge does not send requests whose replies are ``known``. ``adapter_key`` distinguishes judges with the same
    name.
    """

    def __init__(self, engine: Engine, known: Known, open_model: Callable[[str], Judge] | None = None) -> None:
        super().__init__(open_model)
        self.engine = engine
        self.name = adapter_name(engine.adapter)
        from pytest_lmeval.adapters.identity import identity_of

        self.adapter_key = identity_of(engine.adapter).key[:16]
        self._known = known
        self._facts = AdapterFacts.of(engine.adapter)

    def ask(self, requests: Sequence[Generate]) -> list[Completion]:
        """Return one completion per request; raise the first failed request's AdapterError."""
        wanted = {self._asked_as(request): request for request in requests}
        self._send(wanted)
        answers = {key: self._answer(key, wanted) for key in wanted}
        return [answers[self._asked_as(request)] for request in requests]

    def send(self, requests: Sequence[Generate]) -> None:
        """Send the requests early, and keep the answers for :meth:`ask`."""
        self._send({self._asked_as(request): request for request in requests})

    def _asked_as(self, request: Generate) -> str:
        key = self.key(request)
        # Examples may have different recorded replies to the same request.
        return f"{key} {request.task} {request.id}" if self._facts.answers_by_example else key

    def _send(self, wanted: Mapping[str, Generate]) -> None:
        new = [key for key in wanted if self._recalled(key) is None]
        if new:
            self.engine.send(new, lambda key: (self.taken(wanted[key]),))

    def _answer(self, key: str, wanted: Mapping[str, Generate]) -> Completion:
        if (recalled := self._recalled(key)) is not None:
            return Completion(recalled)
        (answer,) = self.engine.respond(key, lambda other: (self.taken(wanted[other]),))
        assert isinstance(answer, Completion)
        return answer

    def recalled(self, request: Generate) -> str | None:
        """Return a simulated user's reply to ``request`` in an earlier run, or None."""
        return self._recalled(f"{self.key(request)} {request.task} {request.id}")

    def record(self, request: Generate, reply: Completion) -> Mapping[str, Any]:
        """Return a simulated user's reply in the format of a result's details."""
        from pytest_lmeval.judging.question import usage_of

        usage = usage_of(reply)
        entry = {"user": self.name, "output": reply.text, "key": self.key(request), "adapter_key": self.adapter_key}
        return {**entry, "usage": usage} if usage else entry

    def taken(self, request: Generate) -> Generate:
        """Return a request without the best-effort options that the adapter rejects."""
        return without_best_effort(request, self._facts.request_options)

    def _recalled(self, key: str) -> str | None:
        replies = self._known.get(key)
        return next((reply for by, reply in replies.items() if is_of(by, self.adapter_key)), None) if replies else None


def known_answers(results: Iterable[ExampleResult]) -> Known:
    """Return the judges' replies in the details of ``results``, for a run that resumes an earlier one."""
    from pytest_lmeval.records.recording import judge_entries

    known: dict[str, dict[str, str]] = {}
    for result in results:
        for entry in judge_entries(result.details):
            # Many examples send the same first request to a simulated user, but get different replies.
            key = f"{entry['key']} {result.task} {result.id}" if "user" in entry else entry["key"]
            known.setdefault(key, {})[str(entry.get("adapter_key", ""))] = entry["output"]
    return known
