"""Have a judge grade text by a rubric, for records, rows of YAML tasks and eval functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.question import Consultation, Question, consult, judge_of
from pytest_lmeval.judging.rubric import Rubric
from pytest_lmeval.judging.verdicts import level_of
from pytest_lmeval.types import Generate, Media, Message, Score


class UnreadReply(ScoringError):
    """The error for two unreadable replies in a row from a judge.

    ``consultation`` contains both replies.
    """

    def __init__(self, message: str, consultation: Consultation) -> None:
        super().__init__(message)
        self.consultation = consultation


@dataclass(frozen=True, slots=True)
class Graded:
    """An example whose answer a judge grades.

    ``asked`` is the prompt to the model, or "" if unknown. ``judges`` gives access to the run's judges. ``scorer`` is
    the scorer's name in the record of a reply. The judge also sees the ``media`` of the prompt.
    """

    task: str
    example: str
    asked: str
    judges: Any = None
    scorer: str = "rubric"
    media: tuple[Media, ...] = ()

    def __call__(self, text: str, targets: Sequence[str], extras: Mapping[str, Any]) -> Score:
        """Return the level that the judge gives ``text``; raise ScoringError if the judge's reply cannot be read."""
        found = consult(judge_of(self.judges, ""), self.question(text, targets, extras))
        if found.unread:
            raise UnreadReply(f"{self.scorer}: {found.unread}", found)
        score, reason = found.verdict
        entries = [dict(entry) for entry in found.entries]
        if (label := extras.get("human_label")) is not None:
            entries[-1]["human_label"] = label
        return Score(score, {"reason": reason, "judge": entries}, usage=found.usage)

    def question(self, text: str, targets: Sequence[str], extras: Mapping[str, Any]) -> Question:
        """Return the question to the judge."""
        rubric = Rubric.of(extras.get("rubric"), extras.get("levels"))
        material = {"question": self.asked, "reference": "\nor\n".join(targets), "text": text}
        kept = {name: each for name, each in material.items() if each or name == "text"}
        return about(rubric, self.scorer, kept, partial(Generate, task=self.task, id=self.example), self.media)


def about(
    rubric: Rubric,
    asker: str,
    material: Mapping[str, str],
    make: Callable[..., Generate],
    media: Sequence[Media] = (),
) -> Question:
    """Return the question that asks for a grade of ``material``, which maps roles to texts.

    ``make`` makes requests. The ``media`` that the material mentions follow it in the message.
    """
    message = Message.of_parts("user", (rubric.asks(material), *media))
    return Question(asker, level_of(rubric), (message,), make, rubric.sha256)
