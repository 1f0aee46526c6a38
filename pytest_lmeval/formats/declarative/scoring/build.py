"""Build the scorer of a model; scorers in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.models.scorers import JudgeBase, MetricScorer, PythonScorer, ScorerBase
from pytest_lmeval.formats.declarative.scoring.judges import JudgingScorer
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer, ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.scoring.rubric import RubricScorer
from pytest_lmeval.formats.declarative.scoring.texts import text_scorer
from pytest_lmeval.formats.declarative.snippets import Snippet, SnippetFault, attributes, plain
from pytest_lmeval.registry import Registry

_FORMS = (("sample", "model_input", "model_output"), ("sample", "solver_output"), ("sample",))


def build_scorer(key: str, model: ScorerBase, registry: Registry, tools: Sequence[Mapping[str, Any]]) -> Scorer:
    """Return the scorer for a model other than Python; a metric of calls checks them by the schemas of ``tools``."""
    if isinstance(model, JudgeBase):
        return JudgingScorer(key, model)
    scorer = text_scorer(key, model, registry, tools)
    is_judged = isinstance(model, MetricScorer) and registry.metric(model.type).asks_judge
    return RubricScorer(scorer) if is_judged else scorer


def scorer_parameters(snippet: Snippet) -> tuple[str, ...]:
    """Return the arguments of a function: by the names of its parameters if all are known, else by their number."""
    parameters = snippet.parameters
    known = {name for form in _FORMS for name in form}
    if parameters and known.issuperset(parameters):
        return parameters
    for form in _FORMS:
        if len(form) == len(parameters):
            return form
    forms = ", ".join(f"compute_scores({', '.join(form)})" for form in _FORMS)
    raise SnippetFault(f"{snippet.filename}: compute_scores takes {len(parameters)} arguments; expected one of {forms}")


@dataclass(frozen=True, slots=True)
class SnippetScorer:
    """The scorer ``python``; ``parameters`` are the arguments of its function."""

    key: str
    model: PythonScorer
    snippet: Snippet
    parameters: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    candidates: tuple[str, ...] | None = None

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the mapping that the function returned; raise ScoringError if it is not JSON."""
        row = scoring.row
        given = {"sample": row.sample, "model_input": row.model_input, "solver_output": row.solver_output}
        given["model_output"] = row.solver_output.get("output") if row.solver_output is not None else None
        returned = self.snippet(*(attributes(given[name]) for name in self.parameters))
        where = f"{self.snippet.function} in {self.snippet.filename}"
        if not isinstance(returned, dict) or not returned:
            raise ScoringError(f"{where} returned {returned!r:.80}; expected a mapping of fields to values")
        try:
            fields: dict[str, Any] = plain(returned)
        except ValueError as error:
            raise ScoringError(f"{where} returned an invalid score: {error}") from None
        return ScorerOutput(fields, row.text if row.solver_output is not None else "")
