"""Query a judge for ``lm.judge`` and ``lm.grade``, and convert its replies."""

from __future__ import annotations

import json
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
from pytest_lmeval.types import Generate, Media, Message


@dataclass(frozen=True, slots=True)
class Grade:
    """A judge's grade in [0, 1] for some text, based on a rubric, and the reason.

    A grade raises TypeError when used as a condition, because it would always be true.
    """

    score: float
    reason: str

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError(f"{self!r:.200} is neither true nor false: compare its score")


class Judgment(str):
    """A judge's label for some text, and the reason, which is empty unless the eval requested a reason.

    A judgment raises TypeError when used as a condition, because even the label "no" would be true.
    """

    __slots__ = ("reason",)

    def __new__(cls, label: str, reason: str = "") -> Judgment:
        """Create the judgment ``label``."""
        made = super().__new__(cls, label)
        made.reason = reason
        return made

    reason: str

    @property
    def label(self) -> str:
        """The label."""
        return str(self)

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError(f"the label {str(self)!r:.200} is neither true nor false: compare it with a label")


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question for a judge, from the ``lm`` method named ``method``.

    ``of`` creates the question from a function that builds requests. ``result`` converts the verdict for the caller,
    and ``shown`` converts it for the step.
    """

    method: str
    of: Callable[[Callable[..., Generate]], judged.Question]
    result: Callable[[Any], Any]
    shown: Callable[[Any], Mapping[str, Any]] | None = None


def material(method: str, value: object) -> str:
    """Return text unchanged, and any other value as JSON; raise ScoringError if JSON cannot represent it."""
    if isinstance(value, str):
        return value
    if media_in(value):
        return "\n".join(map(str, value))  # type: ignore[call-overload]  # a list of texts and media
    dump = getattr(value, "model_dump", None)
    try:
        if value is not None and not isinstance(value, bytes):
            return json.dumps(
                dump(mode="json") if callable(dump) else value, ensure_ascii=False, allow_nan=False, default=dict
            )
    except (TypeError, ValueError, RecursionError):
        pass
    raise ScoringError(f"{method}: text: expected a text, or values that JSON has, got {value!r:.80}")


def media_in(value: object) -> list[Media]:
    """Return the media in a list of texts and media, or an empty list for any other value."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str | Media) for each in value):
        return []
    return [each for each in value if isinstance(each, Media)]


def labelling(question: str, given: object, labels: Sequence[str], human_label: object, *, reason: bool) -> Inquiry:
    """Return an inquiry that asks for one of ``labels``; raise ScoringError if the labels are not distinct."""
    if isinstance(labels, str) or len(labels) < 2 or len(set(labels)) < len(labels):
        raise ScoringError(f"lm.judge: labels: expected two different texts or more, got {labels!r:.80}")
    if human_label is not None and human_label not in labels:
        raise ScoringError(f"lm.judge: human_label: expected one of {', '.join(labels)}, got {human_label!r:.80}")
    text = material("lm.judge", given)
    verdict = one_of_with_reason(labels) if reason else one_of(labels)
    prompt = judge_prompt(question, {"text": text}, verdict.form)

    message = Message.of_parts("user", (prompt, *media_in(given)))
    made = partial(judged.Question, "lm.judge", verdict, (message,))

    def shown(found: Any) -> Mapping[str, Any]:
        by_people = {} if human_label is None else {"rubric": question[:RUBRIC_HEAD], "human_label": human_label}
        return {**verdict.recorded(found), **by_people}

    is_shown = reason or human_label is not None
    return Inquiry(
        "lm.judge", made, lambda found: Judgment(*found) if reason else Judgment(found), shown if is_shown else None
    )


def grading(rubric: Any, given: object, reference: str, levels: Any, human_label: Any) -> Inquiry:
    """Return an inquiry that asks for a level of a rubric; raise ScoringError for an invalid rubric."""
    try:
        by = Rubric.of(rubric, levels, prefix="")
    except RecordRefused as refused:
        raise ScoringError(f"lm.grade: {refused.field}: {refused.detail}") from None

    def shown(found: Any) -> Mapping[str, Any]:
        said = {"score": found[0], "reason": found[1], "rubric": by.text[:RUBRIC_HEAD], "prompt_hash": by.sha256}
        return said if human_label is None else {**said, "human_label": human_label}

    texts = {**({"reference": reference} if reference else {}), "text": material("lm.grade", given)}
    make = partial(about, by, "lm.grade", texts, media=media_in(given))
    return Inquiry("lm.grade", make, lambda found: Grade(*found), shown)


def consulting(state: ExampleState, judge: Asker | None, inquire: Callable[[], Inquiry]) -> Asking[Any]:
    """Query a judge; without a verdict, the example is an error, even if the function catches the exception."""
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
    """Ask a question, and repeat it after an unreadable reply; return the verdict or None, the error, and the steps."""
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
