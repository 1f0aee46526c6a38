"""Parse and compare answers to MATH as in appendix D of the Minerva paper (Lewkowycz and others, 2022)."""

from __future__ import annotations

import re

from pytest_lmeval.metrics.parts.texts import closing_brace
from pytest_lmeval.tasks.judging import JudgedAnswer

_STRICT = re.compile(r"Final Answer: The final answer is(?P<answer>.*?). I hope it is correct.")
_RELAXED = re.compile(
    r"final\s+answer\s*:\s*the\s+(?:final\s+)?answer\s+is\s*(?P<answer>.*)", re.IGNORECASE | re.DOTALL
)
_HOPE = re.compile(r"\.?\s*i\s+hope\s+it\s+is\s+correct\.?\s*$", re.IGNORECASE)
_REPLACED = {"an ": "", "a ": "", ".$": "$", "\\$": "", "\\ ": "", " ": "", "mbox": "text"}
_REPLACED |= {",\\text{and}": ",", "\\text{and}": ",", "\\text{m}": "\\text{}"}
_UNITS = """
    square ways integers dollars mph inches ft hours km units \\ldots sue points feet minutes digits cents degrees cm gm
    pounds meters meals edges students childrentickets multiples
"""
_MARKS = """\\text{}^2 \\text{}^3 \\text{|} \\text{} \\mathrm{th} ^\\circ ^{\\circ} \\; ,\\! {,} " \\dots"""
_REMOVED = (
    *_UNITS.split(),
    "\\text{s}",
    "\\text{.}",
    "\\text{\ns}",
    *(mark.replace("|", "\n") for mark in _MARKS.split()),
)
_REWRITTEN = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r".*?(\$)(.*?)\$.*", r"$\2$"),
        (r"\\text\{(.*?)\}", r"\1"),
        (r"\\textbf\{(.*?)\}", r"\1"),
        (r"\\overline\{(.*?)\}", r"\1"),
        (r"\\boxed\{(.*)\}", r"\1"),
        (r"frac([^{])(.)", r"frac{\1}{\2}"),
        (r"sqrt([^{])", r"sqrt{\1}"),
    )
)
_SPELLINGS = {"\n": "", "\\!": "", "\\\\": "\\", "tfrac": "frac", "dfrac": "frac"}
_SPELLINGS |= dict.fromkeys(("\\left", "\\right", "^{\\circ}", "^\\circ", "\\$"), "")
_ZEROS = (("\\%", ""), (" .", " 0."), ("{.", "{0."))
_NAME = re.compile(r"[a-zA-Z]\w*$")
_TEXT = "\\text{"


def normalize_final_answer(answer: str) -> str:
    """Remove units, words and marks that do not affect an answer's value.

    >>> normalize_final_answer("x = $1{,}200$ dollars")
    '1200'
    """
    answer = answer.rpartition("=")[2]
    for old, new in (*_REPLACED.items(), *((text, "") for text in _REMOVED)):
        answer = answer.replace(old, new)
    for pattern, new in _REWRITTEN:
        answer = pattern.sub(new, answer)
    answer = answer.replace("$", "")
    digits = answer.replace(",", "")
    return digits if digits.isdigit() else answer


def normalized_gold_from_solution(solution: str) -> str | None:
    """Return the normalized answer in the last box of a solution, or None if the solution has no box."""
    found = _boxed(solution)
    return None if found is None else normalize_final_answer(found)


def extract_answers(
    raw_answer: str, use_cot: bool = True, cot_style: str = "minerva", relaxed: bool = False
) -> list[str]:
    """Return the possible answers in a text, likeliest first; ``relaxed`` accepts variants of Minerva's phrase.

    Raise ValueError for a ``cot_style`` other than ``minerva``.
    """
    if cot_style != "minerva":
        raise ValueError(f"cot_style: expected 'minerva', got {cot_style!r}")
    if not use_cot:
        return [normalize_final_answer(text) for text in (raw_answer, *_between_dollars(raw_answer, 0))]
    found = [answer for answer in (_stated(raw_answer, relaxed=relaxed),) if answer]
    found += [normalize_final_answer(text) for text in (_boxed(raw_answer),) if text is not None]
    rest = (*_between_dollars(raw_answer, -2), raw_answer)
    return found or [normalize_final_answer(rest[0])]


def _stated(text: str, *, relaxed: bool) -> str:
    if relaxed:
        match = _RELAXED.search(text)
        return normalize_final_answer(_HOPE.sub("", match["answer"].strip()).strip()) if match else ""
    match = _STRICT.search(f"{text}I hope it is correct.")
    return normalize_final_answer(match["answer"].strip()) if match else ""


