"""Ask a judge, and read its reply; if the reply cannot be read, ask a second time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.judging.verdicts import Verdict
from pytest_lmeval.numbers import total_usage
from pytest_lmeval.types import COST_UNKNOWN, Completion, Generate, Message

UNREAD = "the judge's reply is no"
"""The text that follows the asker in the error for a reply that cannot be read."""
NO_JUDGE = "no judge: name the model that judges with --lm-judge=SPEC"
_USAGE = ("prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a judge: the ``opening`` messages ask for a ``verdict``.

    ``asker`` is a scorer or metric. ``make`` makes a request from messages, and ``prompt_hash`` identifies the prompt.
    """

    asker: str
    verdict: Verdict
    opening: tuple[Message, ...]
    make: Callable[..., Generate]
    prompt_hash: str = ""

    def request(self, messages: tuple[Message, ...]) -> Generate:
        """Return the request with ``messages``."""
        return self.make(messages, options=self.verdict.options)

    @property
    def first(self) -> Generate:
        """The first request, which is always sent."""
        return self.request(self.opening)


@dataclass(frozen=True, slots=True)
class Consultation:
    """A judge's replies; if they could not be read, ``verdict`` is None and ``unread`` is the error.

    ``entries`` become part of a result's details, and a resumed run finds the replies by the keys in the entries.
    ``usage`` counts the tokens and the cost of the replies.
    """

    verdict: Any
    unread: str
    entries: Sequence[Mapping[str, Any]]
    usage: Mapping[str, float]


def judge_of(judges: Any, spec: str) -> Any:
    """Return the judge that ``spec`` names, or the run's judge for ""; raise ScoringError if there is no judge."""
    if not judges:
        raise ScoringError(NO_JUDGE)
    return judges.model(spec) if spec else judges


def dialogue(question: Question) -> Generator[tuple[Message, ...], str, tuple[Any, str]]:
    """Yield the messages to send, receive the reply, and return its verdict and "".

    If the reply cannot be read, yield messages that ask for the reply again. If the second reply cannot be read either,
    return None and the error.
    """
    verdict = question.verdict
    reply = yield question.opening
    found = verdict.read(reply)
    if found is None:
        reply = yield (*question.opening, Message("assistant", reply), Message("user", verdict.repair))
        found = verdict.read(reply)
    return found, "" if found is not None else f"{UNREAD} {verdict.wanted}: {reply[-200:]!r}"


def consult(judge: Any, question: Question) -> Consultation:
    """Ask ``judge``, a second time if its reply cannot be read; raise AdapterError if the judge does not answer."""
    replies: list[tuple[Generate, Completion]] = []
    talk = dialogue(question)
    try:
        messages = next(talk)
        while True:
            request = question.request(messages)
            (completion,) = judge.ask([request])
            replies.append((request, completion))
            messages = talk.send(completion.text)
    except StopIteration as end:
        verdict, unread = end.value
    entries, adapter_key = [], str(getattr(judge, "adapter_key", ""))
    for number, (request, completion) in enumerate(replies, 1):
        key = judge.key(request)
        entries.append(
            {
                "scorer": question.asker,
                "judge": str(getattr(judge, "name", "")),
                "prompt_hash": question.prompt_hash,
                "output": completion.text,
                **question.verdict.recorded(verdict if number == len(replies) else None),
                "repaired": number > 1,
                **({"key": key} if key else {}),
                **({"adapter_key": adapter_key} if adapter_key else {}),
            }
        )
    return Consultation(verdict, unread, entries, total_usage(usage_of(completion) for _, completion in replies))


def usage_of(completion: Completion) -> dict[str, float]:
    """Return a reply's known tokens and cost."""
    amounts = {name: getattr(completion, name) for name in _USAGE}
    known = {name: amount for name, amount in amounts.items() if amount is not None}
    return known if completion.cached or "cost" in known else {**known, COST_UNKNOWN: 1}
