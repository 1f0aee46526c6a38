"""Query a judge for ``lm.judge`` and ``lm.grade``, and convert its replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.functions.asker import Asker, Asking, answered
from pytest_lmeval.functions.example import ExampleState, open_step, place
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.judging import question as judged
from pytest_lmeval.judging.graded import about
from pytest_lmeval.judging.prompt import judge_prompt
from pytest_lmeval.judging.rubric import Rubric
from pytest_lmeval.judging.verdicts import one_of, one_of_with_reason
from pytest_lmeval.leaderboard.explained import RUBRIC_HEAD
from pytest_lmeval.types import Generate, Message


@dataclass(frozen=True, slots=True)
class _Opinion:
    """A judge's verdict and its reason; raises an error when used as a condition, because it would always be true."""

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError(f"{self!r:.200} is neither true nor false: compare its {next(iter(self.__slots__))}")


@dataclass(frozen=True, slots=True)
class Grade(_Opinion):
    """A judge's grade of a text by a rubric, in [0, 1], and the reason."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Judgment(_Opinion):
    """A judge's label for a text, and the reason."""

    label: str
    reason: str


class Label(str):
    """A judge's label for a text; raises an error when used as a condition: "no" is as true as "yes"."""

    __slots__ = ()

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError(f"the label {str(self)!r:.200} is neither true nor false: compare it with a label")


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question for a judge, from ``method`` of ``lm``; ``of`` creates it from a function that builds requests.

    ``result`` converts the verdict for the caller, ``shown`` for the step.
    """

    method: str
    of: Callable[[Callable[..., Generate]], judged.Question]
    result: Callable[[Any], Any]
    shown: Callable[[Any], Mapping[str, Any]] | None = None


def labelling(question: str, text: str, labels: Sequence[str], *, reason: bool) -> Inquiry:
    """Return the inquiry for one of ``labels``; raise ScoringError if the labels are not distinct."""
    if isinstance(labels, str) or len(labels) < 2 or len(set(labels)) < len(labels):
        raise ScoringError(f"lm.judge: labels: expected two different texts or more, got {labels!r:.80}")
    verdict = one_of_with_reason(labels) if reason else one_of(labels)
    opening = (Message("user", judge_prompt(question, {"text": text}, verdict.form)),)
    made = partial(judged.Question, "lm.judge", verdict, opening)
    if not reason:
        return Inquiry("lm.judge", made, Label)
    return Inquiry("lm.judge", made, lambda found: Judgment(*found), verdict.recorded)


def grading(rubric: Any, text: str, reference: str, levels: Any, human_label: Any) -> Inquiry:
    """Return the inquiry for a level on a rubric; raise ScoringError for an unusable rubric."""
    try:
        by = Rubric.of(rubric, levels, prefix="")
    except RecordRefused as refused:
        raise ScoringError(f"lm.grade: {refused.field}: {refused.detail}") from None

    def shown(found: Any) -> Mapping[str, Any]:
        said = {"score": found[0], "reason": found[1], "rubric": by.text[:RUBRIC_HEAD], "prompt_hash": by.sha256}
        return said if human_label is None else {**said, "human_label": human_label}

    material = {"reference": reference, "text": text} if reference else {"text": text}
    return Inquiry("lm.grade", partial(about, by, "lm.grade", material), lambda found: Grade(*found), shown)


def consulting(state: ExampleState, judge: Asker | None, inquire: Callable[[], Inquiry]) -> Asking[Any]:
    """Query a judge for an example; a missing verdict makes the example an error, even if the exception is caught."""
    try:
        inquiry = inquire()
        if judge is None:
            raise ScoringError(f"{place()}: {inquiry.method}: {judged.NO_JUDGE}")
        question = inquiry.of(partial(Generate, task=state.task, id=state.id, repeat=state.repeat))
        found, unread, steps = yield from dialogue(state, "judge", inquiry.method, judge, question)
        if unread:
            raise ScoringError(f"{inquiry.method}: {unread}")
    except ScoringError as error:
        state.fail(error)
        raise
    if inquiry.shown is not None:
        steps[-1].verdict = {**inquiry.shown(found), **({"repaired": True} if len(steps) > 1 else {})}
    return inquiry.result(found)


def dialogue(
    state: ExampleState, kind: str, method: str, asker: Asker, question: judged.Question
) -> Asking[tuple[Any, str, list[Step]]]:
    """Ask a question, and repeat it if the reply is unreadable; return verdict, fault (if no verdict) and steps."""
    talk, steps = judged.dialogue(question), list[Step]()
    try:
        messages = next(talk)
        while True:
            state.check_is_running(method)
            request = question.request(messages)
            steps.append(open_step(state, kind, asker.name, request))
            steps[-1].adapter_key = asker.key
            answer = yield from answered(state, steps[-1], asker, request)
            messages = talk.send(answer.text)
    except StopIteration as end:
        return *end.value, steps
