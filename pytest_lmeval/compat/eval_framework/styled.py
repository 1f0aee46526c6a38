"""A task class whose texts may come from a style: ``TASK_STYLER``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_lmeval.compat.eval_framework.styles import TaskStyler
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks import BaseTask
from pytest_lmeval.tasks.base import NOT_CALLED, TASK_STYLER, SubjectT


class StyledTask(BaseTask[SubjectT]):
    """A task class; with a ``TASK_STYLER`` it writes ``_get_raw_question``, ``_get_choices``, ``_get_correct_index``.

    The style then says ``RESPONSE_TYPE`` and ``METRICS``, and each text that the class does not write itself.
    """

    TASK_STYLER: ClassVar[TaskStyler]
    _NOT_CALLED: ClassVar[Mapping[str, str]] = {name: why for name, why in NOT_CALLED.items() if name != TASK_STYLER}

    def __init_subclass__(cls, **options: Any) -> None:
        """Take what the style decides for the whole class."""
        super().__init_subclass__(**options)
        style = getattr(cls, TASK_STYLER, None)
        if isinstance(style, TaskStyler):
            cls.RESPONSE_TYPE, cls.METRICS = style.response_type, style.metrics
        elif style is not None:
            detail = f"{cls.__name__}: expected MCStyle, ClozeStyle, BPBStyle or another TaskStyler, got {style!r:.80}"
            raise RecordRefused("bad_type", TASK_STYLER, detail)

    def _get_raw_question(self, item: dict[str, Any]) -> str:
        """Return the question alone, for the style."""
        raise NotImplementedError

    def _get_choices(self, item: dict[str, Any]) -> list[str]:
        """Return the answers to choose from, for the style."""
        raise NotImplementedError

    def _get_correct_index(self, item: dict[str, Any]) -> int:
        """Return the place of the right answer, from 0, for the style."""
        raise NotImplementedError

    def _get_instruction_text(self, item: dict[str, Any]) -> str:
        style = self._style
        if style is None:
            return super()._get_instruction_text(item)
        return style.get_instruction_text(self._get_raw_question(item), self._get_choices(item))

    def _get_ground_truth(self, item: dict[str, Any]) -> str | list[str] | None:
        style = self._style
        if style is None:
            return super()._get_ground_truth(item)
        return style.get_ground_truth(self._get_choices(item), self._get_correct_index(item))

    def _get_fewshot_target_text(self, item: dict[str, Any]) -> str:
        style = self._style
        if style is None:
            return super()._get_fewshot_target_text(item)
        return style.get_fewshot_target_text(self._get_choices(item), self._get_correct_index(item))

    def _get_cue_text(self, item: dict[str, Any]) -> str:
        style = self._style
        return super()._get_cue_text(item) if style is None else style.get_cue_text()

    def _get_possible_completions(self, item: dict[str, Any]) -> list[str] | None:
        style = self._style
        if style is None:
            return super()._get_possible_completions(item)
        return style.get_possible_completions(self._get_choices(item), self._get_correct_index(item))

    @property
    def _style(self) -> TaskStyler | None:
        return getattr(self, TASK_STYLER, None)
