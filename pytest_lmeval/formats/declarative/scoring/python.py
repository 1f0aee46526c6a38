"""Scorers in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.models.scorers import PythonScorer
from pytest_lmeval.formats.declarative.scoring.outcome import ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.snippets import Snippet
from pytest_lmeval.formats.declarative.values import attributes, plain


@dataclass(frozen=True, slots=True)
class SnippetScorer:
    """``python``: ``parameters`` are the arguments that its function takes."""

    key: str
    model: PythonScorer
    snippet: Snippet
    parameters: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    candidates: tuple[str, ...] | None = None

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return what the function returned, once it is known to be JSON."""
        row = scoring.row
        given = {"sample": row.sample, "model_input": row.model_input, "solver_output": row.solver_output}
        given["model_output"] = row.solver_output.get("output") if row.solver_output is not None else None
        returned = self.snippet(*(attributes(given[name]) for name in self.parameters))
        if not isinstance(returned, dict) or not returned:
            raise ScoringError(f"{self._where} returned {returned!r:.80}; expected a mapping of fields to values")
        fields = self._checked(returned)
        return ScorerOutput(fields, row.text if row.solver_output is not None else "")

    def _checked(self, returned: dict[Any, Any]) -> dict[str, Any]:
        try:
            fields: dict[str, Any] = plain(returned)
        except ValueError as error:
            raise ScoringError(f"{self._where} returned what is no score: {error}") from None
        return fields

    @property
    def _where(self) -> str:
        return f"{self.snippet.function} in {self.snippet.filename}"
