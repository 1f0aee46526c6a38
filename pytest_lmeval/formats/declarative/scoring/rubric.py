"""The scorer whose judge grades a row by a rubric."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.declarative.scoring.outcome import ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.scoring.texts import ComparingScorer
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.graded import Graded, UnreadReply
from pytest_lmeval.judging.rubric import Rubric
from pytest_lmeval.postprocess import Extraction, apply_metric, share_of
from pytest_lmeval.types import Generate

_FIELDS = ("score", "reason", "answer_gt", "answer_pred")


@dataclass(frozen=True, slots=True)
class RubricScorer:
    """A metric that asks the run's judge; ``texts`` finds the texts to compare."""

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
        return (*_FIELDS, *(["human_label"] if "human_label" in self.model.extras else []))

    @property
    def prompt_hash(self) -> str:
        """The hash of the parts of the judge's prompt that all rows share: 12 hexadecimal digits."""
        extras = self.model.extras
        try:
            return Rubric.of(extras.get("rubric"), extras.get("levels")).sha256
        except RecordRefused:  # levels that are filled in for every row
            return hashlib.sha256(json.dumps(extras, sort_keys=True, default=str).encode("ascii")).hexdigest()[:12]

    def request(self, scoring: Scoring) -> Generate:
        """Return the first question about a row."""
        graded, predicted, extras = self._given(scoring)
        return graded.question(predicted.text, self.texts.targets(scoring), extras).first

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the judge's level and reason, or neither if two replies cannot be read."""
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
        asked = "\n\n".join(str(each.get("content")) for each in scoring.variables.get("messages", ())[:-1])
        graded = Graded(scoring.task, scoring.example, asked, scoring.tools.judge, self.key)
        extras = {name: self.texts.filled(value, scoring) for name, value in self.model.extras.items()}
        return graded, self.texts.predicted(scoring), extras
