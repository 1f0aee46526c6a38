"""The substitute of ``lm_eval.api.filter``: the base class of filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class BaseFilter:
    """Changes the responses to documents; a task's own filter overrides :meth:`apply`."""

    def __init__(self, **_: Any) -> None:
        pass

    def apply(self, resps: Iterable[Sequence[Any]], docs: Sequence[Any]) -> Iterable[Any]:
        """Return the responses unchanged."""
        return resps


Filter = BaseFilter
"""The name that tasks import."""
