"""Post-process completions, and score them with metrics.

Every rule is deterministic and stateless, and takes time proportional to the length of the text. Each record uses
exactly one rule.
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
    """The result of a rule; if the rule found nothing to extract, ``found`` is False."""

    text: str
    found: bool


Rule = Callable[[str], Extraction]

# Possessive quantifiers (``*+``) keep each search linear.
_LONE_LETTER = re.compile(r"(?<![A-Za-z])[A-E](?![A-Za-z])")
_LETTER = re.compile(r"[A-E]")
_LINE = re.compile(r"\S[^\r\n]*+")
_OPENING_FENCE = re.compile(r"^([^`\n]*+)(`{3,}+)([^`\n]*+)\n", re.MULTILINE)
_PYTHON = re.compile(r"[ \t{.]*+(?:python|python3|py|py3)(?![\w-])", re.IGNORECASE)
_MOST_BLOCKS = 32  # the search for each block may reach the end of the text
_CLOSING_FENCE = re.compile(r"^([ \t]*+)(`{3,}+)[ \t]*+$", re.MULTILINE)
_FENCE_BEFORE_TEXT = re.compile(r"^([ \t]*+)(`{3,}+)", re.MULTILINE)
_FENCE_AFTER_CODE = re.compile(r"(?<=[^\s`])()[ \t]*+(`{3,}+)[ \t]*+$", re.MULTILINE)
_NO_BLANK = re.compile(r"\s*+")
_COMMA_IN_NUMBER = re.compile(r"(?<=[0-9]),(?=[0-9])")
_ANSWER_LINE = re.compile(r"(?:A:|####)(.*)")


def post_process(rule: str, text: str) -> str:
    """Apply the rule named ``rule`` to ``text``; raise ``UnknownName`` if ``RULES`` does not contain the name."""
    return extract(rule, text).text


def extract(rule: str, text: str) -> Extraction:
    """Return what the rule named ``rule`` extracts; raise ``UnknownName`` if ``RULES`` does not contain the name."""
    if rule not in RULES:
        raise UnknownName("post-process rule", rule, RULES)
    return RULES[rule](text)


def split_thoughts(text: str, tags: tuple[str, str], *, opened: bool = False) -> tuple[str, str] | None:
    r"""Split ``text`` into the thoughts at its beginning and the answer after them; return None if it has no thoughts.

    Text begins with thoughts if it begins with the opening tag. It also begins with thoughts if a closing tag precedes
    the first opening tag, because the prompt then contained the opening tag. ``opened`` is True if the prompt is known
    to contain the opening tag. The function repeats the split until the remaining text no longer begins with thoughts.
    If the thoughts have no closing tag, the answer is empty. The function drops line breaks after the closing tag, and
    returns a blank answer as an empty string.

    >>> split_thoughts("<think>A or C?</think>\nC", ("<think>", "</think>"))
    ('A or C?', 'C')
    """
    start, end = tags
    thoughts: list[str] = []
    place = 0
    while True:
        begin = _NO_BLANK.match(text, place).end()  # type: ignore[union-attr]  # it also matches the empty text
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
    """Return the prediction for ``metric``: the rule's result, or the output with tool calls if the metric takes calls.

    If the completion has thoughts but no answer, ``found`` is False.
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
    """Score a prediction; the score is ``unparsed`` if the rule found nothing to extract.

    ``helper`` is the sandbox that the metric needs, or the function that queries the judge. ``extras.not`` inverts the
    value of a binary metric or a judge, but an unparsed prediction still scores 0.
    """
    given = (prediction.text, targets, extras)
    if metric.asks_judge and not prediction.found:
        return Score(0.0, unparsed=True)
    has_helper = metric.needs_sandbox or metric.asks_judge
    value = metric.function(*given, helper) if has_helper else metric.function(*given)
    score = value if isinstance(value, Score) else Score(value)
    # Text without a fence counts as code if Python can parse it.
    is_code = score.details.get("code_status", "syntax_error") != "syntax_error"
    unparsed = score.unparsed or (not prediction.found and not is_code)
    score = replace(score, prediction=prediction.text, unparsed=unparsed)
    if (metric.binary or metric.asks_judge) and extras.get("not") is True:
        return replace(score, value=0.0 if score.unparsed else 1.0 - score.value)
    return score


def share_of(value: Any, metric: str) -> float:
    """Return a metric's ``value`` as a plain float; raise ScoringError unless it is a number in [0, 1]."""
    # Other processes cannot receive subclasses of float, such as numpy's.
    number = float(value) if hasattr(value, "__float__") else math.nan
    if not 0.0 <= number <= 1.0:
        raise ScoringError(f"metric {metric!r} gave {value!r:.80}; expected a finite number in [0, 1]")
    return number


