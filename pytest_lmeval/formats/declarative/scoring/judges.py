"""Scorers that ask a model: its reply is a label or a number, or it is nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.kit import Kit
from pytest_lmeval.formats.declarative.models.scorers import JudgeBase, JudgeClassifier, JudgeScorer, Labeler
from pytest_lmeval.formats.declarative.scoring import prompts
from pytest_lmeval.formats.declarative.scoring.outcome import Outcome, Scoring
from pytest_lmeval.formats.declarative.scoring.replies import read_label, read_number
from pytest_lmeval.types import Completion, Generate, Message

UNREAD = "the judge's reply is no"
"""How the error of a row begins whose judge said nothing that can be read."""
_USAGE = ("prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True)
class _Task:
    """What one kind of judge is asked, and how its reply becomes fields."""

    prompt: str
    repair: str
    read: Callable[[str], str | float | None]
    fields_of: Callable[[Any], dict[str, Any]]
    names: tuple[str, ...]
    candidates: tuple[str, ...]
    verdict: str
    wanted: str
    known: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgingScorer:
    """A scorer behind a judge."""

    key: str
    model: JudgeBase
    kit: Kit
    task: _Task
    fields: tuple[str, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        """The field that can be the score of a row, if there is one: what a person said never is."""
        return self.task.candidates

    def request(self, scoring: Scoring) -> Generate:
        """Return the first question about a row."""
        return self._generate(scoring, self._opening(scoring))

    def score(self, scoring: Scoring) -> Outcome:
        """Return what the judge says; one that cannot be read twice gives fields without a value."""
        judge = self._judge(scoring)
        opening = self._opening(scoring)
        replies = [self._ask(judge, scoring, opening)]
        verdict = self.task.read(replies[0][1].text)
        if verdict is None:
            again = Message("user", self._filled(self.task.repair, scoring))
            said = Message("assistant", replies[0][1].text)
            replies.append(self._ask(judge, scoring, (*opening, said, again)))
            verdict = self.task.read(replies[1][1].text)
        return self._outcome(scoring, judge, replies, verdict)

    @property
    def prompt_hash(self) -> str:
        """What tells the prompts of two judges apart: 12 hexadecimal digits over all that they are made of."""
        parts = [self.model.system_prompt, self._user_prompt, self.task.repair, dict(self.task.known)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def _user_prompt(self) -> str:
        return self.model.user_prompt or self.task.prompt

    def _judge(self, scoring: Scoring) -> Any:
        if not scoring.tools.judge:
            raise ScoringError("no judge: say which model judges with --lm-judge=SPEC")
        if self.model.model_key is None:
            return scoring.tools.judge
        return scoring.tools.judge.model(self.model.model_key)

    def _opening(self, scoring: Scoring) -> tuple[Message, ...]:
        system = self.model.system_prompt
        first = () if system is None else (Message("system", self._filled(system, scoring)),)
        return (*first, Message("user", self._filled(self._user_prompt, scoring)))

    def _filled(self, template: str, scoring: Scoring) -> str:
        truth = getattr(self.model, "ground_truth", None)
        told = None if truth is None else self.kit.template(truth).render(scoring.variables)
        return self.kit.template(template).render({**scoring.variables, **self.task.known, "ground_truth": told})

    def _generate(self, scoring: Scoring, messages: tuple[Message, ...]) -> Generate:
        return Generate(messages, scoring.task, scoring.example, max_tokens=self.model.max_tokens)

    def _ask(self, judge: Any, scoring: Scoring, messages: tuple[Message, ...]) -> tuple[Generate, Completion]:
        request = self._generate(scoring, messages)
        (completion,) = judge.ask([request])
        return request, completion

    def _outcome(
        self, scoring: Scoring, judge: Any, replies: Sequence[tuple[Generate, Completion]], verdict: str | float | None
    ) -> Outcome:
        fields = self.task.fields_of(verdict)
        if self.model.human_label is not None:
            fields["human_label"] = self.kit.template(self.model.human_label).value(scoring.variables)
        said = replies[-1][1].text
        return Outcome(
            fields,
            prediction=scoring.row.text if scoring.row.solver_output is not None else "",
            unscorable="" if verdict is not None else f"{UNREAD} {self.task.wanted}: {said[-200:]!r}",
            judge=[self._entry(judge, number, *each, verdict, len(replies)) for number, each in enumerate(replies)],
            usage=_usage([completion for _, completion in replies]),
        )

    def _entry(
        self, judge: Any, number: int, request: Generate, completion: Completion, verdict: Any, count: int
    ) -> dict[str, Any]:
        # By its key a run that is completed later finds the answer again.
        key = judge.key(request)
        is_last = number == count - 1
        return {
            "scorer": self.key,
            "judge": str(getattr(judge, "name", "")),
            "prompt_hash": self.prompt_hash,
            "output": completion.text,
            self.task.verdict: verdict if is_last else None,
            "repaired": number > 0,
            **({"key": key} if key else {}),
        }


def judging_scorer(key: str, model: JudgeBase, kit: Kit) -> JudgingScorer:
    """Return the scorer that a model of any kind of judge describes."""
    if isinstance(model, Labeler):
        task = _labeler(model.labels or model.valid_labels or [])
    elif isinstance(model, JudgeClassifier):
        task = _classifier(model)
    else:
        assert isinstance(model, JudgeScorer)
        task = _number(model.score_min, model.score_max)
    human = ("human_label",) if model.human_label is not None else ()
    return JudgingScorer(key, model, kit, task, (*task.names, *human))


def _labeler(labels: Sequence[str]) -> _Task:
    return _Task(
        prompt="",
        repair=prompts.REPAIR_LABEL,
        read=lambda reply: read_label(reply, labels),
        fields_of=lambda label: {"label": label},
        names=("label",),
        candidates=(),
        verdict="label",
        wanted=f"label out of {', '.join(labels)}",
        known={"labels": list(labels)},
    )


def _classifier(model: JudgeClassifier) -> _Task:
    labels = [*model.correct_labels, *model.incorrect_labels]

    def fields_of(label: Any) -> dict[str, Any]:
        return {"is_correct": None if label is None else label in model.correct_labels, "label": label}

    return _Task(
        prompt=prompts.CLASSIFY,
        repair=prompts.REPAIR_LABEL,
        read=lambda reply: read_label(reply, labels),
        fields_of=fields_of,
        names=("is_correct", "label"),
        candidates=("is_correct",),
        verdict="label",
        wanted=f"label out of {', '.join(labels)}",
        known={"labels": labels},
    )


def _number(low: float, high: float) -> _Task:
    def fields_of(number: Any) -> dict[str, Any]:
        return {"score": None if number is None else (number - low) / (high - low), "raw_score": number}

    return _Task(
        prompt=prompts.SCORE,
        repair=prompts.REPAIR_NUMBER,
        read=lambda reply: read_number(reply, low, high),
        fields_of=fields_of,
        names=("score", "raw_score"),
        candidates=("score",),
        verdict="score",
        wanted=f"number from {low:g} to {high:g}",
        known={"score_min": low, "score_max": high},
    )


def _usage(completions: Sequence[Completion]) -> dict[str, float]:
    usage: dict[str, float] = {}
    for completion in completions:
        for name in _USAGE:
            amount = getattr(completion, name)
            if amount is not None:
                usage[name] = usage.get(name, 0) + amount
    return usage
