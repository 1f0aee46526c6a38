"""A warning about a task file, and helpers for all rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.leaderboard.passing import missed
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task, Tools
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion, Example

RULES: Mapping[str, str] = MappingProxyType(
    {
        "answer_in_few_shot": "a model that copies from the worked examples is right here",
        "answer_in_prompt": "a model need not know the answer to be right here",
        "misspelt_key": "the key is kept, and changes nothing",
        "near_duplicate": "the two count as two observations and are hardly more than one",
        "overlap": "a score on either task says less than it seems to",
        "skewed_answers": "compare scores with that, not with chance",
    }
)
"""The meaning of each rule's warnings for someone who reads the board."""

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class LintWarning:
    """A likely mistake: its place, a description, and the rule that found it."""

    path: Path
    line_number: int
    rule: str
    detail: str

    def at(self) -> str:
        """Return the warning as one line: ``path:line: warning rule: finding; meaning``."""
        # Ids and prompts in the detail may have line breaks.
        return printable(f"{self.path}:{self.line_number}: warning {self.rule}: {self.detail}", keep="")


def words(text: str) -> tuple[str, ...]:
    r"""Return the ``\w+`` of the lowercased text."""
    return tuple(_WORD.findall(text.lower()))


def tokens(text: str) -> tuple[str, ...]:
    """Return the words and the symbols of the lowercased text, so that ``2 + 3`` and ``2 * 3`` differ."""
    return tuple(_TOKEN.findall(text.lower()))


def shown(text: str) -> str:
    """Return ``text`` quoted and shortened, on one line."""
    short = " ".join(text.split())
    return repr(short if len(short) <= _SHOWN else f"{short[:_SHOWN]}...")


def has_labels(example: Example) -> bool:
    """Return True if answers come from a small set, which prompts and worked examples usually list."""
    return example.category in {"mcq", "classification"} or example.metric == "multiple_choice"


def is_scored_by_text(task: Task, example: Example, registry: Registry) -> bool:
    """Return True if the metrics are in the registry and run no program, so that a text alone can be scored."""
    names = (task.metric_name(example), *task.further_metrics(example))
    found = [registry.metrics.get(name) for name in names]
    return found[0] is not None and not any(metric is not None and metric.needs_sandbox for metric in found)


def score_of(task: Task, example: Example, outputs: Sequence[str]) -> float:
    """Return the best score of ``outputs`` as answers to ``example``; 0.0 if they cannot be scored.

    An output that misses the threshold of a further score also counts as 0.0.
    """
    try:
        scores = [task.score(example, [Completion(output)], Tools()) for output in outputs]
        return max(0.0 if missed(each.metrics, each.thresholds) else float(each.value) for each in scores)
    except (LmevalError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return 0.0
