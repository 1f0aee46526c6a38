"""From the model of a scorer to the scorer."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from pytest_lmeval.formats.declarative.kit import Kit
from pytest_lmeval.formats.declarative.models.scorers import (
    JsonSchema,
    JudgeBase,
    MetricScorer,
    PythonScorer,
    Rouge,
    ScorerBase,
    StringEquals,
    StringEqualsMcqa,
)
from pytest_lmeval.formats.declarative.scoring.judges import judging_scorer
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.declarative.scoring.python import SnippetScorer
from pytest_lmeval.formats.declarative.scoring.texts import (
    EqualityScorer,
    McqaScorer,
    RegistryScorer,
    RougeScorer,
    SchemaScorer,
)
from pytest_lmeval.formats.declarative.snippets import Snippet, SnippetFault, read_snippet

_FORMS = (
    ("sample", "model_input", "model_output"),
    ("sample", "solver_output"),
    ("sample",),
)
_TEXTS: MappingProxyType[type[ScorerBase], Callable[..., Any]] = MappingProxyType(
    {
        StringEquals: EqualityScorer,
        StringEqualsMcqa: McqaScorer,
        MetricScorer: RegistryScorer,
        Rouge: RougeScorer,
        JsonSchema: SchemaScorer,
    }
)


def build_scorer(key: str, model: ScorerBase, kit: Kit, filename: str) -> Scorer:
    """Return the scorer; ``filename`` is what messages call its snippet, SnippetFault is raised for one of no use."""
    if isinstance(model, PythonScorer):
        function = read_snippet(model.compute_scores_snippet, filename, ["compute_scores"])
        snippet = Snippet(model.compute_scores_snippet, filename, function.name, f"scorer {key}", model.timeout_s)
        return SnippetScorer(key, model, snippet, scorer_parameters(function.parameters, filename))
    if isinstance(model, JudgeBase):
        return judging_scorer(key, model, kit)
    scorer: Scorer = _TEXTS[type(model)](key, model, kit)
    return scorer


def scorer_parameters(parameters: tuple[str, ...], filename: str) -> tuple[str, ...]:
    """Return what a function is called with: its parameters by name where all are known, else by their number."""
    known = {name for form in _FORMS for name in form}
    if parameters and known.issuperset(parameters):
        return parameters
    for form in _FORMS:
        if len(form) == len(parameters):
            return form
    forms = ", ".join(f"compute_scores({', '.join(form)})" for form in _FORMS)
    raise SnippetFault(f"{filename}: compute_scores takes {len(parameters)} arguments; expected one of {forms}")
