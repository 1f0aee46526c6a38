"""The protocol of scorers, and their input and output for a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_lmeval.formats.declarative.models.scorers import ScorerBase
from pytest_lmeval.formats.declarative.solving import AnsweredRow
from pytest_lmeval.task import Tools


@dataclass(frozen=True, slots=True)
class Scoring:
    """The input of a scorer: the row, the run's tools, the names of the task and the example, and the scores so far."""

    row: AnsweredRow
    tools: Tools
    task: str = ""
    example: str = ""
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, Any]:
        """The variables for templates."""
        return self.row.variables(self.scores)


@dataclass(frozen=True, slots=True)
class ScorerOutput:
    """The fields that a scorer assigns to a row.

    ``unscorable`` says why the row has no score through no fault of the model. ``prediction`` is the scored text.
    ``unparsed`` is true if the scored text contains no answer. ``judge`` lists the judge's replies, and ``usage``
    counts the tokens and the cost of these replies. ``details`` contains additional facts for readers.
    """

    fields: Mapping[str, Any]
    prediction: str = ""
    unparsed: bool = False
    unscorable: str = ""
    judge: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """A scorer of a task.

    ``fields`` and ``candidates`` are None if they are unknown until the scorer runs.
    """

    @property
    def key(self) -> str:
        """The scorer's name in ``scores.KEY``."""

    @property
    def model(self) -> ScorerBase:
        """The scorer's entry in the task file."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields that the scorer gives every row."""

    @property
    def candidates(self) -> tuple[str, ...] | None:
        """The fields that can be a row's score: a boolean, or a number in [0, 1]."""

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return a row's fields; raise LmevalError if the row cannot be scored."""
