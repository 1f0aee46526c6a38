"""From what a model wrote to a score: the post-process rules, and the one place that applies a metric.

Every rule is deterministic, stateless and linear in the length of the text. Exactly one applies to a record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_lmeval.errors import ScoringError, UnknownName
from pytest_lmeval.types import Completion, Metric, Score


class Extraction(NamedTuple):
    """What a rule made of a text; ``found`` is False when there was nothing to extract (``unparsed``)."""

    text: str
    found: bool


Rule = Callable[[str], Extraction]

# Possessive quantifiers (``*+``) keep each search linear: a run of blanks or backticks is read once.
_LONE_LETTER = re.compile(r"(?<![A-Za-z])[A-E](?![A-Za-z])")
_LETTER = re.compile(r"[A-E]")
_LINE = re.compile(r"\S[^\r\n]*+")
_OPENING_FENCE = re.compile(r"^([^`\n]*+)(`{3,}+)[^`\n]*+\n", re.MULTILINE)
_CLOSING_FENCE = re.compile(r"^([ \t]*+)(`{3,}+)[ \t]*+$", re.MULTILINE)
_FENCE_BEFORE_TEXT = re.compile(r"^([ \t]*+)(`{3,}+)", re.MULTILINE)
_FENCE_AFTER_CODE = re.compile(r"(?<=[^\s`])()[ \t]*+(`{3,}+)[ \t]*+$", re.MULTILINE)
_NO_BLANK = re.compile(r"\s*+")
_COMMA_IN_NUMBER = re.compile(r"(?<=[0-9]),(?=[0-9])")
_ANSWER_LINE = re.compile(r"(?:A:|####)(.*)")


def post_process(rule: str, text: str) -> str:
    """Return ``text`` after the rule named ``rule``; raise ``UnknownName`` for a name that is not in ``RULES``."""
    return extract(rule, text).text


def extract(rule: str, text: str) -> Extraction:
    """Apply the rule named ``rule`` and say whether it found anything; raise ``UnknownName`` as above."""
    if rule not in RULES:
        raise UnknownName("post-process rule", rule, RULES)
    return RULES[rule](text)


def split_thoughts(text: str, tags: tuple[str, str], *, opened: bool = False) -> tuple[str, str] | None:
    r"""Return the thoughts at the beginning of ``text`` and the answer behind them; None where it begins with none.

    A text begins with thoughts if it begins with the opening tag, or has a closing tag and no opening one ahead of it:
    that was part of the prompt. ``opened`` says that it was. What is left is read so again, until it begins with none.
    Thoughts that do not end leave no answer. Line breaks behind the closing tag are no part of the answer, and blanks
    alone are no answer.

    >>> split_thoughts("<think>A or C?</think>\nC", ("<think>", "</think>"))
    ('A or C?', 'C')
    """
    start, end = tags
    thoughts: list[str] = []
    place = 0
    while True:
        begin = _NO_BLANK.match(text, place).end()  # type: ignore[union-attr]  # it matches the empty text, too
        begins = text.startswith(start, begin)
        first = begin + len(start) if begins else place
        close = text.find(end, first)
        ahead = text.find(start, first, len(text) if close < 0 else close)
        if not begins and (ahead >= 0 or (close < 0 and not (opened and not thoughts))):
            break
        thoughts.append(text[first : len(text) if close < 0 else close])
        place = len(text) if close < 0 else close + len(end)
    if not thoughts:
        return None
    rest = text[place:]
    return "\n".join(thoughts), rest.lstrip("\r\n") if rest.strip() else ""


def predicted(completion: Completion, rule: Rule, metric: Metric) -> Extraction:
    """Return what ``metric`` sees of a completion: its text after the rule, or its output with the tool calls.

    Thoughts without an answer are nothing that could be right, or not wrong.
    """
    text, found = (completion.output, True) if metric.takes_calls else rule(completion.text)
    return Extraction(text, found and not completion.has_no_answer)


def apply_metric(
    metric: Metric,
    prediction: Extraction,
    targets: Sequence[str],
    extras: Mapping[str, Any],
    helper: Any = None,
) -> Score:
    """Return the score of a prediction: all that the metric says of it, and whether there was nothing to score.

    ``helper`` is the sandbox that the metric needs, or what asks the judge that it asks. ``extras.not`` turns a
    right-or-wrong metric round, and a judge's level; what could not be parsed is wrong all the same.
    """
    given = (prediction.text, targets, extras)
    if metric.asks_judge and not prediction.found:
        return Score(0.0, unparsed=True)
    has_helper = metric.needs_sandbox or metric.asks_judge
    value = metric.function(*given, helper) if has_helper else metric.function(*given)
    if not isinstance(value, Score):
        score = Score(value, prediction=prediction.text, unparsed=not prediction.found)
    else:
        # A text without a fence was code all the same where Python could read it.
        is_code = value.details.get("code_status", "syntax_error") != "syntax_error"
        unparsed = value.unparsed or (not prediction.found and not is_code)
        score = replace(value, prediction=prediction.text, unparsed=unparsed)
    if (metric.binary or metric.asks_judge) and extras.get("not") is True:
        return replace(score, value=0.0 if score.unparsed else 1.0 - score.value)
    return score


def share_of(value: Any, metric: str) -> float:
    """Return what ``metric`` gave as a plain float; raise ScoringError unless it is a finite number in [0, 1]."""
    # A subclass of float, such as numpy's, cannot travel between processes.
    number = float(value) if hasattr(value, "__float__") else math.nan
    if not 0.0 <= number <= 1.0:
        raise ScoringError(f"metric {metric!r} gave {value!r:.80}; expected a finite number in [0, 1]")
    return number


def _none(text: str) -> Extraction:
    """Return the text as it is."""
    return Extraction(text, True)


def _strip_whitespace(text: str) -> Extraction:
    """Strip both ends."""
    return Extraction(text.strip(), True)


def _lower(text: str) -> Extraction:
    """Lowercase; both ends keep their whitespace."""
    return Extraction(text.lower(), True)


def _extract_letter(text: str) -> Extraction:
    """Return the first A-E with no ASCII letter beside it, else the first A-E anywhere, else ``""``."""
    match = _LONE_LETTER.search(text) or _LETTER.search(text)
    return Extraction(match[0], True) if match else Extraction("", False)


def _extract_first_line(text: str) -> Extraction:
    r"""Return the first non-blank line, stripped, else ``""``. Lines end with ``\n``, ``\r\n`` or ``\r``."""
    match = _LINE.search(text)
    return Extraction(match[0].rstrip(), True) if match else Extraction("", False)


def _extract_code_block(text: str) -> Extraction:
    r"""Return the body of the first block fenced by three or more backticks, else the whole text, not found.

    Read as CommonMark reads it (https://spec.commonmark.org/0.31.2/#fenced-code-blocks): any info string; closed by a
    line of at least as many backticks, indented by at most three more than the fence; without one the block runs
    to the end of the text, which is what a stop sequence or a token limit leaves behind. More lenient in that
    text may precede the opening fence, and that, if no line closes the block, the first backticks do that have text
    behind them on their line, or are at the end of a line of code. An open block with nothing in it is no block.

    The body has no final newline, ``\n`` for ``\r\n``, and is moved left by the indentation of an indented fence.
    """
    unified = text.replace("\r\n", "\n")
    opening = _OPENING_FENCE.search(unified)
    if opening is None:
        return Extraction(text, False)
    end = _end_of_body(unified, opening)
    body = unified[opening.end() : end].removesuffix("\n")
    if end is None and not body.strip():
        return Extraction(text, False)
    return Extraction(_move_left(body, at_most=len(opening[1])), True)


def _end_of_body(text: str, opening: re.Match[str]) -> int | None:
    indent, width = len(opening[1]) + 3, len(opening[2])

    def first(pattern: re.Pattern[str]) -> int | None:
        fences = pattern.finditer(text, opening.end())
        return next((each.start() for each in fences if len(each[1]) <= indent and len(each[2]) >= width), None)

    if (bare := first(_CLOSING_FENCE)) is not None:
        return bare
    return min(filter(None, map(first, (_FENCE_BEFORE_TEXT, _FENCE_AFTER_CODE))), default=None)


def _move_left(body: str, at_most: int) -> str:
    lines = body.split("\n")
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    width = min([at_most, *indents])
    return "\n".join(line[width:] for line in lines)


def _extract_answer(text: str) -> Extraction:
    """Return what follows the last line-opening ``A:`` or ``####`` on its line, else ``""``, not found.

    Stripped, and without the commas between digits. A marker with nothing after it is not found either. ``""`` on
    both sides means that nobody gave an answer, so whoever runs targets through this rule must look at ``found``.
    """
    for line in reversed(text.split("\n")):
        if match := _ANSWER_LINE.match(line):
            answer = _COMMA_IN_NUMBER.sub("", match[1].strip())
            return Extraction(answer, answer != "")
    return Extraction("", False)


_SPEC: Mapping[str, Rule] = {
    "none": _none,
    "strip_whitespace": _strip_whitespace,
    "lower": _lower,
    "extract_letter": _extract_letter,
    "extract_code_block": _extract_code_block,
    "extract_first_line": _extract_first_line,
}
SPEC_RULES: frozenset[str] = frozenset(_SPEC)
"""The closed vocabulary of spec records; the other rules are for compact records only."""
RULES: Mapping[str, Rule] = MappingProxyType({**_SPEC, "extract_answer": _extract_answer})
