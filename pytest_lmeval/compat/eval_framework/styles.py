"""A task class whose texts may come from a style, such as a question with lettered choices."""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks import (
    AccuracyCompletion,
    AccuracyLoglikelihood,
    AccuracyNormLoglikelihood,
    BaseTask,
    BitsPerByteLoglikelihood,
    Language,
    ResponseType,
)
from pytest_lmeval.tasks.base import NOT_CALLED, TASK_STYLER, SubjectT

_LIKELIHOODS = (AccuracyLoglikelihood, AccuracyNormLoglikelihood, BitsPerByteLoglikelihood)
_WORDS = {Language.ENG: ("Question: ", "Answer:"), Language.DEU: ("Frage: ", "Antwort:")}


def get_n_letters(n: int) -> list[str]:
    """Return the first ``n`` capital letters."""
    return list(string.ascii_uppercase[: max(n, 0)])


def answer_key_to_index(key: str) -> int:
    """Return the index of a choice from its letter (``A`` is 0) or its number (``1`` is 0).

    >>> [answer_key_to_index(key) for key in ("A", "c", "1", "3")]
    [0, 2, 0, 2]
    """
    return int(key) - 1 if key.isdigit() else ord(key.upper()) - ord("A")


def shuffle_correct_with_distractors(correct: str, distractors: list[str], seed_text: str) -> tuple[list[str], int]:
    """Shuffle the choices with the seed ``seed_text``; return them and the index of the correct choice."""
    places = list(range(len(distractors) + 1))
    random.Random(int.from_bytes(hashlib.sha256(seed_text.encode()).digest(), "big")).shuffle(places)
    choices = [*distractors, correct]
    return [choices[place] for place in places], places.index(len(distractors))


def format_mc_prompt(question_text: str, choices: list[str], *, space_prefixed_labels: bool = False) -> str:
    r"""Return a question, followed by a line for each choice.

    >>> format_mc_prompt("1 + 1?", ["1", "2"])
    '1 + 1?\nA. 1\nB. 2\n'
    """
    before = " " if space_prefixed_labels else ""
    labelled = zip(get_n_letters(len(choices)), choices, strict=False)
    lines = [f"{before}{label}. {choice}" for label, choice in labelled]
    return "\n".join((question_text, "\n".join(lines), ""))


class TaskStyler:
    """The prompts and metrics of task classes that have this style as their ``TASK_STYLER``."""

    response_type: ClassVar[ResponseType] = ResponseType.LOGLIKELIHOODS
    metrics: ClassVar[Sequence[Any]] = _LIKELIHOODS

    def __init__(self, question_prefix: str = "Question: ", cue_text: str = "Answer:") -> None:
        self.question_prefix = question_prefix
        self._cue_text = cue_text

    @classmethod
    def for_language(cls, language: Language, **options: Any) -> TaskStyler:
        """Return the style with German words for German, or with English words for any other language."""
        if language in _WORDS:
            prefix, cue = _WORDS[language]
            options = {"question_prefix": prefix, "cue_text": cue, **options}
        return cls(**options)

    def get_question_text(self, raw_question: str) -> str:
        """Return the question, preceded by the style's prefix."""
        return f"{self.question_prefix}{raw_question}"

    def get_cue_text(self) -> str:
        """Return the text that the answer begins with."""
        return self._cue_text

    def get_instruction_text(self, raw_question: str, choices: list[str]) -> str:
        """Return the user's text."""
        raise NotImplementedError

    def get_ground_truth(self, choices: list[str], correct_index: int) -> str:
        """Return the right answer."""
        raise NotImplementedError

    def get_possible_completions(self, choices: list[str], correct_index: int | None = None) -> list[str] | None:
        """Return the completions to compare, or None if the model writes the answer."""
        raise NotImplementedError

    def get_fewshot_target_text(self, choices: list[str], correct_index: int) -> str:
        """Return the answer text of a few-shot example."""
        return f"{self.get_cue_text()}{self.get_ground_truth(choices, correct_index)}"


class MCStyle(TaskStyler):
    """A style that lists the choices in the question and expects the letter of a choice."""

    def __init__(
        self, question_prefix: str = "Question: ", cue_text: str = "Answer:", space_prefixed_labels: bool = False
    ) -> None:
        super().__init__(question_prefix, cue_text)
        self.space_prefixed_labels = space_prefixed_labels

    def get_instruction_text(self, raw_question: str, choices: list[str]) -> str:
        """Return the question and a line for each choice."""
        question = self.get_question_text(raw_question)
        return format_mc_prompt(question, choices, space_prefixed_labels=self.space_prefixed_labels)

    def get_ground_truth(self, choices: list[str], correct_index: int) -> str:
        """Return a space and the letter of the right choice."""
        return f" {get_n_letters(len(choices))[correct_index]}"

    def get_possible_completions(self, choices: list[str], correct_index: int | None = None) -> list[str] | None:
        return [f" {letter}" for letter in get_n_letters(len(choices))]


