"""Return an example's question, answers and scores as short text for tables, annotations and terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from pytest_lmeval.leaderboard.asked import answered, asked, wanted
from pytest_lmeval.leaderboard.details import is_function
from pytest_lmeval.leaderboard.explained import explanation_of, messages_text
from pytest_lmeval.report.tables import Row, head, tail
from pytest_lmeval.types import ExampleResult, Message

NO_PROMPTS = "the baseline has no prompts; one that is written with --lm-pair-by=id (ini: lm_pair_by) has them"
MOST = 80
"""The maximum length of a text in characters, without the ``...`` that marks a cut."""
_LEAD = 20


class Cells(NamedTuple):
    """An example's cells for tables, annotations and terminals: short, one-line strings; an unknown value is "".

    ``said`` and ``scores`` have one entry, or two (before and now) if the example changed.
    """

    question: str
    wanted: str
    said: Sequence[str]
    scores: Sequence[str]

    def by_name(self) -> dict[str, str]:
        """Return each cell by its column's heading."""
        scores = ("score before", "score now") if len(self.scores) > 1 else ("score",)
        return {**self._answered(self.said), **dict(zip(scores, self.scores, strict=True))}

    def lines(self) -> list[str]:
        """Return a line for each non-empty cell; each answer's line ends with its score."""
        named = self._answered([*map(_scored, self.said, self.scores)])
        return [f"{name}: {text}" for name, text in named.items() if text]

    def _answered(self, said: Sequence[str]) -> dict[str, str]:
        names = ("said before", "says now") if len(said) > 1 else ("said",)
        return {"question": self.question, "wanted": self.wanted, **dict(zip(names, said, strict=True))}


def cells_of(result: ExampleResult) -> Cells:
    """Return an example's cells from one run; an error message replaces the answer."""
    said = _said(result.error or answered(result), is_known=bool(result.predictions))
    explained = explanation_of(result) if is_function(result) and not result.error else ""
    score = _score(result.score, explained)
    return Cells(short(asked(result)), short(" | ".join(wanted(result))), [said], [score])


def changed_cells(flip: Row) -> Cells:
    """Return the cells for an example that changed, from its entry in a comparison."""
    old, new = flip["old"], flip["new"]
    is_of_function = "function" in flip
    answers = [each["output" if is_of_function else "prediction"] for each in (old, new)]
    said = [_said(answer, is_known=answer is not None) for answer in answers]
    scores = [_score(each.get("score"), each["prediction"] if is_of_function else "") for each in (old, new)]
    # Leaderboards from earlier versions lack the questions of eval functions, whose prompts are rows of data.
    question = flip.get("question", "" if is_of_function else flip.get("prompt"))
    question = short(question)
    if "old_prompt" in flip and question in changed_prompts(flip)[1]:
        question = ""
    return Cells(question, short(" | ".join(flip["targets"])), said, scores)


def short(text: str | None) -> str:
    """Return the beginning of ``text`` on one line."""
    return head(text, MOST)


def changed_prompts(flip: Row) -> tuple[str, str]:
    """Return both prompts from just before their first difference, or "the same" and an unchanged prompt's end."""
    if "old_prompt" not in flip:
        return "the same", tail(flip["prompt"], MOST)
    before, now = (" ".join(prompt.split()) for prompt in _with_roles(flip))
    if not before or max(len(before), len(now)) <= MOST:
        return before, tail(now, MOST)
    pairs = zip(before, now, strict=False)
    start = max(0, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) - _LEAD)
    return _from(start, before), _from(start, now)


def _from(start: int, text: str) -> str:
    return f"{'...' if start else ''}{short(text[start:])}"


def _with_roles(flip: Row) -> Iterator[str]:
    for prompt, messages in (("old_prompt", "old_messages"), ("prompt", "messages")):
        yield messages_text(map(Message.from_json, flip[messages])) if messages in flip else flip[prompt]


def lacks_prompt(flip: Row) -> bool:
    """Return True if an example's prompt changed and the old prompt is unknown."""
    return flip.get("old_prompt") == ""


def _said(answer: str | None, *, is_known: bool) -> str:
    return short(answer) or ("(empty)" if is_known else "")


def _score(score: float | None, explanation: str) -> str:
    return short(explanation) or ("" if score is None else f"{score:.4g}")


def _scored(said: str, score: str) -> str:
    score = f"score {score}" if score.replace(".", "").isdecimal() else score
    return f"{said} ({score})" if said and score else said or score
