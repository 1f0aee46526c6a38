"""The metric of a row that a judge grades by a rubric."""

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
    """A metric that asks the run's judge; ``texts`` finds what is compared."""

    texts: ComparingScorer
    judge: str = ""
    verdict: str = "score"
    candidates: tuple[str, ...] = ("score",)

    @property
    def key(self) -> str:
        """What ``scores.KEY`` calls it."""
        return self.texts.key

    @property
    def model(self) -> Any:
        """What the task file says of it."""
        return self.texts.model

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields it always yields."""
        return (*_FIELDS, *(["human_label"] if "human_label" in self.model.extras else []))

    @property
    def prompt_hash(self) -> str:
        """The hash of what is the same for all rows of what the judge is asked: 12 hexadecimal digits."""
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
        """Return the level that the judge gives, and its reason; a reply that cannot be read twice gives neither."""
        graded, predicted, extras = self._given(scoring)
        targets = self.texts.targets(scoring)
        fields: dict[str, Any] = {"answer_gt": targets[0] if len(targets) == 1 else list(targets)}
        fields["answer_pred"] = predicted.text
        if "human_label" in self.model.extras:
            fields["human_label"] = extras["human_label"]
        metric = self.texts.kit.registry.metric(self.model.type)
        try:
            found = apply_metric(metric, predicted, targets, extras, graded)
        except UnreadReply as error:
            said = error.said
            none = {"score": None, "reason": None, **fields}
            return ScorerOutput(none, predicted.text, unscorable=said.unread, judge=said.entries, usage=said.usage)
        known = {"score": share_of(found.value, self.model.type), "reason": found.details.get("reason", ""), **fields}
        judge = found.details.get("judge", ())
        return ScorerOutput(known, predicted.text, found.unparsed, judge=judge, usage=found.usage)

    def _given(self, scoring: Scoring) -> tuple[Graded, Extraction, dict[str, Any]]:
        asked = "\n\n".join(str(each.get("content")) for each in scoring.variables.get("messages", ())[:-1])
        graded = Graded(scoring.task, scoring.example, asked, scoring.tools.judge, self.key)
        extras = {name: self.texts.filled(value, scoring) for name, value in self.model.extras.items()}
        return graded, self.texts.predicted(scoring), extras