class MCCompletionStyle(MCStyle):
    """A style that lists the choices in the question and expects the text of a choice."""

    response_type: ClassVar[ResponseType] = ResponseType.COMPLETION
    metrics: ClassVar[Sequence[Any]] = (AccuracyCompletion,)

    def get_ground_truth(self, choices: list[str], correct_index: int) -> str:
        return choices[correct_index]

    def get_possible_completions(self, choices: list[str], correct_index: int | None = None) -> list[str] | None:
        return None

    def get_fewshot_target_text(self, choices: list[str], correct_index: int) -> str:
        return f"{self.get_cue_text()} {self.get_ground_truth(choices, correct_index)}"


class ClozeStyle(TaskStyler):
    """A style that omits the choices from the question and compares the probability of each choice."""

    def __init__(
        self,
        question_prefix: str = "Question: ",
        cue_text: str = "Answer:",
        trailing_newline: bool = True,
        leading_space_continuations: bool = True,
    ) -> None:
        super().__init__(question_prefix, cue_text)
        self.trailing_newline = trailing_newline
        self.leading_space_continuations = leading_space_continuations

    def get_instruction_text(self, raw_question: str, choices: list[str]) -> str:
        return self.get_question_text(raw_question) + ("\n" if self.trailing_newline else "")

    def get_ground_truth(self, choices: list[str], correct_index: int) -> str:
        return self._continuation(choices[correct_index])

    def get_possible_completions(self, choices: list[str], correct_index: int | None = None) -> list[str] | None:
        return [self._continuation(choice) for choice in choices]

    def _continuation(self, choice: str) -> str:
        return f" {choice}" if self.leading_space_continuations else choice


class BPBStyle(ClozeStyle):
    """A style that omits the choices from the question and scores only the right choice."""

    metrics: ClassVar[Sequence[Any]] = (BitsPerByteLoglikelihood,)

    def get_possible_completions(self, choices: list[str], correct_index: int | None = None) -> list[str] | None:
        """Return only the right choice; raise ValueError without ``correct_index``."""
        if correct_index is None:
            raise ValueError("BPBStyle scores the right choice alone: pass its correct_index")
        return [self._continuation(choices[correct_index])]


class StyledTask(BaseTask[SubjectT]):
    """A task class whose texts may come from a style in ``TASK_STYLER``.

    A class with a style defines ``_get_raw_question``, ``_get_choices`` and ``_get_correct_index``. The style sets
    ``RESPONSE_TYPE`` and ``METRICS``, and supplies each text that the class does not define.
    """

    TASK_STYLER: ClassVar[TaskStyler]
    _NOT_CALLED: ClassVar[Mapping[str, str]] = {name: why for name, why in NOT_CALLED.items() if name != TASK_STYLER}

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the response type and the metrics from the style."""
        super().__init_subclass__(**options)
        style = getattr(cls, TASK_STYLER, None)
        if isinstance(style, TaskStyler):
            cls.RESPONSE_TYPE, cls.METRICS = style.response_type, style.metrics
        elif style is not None:
            detail = f"{cls.__name__}: expected MCStyle, ClozeStyle, BPBStyle or another TaskStyler, got {style!r:.80}"
            raise RecordRefused("bad_type", TASK_STYLER, detail)

    def _get_raw_question(self, item: dict[str, Any]) -> str:
        """Return the question without choices, before the style formats it."""
        raise NotImplementedError

    def _get_choices(self, item: dict[str, Any]) -> list[str]:
        """Return the possible answers to the question."""
        raise NotImplementedError

    def _get_correct_index(self, item: dict[str, Any]) -> int:
        """Return the index of the right answer in the possible answers."""
        raise NotImplementedError

    def _get_instruction_text(self, item: dict[str, Any]) -> str:
        if (style := self._style) is None:
            return super()._get_instruction_text(item)
        return style.get_instruction_text(self._get_raw_question(item), self._get_choices(item))

    def _get_ground_truth(self, item: dict[str, Any]) -> str | list[str] | None:
        if (style := self._style) is None:
            return super()._get_ground_truth(item)
        return style.get_ground_truth(self._get_choices(item), self._get_correct_index(item))

    def _get_fewshot_target_text(self, item: dict[str, Any]) -> str:
        if (style := self._style) is None:
            return super()._get_fewshot_target_text(item)
        return style.get_fewshot_target_text(self._get_choices(item), self._get_correct_index(item))

    def _get_cue_text(self, item: dict[str, Any]) -> str:
        style = self._style
        return super()._get_cue_text(item) if style is None else style.get_cue_text()

    def _get_possible_completions(self, item: dict[str, Any]) -> list[str] | None:
        if (style := self._style) is None:
            return super()._get_possible_completions(item)
        return style.get_possible_completions(self._get_choices(item), self._get_correct_index(item))

    @property
    def _style(self) -> TaskStyler | None:
        return getattr(self, TASK_STYLER, None)
