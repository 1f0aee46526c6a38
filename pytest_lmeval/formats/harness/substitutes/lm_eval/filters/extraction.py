"""The substitute of ``lm_eval.filters.extraction``: a base class of filters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pytest_lmeval.formats.harness.filters import found_in
from pytest_lmeval.formats.harness.substitutes.lm_eval.api.filter import Filter
from pytest_lmeval.metrics.parts.patterns import compiled

__all__ = ["Filter", "RegexFilter"]


class RegexFilter(Filter):
    """Takes the match of a pattern in each response."""

    def __init__(
        self, regex_pattern: str = r"#### (\-?[0-9\.\,]+)", group_select: int = 0, fallback: Any = "[invalid]"
    ):
        self.regex_pattern = regex_pattern
        self.regex = re.compile(regex_pattern)
        self.group_select = group_select
        self.fallback = fallback

    def apply(self, resps: Iterable[Sequence[Any]], docs: Sequence[Any]) -> list[list[Any]]:
        """Return the match in each response, or the fallback."""
        pattern = compiled(self.regex.pattern, self.regex.flags)
        return [[each or self.fallback for each in found_in(pattern, given, self.group_select)] for given in resps]
