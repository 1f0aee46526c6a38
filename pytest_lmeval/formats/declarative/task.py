"""The task that a declarative file describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import AdapterError, LmevalError, SandboxError, ScoringError
from pytest_lmeval.formats.declarative.actions import Action, excluded_by, exclusion, holds
from pytest_lmeval.formats.declarative.aggregate import Aggregation, ScoreRule, aggregate, scored_rows
from pytest_lmeval.formats.declarative.models.scorers import MetricScorer, ScorerBase
from pytest_lmeval.formats.declarative.scoring.judges import asking
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer, ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.solving import AnsweredRow, RowPrompt, Solver, turns_of
from pytest_lmeval.formats.turning import by_turn
from pytest_lmeval.numbers import is_share, total_usage
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import FollowUp, Prompt, Task, Tools
from pytest_lmeval.templates.template import TemplateFault
from pytest_lmeval.types import Completion, Example, ExampleResult, Generate, Request, Response, Score


@dataclass(frozen=True, slots=True)
class DeclarativeTask(Task):
    """A task that a YAML file describes, with one config's values.

    ``samples`` maps example ids to rows, and ``asked`` maps example ids to the rows' prompts.
    """

    name: str
    path: Path
    sha256: str
    key: str = field()
    examples: Sequence[Example]
    samples: Mapping[str, Mapping[str, Any]]
    asked: Mapping[str, RowPrompt]
    solver: Solver | None
    scorers: Sequence[Scorer]
    actions: Sequence[Action]
    aggregations: Sequence[Aggregation]
    registry: Registry
    decision: ScoreRule
    definition_sha256: str = ""
    scoring_sha256: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    display_name: str = ""
    asks_user: bool = False
    dataset: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The key of the scorer that gives the score, or ``measured`` if no scorer does."""
        return self.decision.scorer.key if self.decision.scorer is not None else "measured"

    @property
    def score_metric(self) -> str:
        """The metric that is the task's score if its rows have no score, or ""."""
        return self.decision.score_metric

    @property
    def has_score(self) -> bool:
        """True if the task may have a score; its rows may still yield none."""
        return self.decision.has_score

    @property
    def aggregates(self) -> bool:
        """True, because the task aggregates its results itself."""
        return True

    @property
    def asks_model(self) -> bool:
        """True if there is a solver; otherwise, the scorers score the data set's rows."""
        return self.solver is not None

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the request for a completion, or nothing if the task asks no model or the row has no prompt."""
        if self.solver is None or self.asked[example.id].fault:
            return ()
        return (Generate(prompt, self.name, example.id, **self.solver.request_fields),)

    def conversation(self, example: Example) -> FollowUp | None:
        """Return the function that continues the conversation about a row, or None for a single request."""
        return None if self.solver is None else self.solver.follow_up(self.asked[example.id])

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> list[Generate]:
        """Return the first questions for the run's judge, except questions that depend on other scores."""
        by_run = [each for each in asking(self.scorers) if not each.judge]
        requests = []
        for row in self._rows(example, responses) if by_run else ():
            for scorer in by_run:
                try:
                    requests.append(scorer.request(Scoring(row, Tools(), self.name, example.id)))
                except (TemplateFault, LmevalError):
                    continue  # the question needs other scores, or scoring will report the error
        return requests

    def judges(self, example: Example) -> Sequence[str]:
        """Return the ``model_key`` of each judge, or "" for the run's judge."""
        return [each.judge for each in asking(self.scorers)]

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the scorers' types; a metric scorer's type is the metric's name."""
        return [scorer.model.type for scorer in self.scorers]

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the response's score; a ScoringError names the stage that failed."""
        if fault := self.asked[example.id].fault:
            raise ScoringError(fault)
        scored = [_ScoredRow.of(self, row, example.id, tools) for row in self._rows(example, responses)]
        score = scored[0].score() if len(scored) == 1 else _joined(scored)
        talks = [response for response in responses if isinstance(response, Completion) and response.exchanges]
        if not talks:
            return score
        details = {**score.details, "turns": self._turns(talks[0])}
        if talks[0].asides:
            assert self.solver is not None
            played = self.solver.played(self.asked[example.id])
            entries = [dict(entry) for entry in talks[0].asides]
            details |= {"ended": played.ended(len(details["turns"])), "user": entries}
            score = replace(score, usage=total_usage([score.usage, *(entry.get("usage", {}) for entry in entries)]))
        return replace(score, details=details)

    def _turns(self, completion: Completion) -> list[dict[str, Any]]:
        assert self.solver is not None
        turns = turns_of(completion)
        for turn, exchanges in zip(turns, by_turn(completion.exchanges), strict=True):
            if stopped := self.solver.stopped(exchanges):
                turn["stopped"] = stopped
        return turns

    def threshold(self, example: Example) -> float | None:
        """Return the threshold of the scorer that gives the score."""
        model = self._decisive_model
        if model is not None and model.threshold is not None:
            return model.threshold
        return self.registry.metric(model.type).threshold if isinstance(model, MetricScorer) else 1.0

    def metric_name(self, example: Example) -> str:
        """Return the name of the metric that gives the score, or the key of a scorer that is not a metric."""
        model = self._decisive_model
        return model.type if isinstance(model, MetricScorer) else self.metric

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the row and a hash of the definition."""
        return {"definition": self.definition_sha256, "sample": self.samples.get(example.id, {})}

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the row and a hash of the definition without the prompt."""
        return {"definition": self.scoring_sha256, "sample": self.samples.get(example.id, {})}

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"}``; raise ScoringError if a metric fails.

        ``notes.actions`` counts the rows that each action excluded.
        """
        found = aggregate(self.scorers, self.aggregations, results, self.decision)
        if self.actions:
            found["notes"]["actions"] = excluded_by(self.actions, scored_rows(results, excluded=True))
        return found

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return the data set row."""
        return self.samples[example.id]

    @property
    def _decisive_model(self) -> ScorerBase | None:
        return None if self.decision.scorer is None else self.decision.scorer.model

    def _rows(self, example: Example, responses: Sequence[Response]) -> list[AnsweredRow]:
        sample = self.samples[example.id]
        if self.solver is None:
            return [AnsweredRow(sample)]
        if not responses:
            return []
        (completion,) = responses
        assert isinstance(completion, Completion)
        return self.solver.rows(sample, self.asked[example.id], completion)


