"""Scorers that ask a judge for a label, a number or a grade.

Two measures show whether a judge is reliable: the share of its replies that are readable, and its agreement with
people.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.checks import has_media
from pytest_lmeval.formats.declarative.models.scorers import (
    JudgeBase,
    JudgeClassifier,
    JudgeScorer,
    Labeler,
    MetricScorer,
    ScorerBase,
)
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer, ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.scoring.texts import ComparingScorer, text_scorer
from pytest_lmeval.judging.graded import Graded, UnreadReply
from pytest_lmeval.judging.prompt import case_prompt, tagged
from pytest_lmeval.judging.question import UNREAD, Question, consult, judge_of
from pytest_lmeval.judging.rubric import UNREADABLE, Rubric
from pytest_lmeval.judging.summary import judge_note, measures_of
from pytest_lmeval.judging.verdicts import LABELS_FORM, NUMBER_FORM, number_in, one_of
from pytest_lmeval.postprocess import Extraction, apply_metric, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.template import compile_template
from pytest_lmeval.types import Generate, Message


@dataclass(frozen=True, slots=True)
class JudgingScorer:
    """A scorer that asks a judge."""

    key: str
    model: JudgeBase

    @property
    def judge(self) -> str:
        """The judge that the task names, or "" for the run's judge."""
        return self.model.model_key or ""

    @property
    def verdict(self) -> str:
        """The field to compare with people's labels."""
        return "raw_score" if isinstance(self.model, JudgeScorer) else "label"

    @property
    def candidates(self) -> tuple[str, ...]:
        """The field that can be a row's score, if any; never a person's label."""
        return ("score",) if isinstance(self.model, JudgeScorer) else ("is_correct",) if self._correct else ()

    @property
    def fields(self) -> tuple[str, ...]:
        human = ("human_label",) if self.model.human_label is not None else ()
        return (*self.candidates, self.verdict, *human)

    def request(self, scoring: Scoring) -> Generate:
        """Return the first question about a row."""
        return self._question(scoring).first

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the judge's verdict, with None for its fields if neither of the judge's two replies can be read."""
        found = consult(judge_of(scoring.tools.judge, self.judge), self._question(scoring))
        fields = self._fields_of(found.verdict)
        if self.model.human_label is not None:
            fields["human_label"] = compile_template(self.model.human_label).value(scoring.variables)
        answer = scoring.row.text if scoring.row.solver_output is not None else ""
        return ScorerOutput(fields, answer, unscorable=found.unread, judge=found.entries, usage=found.usage)

    @property
    def prompt_hash(self) -> str:
        """The hash of all parts of the judge's prompt: 12 hexadecimal digits."""
        form = NUMBER_FORM if isinstance(self.model, JudgeScorer) else LABELS_FORM
        user = self.model.user_prompt or case_prompt(self._ask, "question", "answer", "reference", form)
        parts = [self.model.system_prompt, user, UNREADABLE + form, self._known]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def _correct(self) -> Sequence[str]:
        return self.model.correct_labels if isinstance(self.model, JudgeClassifier) else ()

    @property
    def _labels(self) -> list[str]:
        if isinstance(self.model, JudgeClassifier):
            return [*self.model.correct_labels, *self.model.incorrect_labels]
        assert isinstance(self.model, Labeler)
        return [*(self.model.labels or self.model.valid_labels or ())]

    @property
    def _known(self) -> dict[str, Any]:
        """The template variables of this judge, in addition to the common variables."""
        if isinstance(self.model, JudgeScorer):
            return {"score_min": self.model.score_min, "score_max": self.model.score_max}
        return {"labels": self._labels}

    @property
    def _ask(self) -> str:
        if not isinstance(self.model, JudgeScorer):
            return "Is the answer right?"
        low, high = self.model.score_min, self.model.score_max
        return f"How good is the answer, from {low:g} (useless) to {high:g} (could not be better)?"

    def _fields_of(self, found: Any) -> dict[str, Any]:
        if isinstance(self.model, JudgeScorer):
            low, high = self.model.score_min, self.model.score_max
            return {"score": None if found is None else (found - low) / (high - low), "raw_score": found}
        is_correct = {"is_correct": None if found is None else found in self._correct} if self._correct else {}
        return {**is_correct, "label": found}

    def _question(self, scoring: Scoring) -> Question:
        model, variables = self.model, self._variables(scoring)
        known = self._known
        verdict = one_of(known["labels"]) if "labels" in known else number_in(known["score_min"], known["score_max"])
        texts = {"user": self._prompt(variables, verdict.form)}
        if model.system_prompt is not None:
            texts = {"system": compile_template(model.system_prompt).render(variables), **texts}
        opening = tuple(Message(role, text) for role, text in texts.items())
        make = partial(Generate, task=scoring.task, id=scoring.example, max_tokens=model.max_tokens)
        return Question(self.key, verdict, opening, make, self.prompt_hash)

    def _prompt(self, variables: Mapping[str, Any], form: str) -> str:
        if self.model.user_prompt:
            return compile_template(self.model.user_prompt).render(variables)
        case = self._case(variables)
        return case_prompt(self._ask, case["question"], case.get("answer"), case["reference"], form)

    def _variables(self, scoring: Scoring) -> Mapping[str, Any]:
        given = getattr(self.model, "ground_truth", None)
        truth = None if given is None else compile_template(given).render(scoring.variables)
        variables = {**scoring.variables, **self._known, "ground_truth": truth}
        return {**variables, "material": tagged({name: text for name, text in self._case(variables).items() if text})}

    def _case(self, variables: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts that the judge sees: the question, the reference, and the model's answer if there is one."""
        reference = variables["ground_truth"] or ""
        if "messages" not in variables:
            return {"question": compile_template("{{ sample | tojson }}").render(variables), "reference": reference}
        asked = "\n\n".join(str(message["content"]) for message in variables["messages"][:-1])
        return {"question": asked, "reference": reference, "answer": variables["input_prompt"]}


@dataclass(frozen=True, slots=True)
class RubricScorer:
    """A metric that asks the run's judge for a grade.

    ``texts`` provides the text to grade and the targets.
    """

    texts: ComparingScorer
    judge: str = ""
    verdict: str = "score"
    candidates: tuple[str, ...] = ("score",)

    @property
    def key(self) -> str:
        return self.texts.key

    @property
    def model(self) -> Any:
        return self.texts.model

    @property
    def fields(self) -> tuple[str, ...]:
        human = ("human_label",) if "human_label" in self.model.extras else ()
        return ("score", "reason", "answer_gt", "answer_pred", *human)

    @property
    def prompt_hash(self) -> str:
        """The hash of the parts of the judge's prompt that all rows share: 12 hexadecimal digits."""
        extras = self.model.extras
        try:
            return Rubric.of(extras.get("rubric"), extras.get("levels")).sha256
        except RecordRefused:  # each row fills in the levels
            return hashlib.sha256(json.dumps(extras, sort_keys=True, default=str).encode("ascii")).hexdigest()[:12]

    def request(self, scoring: Scoring) -> Generate:
        """Return the first question about a row."""
        graded, predicted, extras = self._given(scoring)
        return graded.question(predicted.text, self.texts.targets(scoring), extras).first

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the judge's level and reason, or None for both if neither of its two replies can be read."""
        graded, predicted, extras = self._given(scoring)
        targets = self.texts.targets(scoring)
        fields: dict[str, Any] = {"answer_gt": targets[0] if len(targets) == 1 else list(targets)}
        fields["answer_pred"] = predicted.text
        if "human_label" in self.model.extras:
            fields["human_label"] = extras["human_label"]
        metric = self.texts.registry.metric(self.model.type)
        try:
            found = apply_metric(metric, predicted, targets, extras, graded)
        except UnreadReply as error:
            none = {"score": None, "reason": None, **fields}
            asked = error.consultation
            return ScorerOutput(none, predicted.text, unscorable=asked.unread, judge=asked.entries, usage=asked.usage)
        known = {"score": share_of(found.value, self.model.type), "reason": found.details.get("reason", ""), **fields}
        judge = found.details.get("judge", ())
        return ScorerOutput(known, predicted.text, found.unparsed, judge=judge, usage=found.usage)

    def _given(self, scoring: Scoring) -> tuple[Graded, Extraction, dict[str, Any]]:
        said = [each.get("content") for each in scoring.variables.get("messages", ())[:-1]]
        media = scoring.row.media
        if media:
            said = [_with_placeholders(each) for each in said]
        asked = "\n\n".join(map(str, said))
        graded = Graded(scoring.task, scoring.example, asked, scoring.tools.judge, self.key, media)
        extras = {name: self.texts.filled(value, scoring) for name, value in self.model.extras.items()}
        return graded, self.texts.predicted(scoring), extras


def build_scorer(key: str, model: ScorerBase, registry: Registry, tools: Sequence[Mapping[str, Any]]) -> Scorer:
    """Return the scorer for an entry of any type except ``python``.

    ``tools`` lists the schemas for metrics that compare tool calls.
    """
    if isinstance(model, JudgeBase):
        return JudgingScorer(key, model)
    scorer = text_scorer(key, model, registry, tools)
    is_judged = isinstance(model, MetricScorer) and registry.metric(model.type).asks_judge
    return RubricScorer(scorer) if is_judged else scorer


_Asking = JudgingScorer | RubricScorer


def asking(scorers: Sequence[Scorer]) -> list[_Asking]:
    """Return the scorers that ask a judge."""
    return [each for each in scorers if isinstance(each, _Asking)]


def judge_notes(
    scorers: Sequence[Scorer], rows: Sequence[Mapping[str, Any]], errors: Sequence[str] = ()
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return agreement with people as metrics, and ``{"judges": {scorer: ...}}`` with a summary of each judge.

    ``errors`` lists the errors of rows without a score, including unreadable replies.
    """
    notes = {each.key: _note(each, rows, errors) for each in asking(scorers)}
    return measures_of(notes), {"judges": notes} if notes else {}


def _note(scorer: _Asking, rows: Sequence[Mapping[str, Any]], errors: Sequence[str]) -> dict[str, Any]:
    entries = [entry for row in rows for entry in row.get("judge", ()) if entry["scorer"] == scorer.key]
    fields = [row["scorers"][scorer.key] for row in rows if scorer.key in row["scorers"]]
    return judge_note(
        entries,
        scorer.prompt_hash,
        unread=sum(error.startswith(f"scorer {scorer.key}: {UNREAD}") for error in errors),
        verdicts=[(each.get(scorer.verdict), each.get("human_label")) for each in fields],
    )


def _with_placeholders(content: object) -> object:
    return Message.from_json({"role": "user", "content": content}).content if has_media(content) else content
