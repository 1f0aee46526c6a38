"""Define the metric for ``METRICS`` that asks a judge, a second model, to score an answer."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_lmeval.judging.prompt import case_prompt, tagged
from pytest_lmeval.judging.replies import read_label, read_number
from pytest_lmeval.types import Message


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer to judge: the ``prediction``, the user's last ``question``, and all ``messages`` before the answer.

    ``targets`` holds the correct answers, ``extras`` is the metric context, and ``raw`` is the text before
    post-processing.
    """

    question: str
    prediction: str
    targets: Sequence[str]
    extras: Mapping[str, Any]
    messages: Sequence[Message] = ()
    raw: str = ""


class LLMJudgeScore:
    """A judge's verdict on an answer: a number from ``SCORE_MIN`` to ``SCORE_MAX``, or a label from ``LABELS``.

    The score, from 0 to 1, is the number's position between ``SCORE_MIN`` and ``SCORE_MAX``, or the label's value.
    ``MODEL_KEY`` names a judge for this metric, as ``--lm-judge`` names the run's judge. A ``PROMPT`` may use
    ``{question}``, ``{prediction}``, ``{reference}`` (the correct answers), ``{material}`` (all three between tags that
    no answer can close), and ``{reply}`` (the required form of the reply).
    """

    NAME: ClassVar[str] = "llm_judge"
    THRESHOLD: ClassVar[float] = 0.5
    LABELS: ClassVar[Mapping[str, float]] = {}
    SCORE_MIN: ClassVar[float] = 1
    SCORE_MAX: ClassVar[float] = 5
    SYSTEM_PROMPT: ClassVar[str] = ""
    PROMPT: ClassVar[str] = ""
    MODEL_KEY: ClassVar[str] = ""
    MAX_TOKENS: ClassVar[int | None] = None

    def prompt(self, answer: JudgedAnswer) -> str:
        """Return the prompt that asks the judge about ``answer``."""
        reference = "\n".join(answer.targets)
        if not self.PROMPT:
            form = f"Reply with {self.reply}, and with nothing else."
            return case_prompt("How good is the answer?", answer.question, answer.prediction, reference, form)
        given = {"question": answer.question, "reference": reference, "prediction": answer.prediction}
        return self.PROMPT.format(**given, material=tagged(given), reply=self.reply)

    def read(self, reply: str) -> float | None:
        """Return the score in [0, 1] from the judge's reply, or None if the reply has no score."""
        if self.LABELS:
            label = read_label(reply, list(self.LABELS))
            return None if label is None else float(self.LABELS[label])
        number = read_number(reply, self.SCORE_MIN, self.SCORE_MAX)
        return None if number is None else (number - self.SCORE_MIN) / (self.SCORE_MAX - self.SCORE_MIN)

    @property
    def reply(self) -> str:
        """The required form of the reply, for use in prompts."""
        if self.LABELS:
            return f"exactly one of these labels: {', '.join(self.LABELS)}"
        return f"one number from {self.SCORE_MIN:g} to {self.SCORE_MAX:g}"

    @property
    def prompt_hash(self) -> str:
        """A hash of the settings and methods that determine the judge's prompts and scores (12 hexadecimal digits)."""
        own = [_source(type(self), name) for name in ("prompt", "read")]
        parts = [self.SYSTEM_PROMPT, self.PROMPT, dict(self.LABELS), self.SCORE_MIN, self.SCORE_MAX, *own]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def _source(kind: type[LLMJudgeScore], method: str) -> str:
    if getattr(kind, method) is getattr(LLMJudgeScore, method):
        return ""
    try:
        return inspect.getsource(getattr(kind, method))
    except (OSError, TypeError):  # the method has no source file
        return "unknown"