@dataclass(frozen=True, slots=True)
class _ScoredRow:
    """The outputs of all scorers for a row.

    ``value`` is None if the row has no score.
    """

    outcomes: Mapping[str, ScorerOutput]
    decisive: str
    field: str
    value: float | None
    excluded: str

    @classmethod
    def of(cls, task: DeclarativeTask, row: AnsweredRow, example: str, tools: Tools) -> _ScoredRow:
        outcomes: dict[str, ScorerOutput] = {}
        scores: dict[str, Mapping[str, Any]] = {}
        for scorer in task.scorers:
            outcomes[scorer.key] = _score(scorer, Scoring(row, tools, task.name, example, scores))
            scores[scorer.key] = outcomes[scorer.key].fields
        excluded = _excluded(task, row, scores)
        decisive = task.decision.scorer
        if decisive is None:
            return cls(outcomes, "", "", None, excluded)
        try:
            field, value = _decided(task.decision, decisive, outcomes[decisive.key])
        except ScoringError:
            if not excluded:
                raise
            field, value = "", None
        return cls(outcomes, decisive.key, field, value, excluded)

    @property
    def details(self) -> dict[str, Any]:
        details: dict[str, Any] = {"scorers": {key: dict(outcome.fields) for key, outcome in self.outcomes.items()}}
        if self.field:
            details["score_field"] = f"{self.decisive}.{self.field}"
        if self.excluded:
            details["excluded"] = self.excluded
        judge = [dict(entry) for outcome in self.outcomes.values() for entry in outcome.judge]
        more = {key: dict(outcome.details) for key, outcome in self.outcomes.items() if outcome.details}
        return {**details, **({"judge": judge} if judge else {}), **({"scorer_details": more} if more else {})}

    @property
    def usage(self) -> dict[str, float]:
        return total_usage(outcome.usage for outcome in self.outcomes.values())

    def score(self) -> Score:
        chosen = self.outcomes.get(self.decisive) or next(iter(self.outcomes.values()))
        return Score(
            self.value or 0.0,
            self.details,
            chosen.prediction,
            chosen.unparsed,
            excluded=self.excluded,
            usage=self.usage,
            measured=self.value is None and not self.excluded,
        )


def _score(scorer: Scorer, scoring: Scoring) -> ScorerOutput:
    try:
        return scorer.score(scoring)
    except TemplateFault as fault:
        raise ScoringError(f"scorer {scorer.key}: {fault}") from None
    except (AdapterError, SandboxError) as error:
        raise type(error)(f"scorer {scorer.key}: {error}") from None
    except LmevalError as error:
        message = str(error)
        raise ScoringError(message if message.startswith("scorer ") else f"scorer {scorer.key}: {message}") from None
    except Exception as error:
        raise ScoringError(f"scorer {scorer.key}: raised {type(error).__name__}: {error}") from error


def _decided(decision: ScoreRule, scorer: Scorer, outcome: ScorerOutput) -> tuple[str, float | None]:
    """Return the field with the row's score, and its value, or "" and None for a row without a score."""
    if outcome.unscorable:
        raise ScoringError(f"scorer {scorer.key}: {outcome.unscorable}")
    try:
        name = decision.field_of(outcome.fields)
    except ScoringError as error:
        raise ScoringError(f"scorer {scorer.key}: {error}") from None
    if name is None:
        return "", None
    value = outcome.fields.get(name)
    if not is_share(value):
        found = f"is {value!r:.80}" if name in outcome.fields else f"is missing; there is {', '.join(outcome.fields)}"
        what = "score_field" if scorer.model.score_field else "the field"
        raise ScoringError(f"scorer {scorer.key}: {what} {name!r} {found}; expected a boolean or a number in [0, 1]")
    return name, float(value)


def _excluded(task: DeclarativeTask, row: AnsweredRow, scores: Mapping[str, Mapping[str, Any]]) -> str:
    variables = row.variables(scores)
    for action in task.actions:
        try:
            if holds(action.filter, variables):
                return exclusion(action.key)
        except ScoringError as error:
            raise ScoringError(f"action {action.key}: {error}") from None
    return ""


def _joined(rows: Sequence[_ScoredRow]) -> Score:
    """Return the mean score of the rows that the postprocessor made and that are not excluded."""
    kept = [row for row in rows if not row.excluded]
    measured = [row.value is None for row in kept]
    if any(measured) and not all(measured):
        raise ScoringError("some rows of the answer have a score and others have none; set score_field")
    details = [{**row.details, "score": row.value} for row in rows]
    scores = [row.score() for row in rows]
    judge = [entry for detail in details for entry in detail.get("judge", ())]
    return Score(
        sum(row.value or 0.0 for row in kept) / len(kept) if kept else 0.0,
        {"rows": details, **({"judge": judge} if judge else {})},
        "\n".join(score.prediction for score in scores),
        any(score.unparsed for score in scores),
        excluded="" if kept else rows[0].excluded,
        usage=total_usage(row.usage for row in rows),
        measured=any(measured),
    )