def _none(text: str) -> Extraction:
    """Return the text unchanged."""
    return Extraction(text, True)


def _strip_whitespace(text: str) -> Extraction:
    """Strip whitespace at both ends."""
    return Extraction(text.strip(), True)


def _lower(text: str) -> Extraction:
    """Lowercase the text; keep whitespace."""
    return Extraction(text.lower(), True)


def _extract_letter(text: str) -> Extraction:
    """Return the first letter A-E with no ASCII letter next to it, or else the first A-E anywhere, or else ``""``."""
    match = _LONE_LETTER.search(text) or _LETTER.search(text)
    return Extraction(match[0], True) if match else Extraction("", False)


def _extract_first_line(text: str) -> Extraction:
    r"""Return the first non-blank line, stripped, or else ``""``. Lines end with ``\n``, ``\r\n`` or ``\r``."""
    match = _LINE.search(text)
    return Extraction(match[0].rstrip(), True) if match else Extraction("", False)


def _extract_code_block(text: str) -> Extraction:
    r"""Return the body of a block fenced by three or more backticks; without a block, return the text as not found.

    Among the first 32 blocks, the rule takes the first whose info string names Python, or else the first without an
    info string, or else the first of all.

    The rule follows CommonMark (https://spec.commonmark.org/0.31.2/#fenced-code-blocks). The info string may be any
    text without backticks. The closing fence has at least as many backticks as the opening fence, and is indented by at
    most three more spaces. A block without a closing fence, for example after a token limit, runs to the end of the
    text. The rule is more lenient than CommonMark in two ways. Text may precede the opening fence on its line. If no
    line closes the block, the first backticks that begin a line of text or end a line of code close it. An empty block
    without a closing fence does not count as a block.

    The rule removes the fence's indentation and the final newline from the body, and replaces ``\r\n`` with ``\n``.
    """
    unified = text.replace("\r\n", "\n")
    opening, end = _best_block(unified)
    if opening is None:
        return Extraction(text, False)
    body = unified[opening.end() : end].removesuffix("\n")
    if end is None and not body.strip():
        return Extraction(text, False)
    return Extraction(_dedent(body, at_most=len(opening[1])), True)


def _best_block(text: str) -> tuple[re.Match[str] | None, int | None]:
    """Return the opening fence of the block that is most likely the program, and the end of the block's body."""
    found: list[tuple[re.Match[str], int | None]] = []
    opening = _OPENING_FENCE.search(text)
    while opening is not None and len(found) < _MOST_BLOCKS:
        end = _end_of_body(text, opening)
        found.append((opening, end))
        if end is None or _PYTHON.match(opening[3]):
            break
        # The closing fence does not open a block.
        opening = _OPENING_FENCE.search(text, text.find("\n", end) + 1 or len(text))
    found.sort(key=lambda block: (not _PYTHON.match(block[0][3]), block[0][3].strip() != ""))
    return found[0] if found else (None, None)


def _end_of_body(text: str, opening: re.Match[str]) -> int | None:
    indent, width = len(opening[1]) + 3, len(opening[2])

    def first(pattern: re.Pattern[str]) -> int | None:
        fences = pattern.finditer(text, opening.end())
        return next((each.start() for each in fences if len(each[1]) <= indent and len(each[2]) >= width), None)

    if (bare := first(_CLOSING_FENCE)) is not None:
        return bare
    return min(filter(None, map(first, (_FENCE_BEFORE_TEXT, _FENCE_AFTER_CODE))), default=None)


def _dedent(body: str, at_most: int) -> str:
    lines = body.split("\n")
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    width = min([at_most, *indents])
    return "\n".join(line[width:] for line in lines)


def _extract_answer(text: str) -> Extraction:
    """Return the text after the last ``A:`` or ``####`` that begins a line, or ``""`` as not found.

    The rule strips the text and removes commas between digits. An answer without text after the marker also counts as
    not found. Callers that extract targets must check ``found``, because two missing answers have the same text.
    """
    for line in reversed(text.split("\n")):
        if match := _ANSWER_LINE.match(line):
            answer = _COMMA_IN_NUMBER.sub("", match[1].strip())
            return Extraction(answer, answer != "")
    return Extraction("", False)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "none": _none,
        "strip_whitespace": _strip_whitespace,
        "lower": _lower,
        "extract_letter": _extract_letter,
        "extract_code_block": _extract_code_block,
        "extract_first_line": _extract_first_line,
        "extract_answer": _extract_answer,
    }
)
