"""What a scorer is, and what it says of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_lmeval.formats.declarative.models.scorers import ScorerBase
from pytest_lmeval.formats.declarative.solving import AnsweredRow
from pytest_lmeval.task import Tools


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a row is scored with: the tools of the run, on behalf of which example, and the scores so far."""

    row: AnsweredRow
    tools: Tools
    task: str = ""
    example: str = ""
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, Any]:
        """What templates see."""
        return self.row.variables(self.scores)


@dataclass(frozen=True, slots=True)
class ScorerOutput:
    """The fields that a scorer found; ``unscorable`` is why they hold no score, where the fault is not the model's.

    ``prediction`` is the text that was scored, ``unparsed`` says that there was nothing in it to score. ``judge`` are
    the answers of a judge, ``usage`` what they took, ``details`` whatever else a reader may want to know.
    """

    fields: Mapping[str, Any]
    prediction: str = ""
    unparsed: bool = False
    unscorable: str = ""
    judge: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """One scorer of a task; ``fields`` and ``candidates`` are None where they are known only after it ran."""

    @property
    def key(self) -> str:
        """What ``scores.KEY`` calls it."""

    @property
    def model(self) -> ScorerBase:
        """What the task file says of it."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields it always yields."""

    @property
    def candidates(self) -> tuple[str, ...] | None:
        """Those of its fields that can be the score of a row: a boolean, or a number in [0, 1]."""

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return what is found out about a row; raise LmevalError where nothing can be."""
