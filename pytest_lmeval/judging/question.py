"""Ask a judge: read its reply, and ask once more if it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.judging.verdicts import Verdict
from pytest_lmeval.types import COST_UNKNOWN, Completion, Generate, Message

UNREAD = "the judge's reply is no"
"""How the error begins, behind who asked, of a reply that cannot be read."""
NO_JUDGE = "no judge: say which model judges with --lm-judge=SPEC"
_USAGE = ("prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True)
class Question:
    """What ``asker``, a scorer or a metric, asks a judge: the ``opening``, for a ``verdict``.

    ``request`` makes a request of messages, ``prompt_hash`` identifies the prompt.
    """

    asker: str
    verdict: Verdict
    opening: tuple[Message, ...]
    make: Callable[..., Generate]
    prompt_hash: str = ""

    def request(self, messages: tuple[Message, ...]) -> Generate:
        """Return the request with these messages."""
        return self.make(messages, options=self.verdict.options)

    @property
    def first(self) -> Generate:
        """The request that is asked in any case."""
        return self.request(self.opening)


@dataclass(frozen=True, slots=True)
class Consultation:
    """What a judge said: ``verdict`` is None where nothing could be read, ``unread`` then says so.

    ``entries`` are for the details of a result: by the keys in them a run that is completed later finds the answers
    again. ``usage`` is what they took.
    """

    verdict: Any
    unread: str
    entries: Sequence[Mapping[str, Any]]
    usage: Mapping[str, float]


def judge_of(judges: Any, spec: str) -> Any:
    """Return the judge that ``spec`` names, the run's for ""; raise ScoringError without any."""
    if not judges:
        raise ScoringError(NO_JUDGE)
    return judges.model(spec) if spec else judges


def dialogue(question: Question) -> Generator[tuple[Message, ...], str, tuple[Any, str]]:
    """Yield what to ask, take the reply, and return what was read in it, and "".

    What cannot be read is asked for once more. Return None, and a sentence that says so, where nothing can be read.
    """
    verdict = question.verdict
    reply = yield question.opening
    found = verdict.read(reply)
    if found is None:
        again = (*question.opening, Message("assistant", reply), Message("user", verdict.repair))
        reply = yield again
        found = verdict.read(reply)
    return found, "" if found is not None else f"{UNREAD} {verdict.wanted}: {reply[-200:]!r}"


def consult(judge: Any, question: Question) -> Consultation:
    """Ask ``judge``, once more where its reply cannot be read; raise AdapterError where it does not answer."""
    replies: list[tuple[Generate, Completion]] = []
    talk = dialogue(question)
    try:
        asked = next(talk)
        while True:
            replies.append(_ask(judge, question.request(asked)))
            asked = talk.send(replies[-1][1].text)
    except StopIteration as end:
        verdict, unread = end.value
    completions = [completion for _, completion in replies]
    entries, adapter_key = [], str(getattr(judge, "adapter_key", ""))
    for number, (request, completion) in enumerate(replies):
        key = judge.key(request)
        said = verdict if number == len(replies) - 1 else None
        entries.append(
            {
                "scorer": question.asker,
                "judge": str(getattr(judge, "name", "")),
                "prompt_hash": question.prompt_hash,
                "output": completion.text,
                **question.verdict.recorded(said),
                "repaired": number > 0,
                **({"key": key} if key else {}),
                **({"adapter_key": adapter_key} if adapter_key else {}),
            }
        )
    return Consultation(verdict, unread, entries, total(map(usage_of, completions)))


def total(usages: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of each amount, over those who know it."""
    summed: dict[str, float] = {}
    for usage in usages:
        for name, amount in usage.items():
            summed[name] = summed.get(name, 0) + amount
    return summed


def usage_of(completion: Completion) -> dict[str, float]:
    """Return what a reply took, as far as it is known."""
    amounts = {name: getattr(completion, name) for name in _USAGE}
    known = {name: amount for name, amount in amounts.items() if amount is not None}
    return known if completion.cached or "cost" in known else {**known, COST_UNKNOWN: 1}


def _ask(judge: Any, request: Generate) -> tuple[Generate, Completion]:
    (completion,) = judge.ask([request])
    return request, completion