def _boxed(text: str) -> str | None:
    if "\\boxed " in text:
        return text.rpartition("\\boxed ")[2].partition("$")[0]
    begin = text.rfind("\\boxed")
    if not text.startswith("\\boxed{", begin):
        return None
    inside = begin + len("\\boxed{")
    end = closing_brace(text, inside)
    return text[inside:end] if end < len(text) else None


def _between_dollars(text: str, first: int) -> list[str]:
    places = [place for place, letter in enumerate(text) if letter == "$"]
    if len(places) < 2:
        return []
    begin, end = (places[0], places[1]) if first == 0 else (places[-2], places[-1])
    return [text[begin + 1 : end]]


class _Minerva:
    """A score of 1 if the likeliest answer in the text (or, with ``flexible``, any possible answer) is right."""

    PACKAGE = "math_verify"
    INSTALL = "pytest-lmeval[math]"

    def __init__(self, name: str, *, relaxed: bool, flexible: bool) -> None:
        self.NAME = name
        self._relaxed = relaxed
        self._flexible = flexible

    def of_answer(self, answer: JudgedAnswer) -> float:
        """Return 1.0 or 0.0."""
        wanted = answer.targets[0]
        given = extract_answers(answer.raw or answer.prediction, relaxed=self._relaxed)
        if not self._flexible:
            return float(_is_equal(given[0], wanted))
        return float(any(_is_equal(text, wanted) or is_same_text(text, wanted) for text in given))


class MathMinervaCompletion:
    """Two scores, one for the likeliest answer and one for any possible answer in the text."""

    PARTS = (
        _Minerva("math_minerva_exact", relaxed=False, flexible=False),
        _Minerva("math_minerva_flex", relaxed=False, flexible=True),
    )


class MathMinervaCompletionRelaxed:
    """The same two scores as ``MathMinervaCompletion``, but with variants of Minerva's phrase accepted."""

    PARTS = (
        _Minerva("math_minerva_relaxed_exact", relaxed=True, flexible=False),
        _Minerva("math_minerva_relaxed_flex", relaxed=True, flexible=True),
    )


def _is_equal(given: str, wanted: str) -> bool:
    from pytest_lmeval.metrics.math_equal import math_equal

    # A box makes math_equal compare the whole text, not a part that looks like an answer.
    return bool(given) and math_equal(f"\\boxed{{{given}}}", [f"\\boxed{{{wanted}}}"], {}).value == 1.0


def is_same_text(first: str, second: str) -> bool:
    """Return True if two answers are equal after normalizing their LaTeX as in Hendrycks and others (2021)."""
    return _plain(first) == _plain(second)


def _plain(text: str) -> str:
    for old, new in _SPELLINGS.items():
        text = text.replace(old, new)
    text = _without_units(text)
    for old, new in _ZEROS:
        text = text.replace(old, new)
    if not text:
        return text
    text = _right_side(f"0{text}" if text[0] == "." else text)
    text = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text).replace(" ", "")
    text = _with_braces(text)
    return re.sub(r"\b0(?=\d)", "", _as_fraction("\\frac{1}{2}" if text == "0.5" else text))


def _without_units(text: str) -> str:
    before, found, behind = text.partition(_TEXT)
    if not found:
        return text
    if _TEXT in behind:
        return before
    end = closing_brace(behind, 0)
    return before.strip() or behind[end + 1 :].strip() or behind[:end].strip()


def _right_side(text: str) -> str:
    *names, last = (part.strip() for part in text.split("="))
    if len(names) == 1 and len(names[0]) <= 2:
        return last
    if len(names) > 1 and all(len(name) <= 2 and _NAME.match(name) for name in names):
        return last
    return text


def _with_braces(text: str) -> str:
    head, *parts = text.split("\\frac")
    if any(len(part) == 1 and part != "{" for part in parts):
        return text
    return head + "".join(f"\\frac{_braced(part)}" for part in parts)


def _braced(part: str) -> str:
    if part[:1] in ("", "{"):
        return part
    top, bottom, rest = part[0], part[1], part[2:]
    return f"{{{top}}}{{{rest}" if bottom == "{" else f"{{{top}}}{{{bottom}}}{rest}"


def _as_fraction(text: str) -> str:
    parts = re.fullmatch(r"(-?[1-9]\d*|0)/(-?[1-9]\d*|0)", text)
    return f"\\frac{{{parts[1]}}}{{{parts[2]}}}" if parts else text
