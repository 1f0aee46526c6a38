"""Rubrics for grading text: a judge first gives a reason, and then one of the rubric's levels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.prompt import MATERIAL, judge_prompt
from pytest_lmeval.judging.replies import NUMBER
from pytest_lmeval.numbers import is_number

DEFAULT = {"0": "the text does not do what the rubric asks for", "1": "the text does what the rubric asks for"}
"""The levels of a rubric that sets no levels."""
_MOST_LEVELS = 100
UNREADABLE = "Your reply cannot be read. "
_TASK = """\
Grade a text by a rubric.

The rubric:
{rubric}

The levels, from the lowest to the highest:
{levels}

First say why, in one to three sentences, then give the level. {form}"""
_FORM = 'Reply with one JSON object and with nothing else: {{"reason": "...", "score": one of {levels}}}'


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rubric by which a judge grades text.

    ``text`` states the criteria, and ``levels`` gives the meaning of each number in [0, 1].
    """

    text: str
    levels: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, text: Any, levels: Any = None, prefix: str = "extras.") -> Rubric:
        """Return the rubric; raise RecordRefused for empty or invalid text, or for invalid levels.

        Levels are at least two increasing numbers in [0, 1], each with its meaning; the default levels are 0 and 1.
        """
        if not isinstance(text, str) or not text.strip():
            raise RecordRefused("bad_value", f"{prefix}rubric", f"expected a text with the criteria, got {text!r:.80}")
        return cls(text.strip(), _levels_of(DEFAULT if levels is None else levels, f"{prefix}levels"))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The levels, from low to high."""
        return tuple(number for number, _ in self.levels)

    @property
    def sha256(self) -> str:
        """The hash of the judge's prompt without the material: 12 hexadecimal digits."""
        fixed = [f"{_TASK}\n\n{{material}}\n\n{{form}}", MATERIAL, _FORM, f"{UNREADABLE}{{form}}"]
        parts = json.dumps([*fixed, self.text, self.levels])
        return hashlib.sha256(parts.encode("ascii")).hexdigest()[:12]

    def asks(self, material: Mapping[str, str]) -> str:
        """Return the judge's prompt about ``material``, which maps roles to texts; the judge grades the last text."""
        levels = "\n".join(f"{_shown(number)}: {means}" for number, means in self.levels)
        return judge_prompt(_TASK.format(rubric=self.text, levels=levels, form=self.form), material, self.form)

    @property
    def form(self) -> str:
        """The sentence that describes the form of the reply."""
        return _FORM.format(levels=self.named)

    @property
    def named(self) -> str:
        """The levels in the form in which a judge may write them."""
        return ", ".join(map(_shown, self.numbers))


def check_rubric(targets: Sequence[str], extras: Mapping[str, Any]) -> None:
    """Raise RecordRefused for an invalid rubric, wrong levels, or a human label that is neither text nor a level."""
    rubric = Rubric.of(extras.get("rubric"), extras.get("levels"))
    label = extras.get("human_label")
    if label is not None and not isinstance(label, str) and not (is_number(label) and label in rubric.numbers):
        raise RecordRefused("bad_value", "extras.human_label", f"expected one of the levels, got {label!r:.80}")


def _levels_of(given: Any, field: str) -> tuple[tuple[float, str], ...]:
    if not isinstance(given, Mapping) or not 2 <= len(given) <= _MOST_LEVELS:
        expected = f"expected an object of 2 to {_MOST_LEVELS} levels, each with its meaning"
        raise RecordRefused("bad_type", field, f'{expected}, such as {{"0": "wrong", "1": "right"}}, got {given!r:.80}')
    levels = tuple((_number(level, field), _meaning(level, means, field)) for level, means in given.items())
    for (low, _), (high, _) in pairwise(levels):
        if high <= low:
            detail = f"expected increasing numbers, got {_shown(high)} after {_shown(low)}"
            raise RecordRefused("bad_value", field, detail)
    return levels


def _number(level: Any, field: str) -> float:
    text = level.strip() if isinstance(level, str) else level
    number = float(text) if isinstance(text, str) and NUMBER.fullmatch(text) else text
    if not is_number(number) or not 0 <= number <= 1:
        raise RecordRefused("bad_value", field, f"expected numbers from 0 to 1, got {level!r:.80}")
    return float(number)


def _shown(number: float) -> str:
    # The form in which a judge may write a level: not rounded, and 1 for 1.0.
    return str(int(number)) if number.is_integer() else repr(number)


def _meaning(level: Any, means: Any, field: str) -> str:
    if not isinstance(means, str) or not means.strip():
        raise RecordRefused("bad_value", f"{field}.{level}", f"expected a text with its meaning, got {means!r:.80}")
    return " ".join(means.split())
