"""A model for trials, made of a few dozen patterns; it is instant, free and deterministic.

The model reads only the last block of a prompt. It computes expressions, recalls a few facts, writes a few functions,
and otherwise answers that it does not know.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import LogLikelihood, LogProb

if TYPE_CHECKING:
    from pytest_lmeval.adapters.bigram import Bigram

UNKNOWN = "I do not know."

_FACTS = (
    ("capital of australia", "Canberra"),
    ("play hamlet", "William Shakespeare"),
    ("nearest to the sun", "Mercury"),
    ("gas do plants take in", "carbon dioxide"),
    ("opposite of ancient", "modern"),
    ("largest ocean", "Pacific"),
    ("a stitch in time", "nine"),
    ('"good morning" into french', "bonjour"),
    ("primary colour of light", "green"),
    ("organ pumps blood", "heart"),
)
_LABEL_WORDS = (
    ("positive", frozenset({"delightful", "enjoyed", "excellent", "loved", "superb", "wonderful"})),
    ("negative", frozenset({"awful", "boring", "broke", "disappointing", "hated", "terrible"})),
    ("billing", frozenset({"charged", "invoice", "payment", "price", "refund"})),
    ("delivery", frozenset({"arrived", "courier", "late", "parcel", "shipped"})),
    ("account", frozenset({"email", "login", "password", "username"})),
)
_FUNCTION_BODIES = (
    ("times three", "return {0} * 3"),
    ("doubles its input", "return {0} * 2"),
    ("in reverse order", "return {0}[::-1]"),
    ("between low and high", "return max({1}, min({0}, {2}))"),
    ("greatest common divisor", "return {0} if {1} == 0 else {name}({1}, {0} % {1})"),
    ("number of vowels", "return sum(letter in 'aeiou' for letter in {0}.lower())"),
    ("running totals", "return [sum({0}[:end]) for end in range(1, len({0}) + 1)]"),
    ("area of a rectangle", "return {0} * {1}"),
    ("leap year", "return {0} % 4 == 0 and ({0} % 100 != 0 or {0} % 400 == 0)"),
    ("initials", "return ''.join(word[0].upper() for word in {0}.split())"),
)
_PROGRAMS = (
    (
        re.compile(r"prints the squares of the whole numbers from (\d{1,6}) to (\d{1,6})", re.ASCII),
        "for number in range({0}, {1} + 1):\n    print(number * number)",
    ),
    (
        re.compile(r"prints the word (\w{1,40}) (\d{1,6}) times on one line", re.ASCII),
        "print(' '.join(['{0}'] * {1}))",
    ),
)
_WORDED: tuple[tuple[re.Pattern[str], Callable[[int, int], str | None]], ...] = (
    (re.compile(r"remainder when (\d{1,12}) is divided by (\d{1,12})"), lambda a, b: str(a % b)),
    (re.compile(r"(\d{1,12}) percent of (\d{1,12})"), lambda a, b: str(a * b // 100) if a * b % 100 == 0 else None),
    (re.compile(r"(\d{1,12}) (?:rows|boxes|bags) of (\d{1,12})"), lambda a, b: str(a * b)),
    (re.compile(r"Divide (\d{1,12}) by (\d{1,12})"), lambda a, b: f"quotient {a // b} remainder {a % b}"),
)
_OPERATORS = MappingProxyType(
    {
        "+": (1, operator.add),
        "-": (1, operator.sub),
        "*": (2, operator.mul),
        "//": (2, operator.floordiv),
        "%": (2, operator.mod),
    }
)

# Repetitions are bounded: a hostile prompt takes only linear time and a shallow stack.
_EXPRESSION = re.compile(
    r"(?<![\w.)/*+%-])(?<![-+*/%] )[-(]{0,4}\d{1,12}(?:\s?(?:[-+*%]|//)\s?[-(]{0,4}\d{1,12}\){0,4}){1,12}"
    r"(?!\w|\.\d|\)|\s?[-+*/%]\s?[-(\d*/])"
)
_TOKEN = re.compile(r"\d+|//|[-+*%()]")
_OPTION = re.compile(r"^([A-E])[).] (.{1,200})$", re.MULTILINE)
_TO_LABEL = re.compile(r"\b(?:label|sort) ", re.IGNORECASE)
_SIGNATURE = re.compile(r"function (\w{1,40})(?:\((\w[\w, ]{0,80})\)| that)")
_TO_SUMMARISE = re.compile(r"summarise[^:\n]{0,80}[:\n]\s{0,9}(.+)", re.IGNORECASE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ASIDE = re.compile(r", (?:which|who|where) [^,]{1,200},|\s?\([^()]{1,200}\)|^According to [^,]{1,200}, ")
# The adapter's code is trusted, so a prompt must not be able to put other code into an answer. It quotes only a line of
# prose, without a call, a fence or a second statement.
_PROSE = re.compile(r"[\w ,.'-]+")
_TO_REPEAT = re.compile(r'repeat[^"]{0,40}"([\w ,.;:!?\'-]*)"', re.IGNORECASE)
_TO_COUNT = re.compile(r'how many letters[^"]{0,40}"(\w{1,200})"', re.IGNORECASE)


def make(argument: str, **options: Any) -> ToyAdapter:
    """Return the adapter ``toy``."""
    if argument:
        raise UsageError(f"adapter 'toy' takes no argument, got {argument!r}")
    return ToyAdapter(**options)


class ToyAdapter:
    """A deterministic pattern matcher with a batch adapter's interface.

    The adapter sees only the prompt, and can answer the small questions in this package's sample tasks.
    """

    name = "toy.v1"
    exact = True
    trusted = True
    fingerprint = "toy.v1"

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Answer each prompt, in order; if no pattern matches, the answer is ``UNKNOWN``."""
        return [_answer(prompt) for prompt in prompts]

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb | AdapterError]:
        """Return the log-probability of each continuation according to a :class:`Bigram` model of the known facts."""
        return [self._bigram.log_prob(request) for request in requests]

    @cached_property
    def _bigram(self) -> Bigram:
        from pytest_lmeval.adapters.bigram import Bigram

        return Bigram(f"{cue} {answer}" for cue, answer in _FACTS)


def _answer(prompt: str) -> str:
    question = prompt.rpartition("\n\n")[2].strip()
    solvers = (_code, _choice, _label, _summary, _echo, _arithmetic, _recall)
    return next((answer for solve in solvers if (answer := solve(question)) is not None), UNKNOWN)


def _voice(question: str, answer: str) -> str:
    """Phrase an answer as a model would: add a space after ``Answer:``, and a second line if asked for the first."""
    if "first line" in question:
        return f"{answer}\nThat is what I would go with."
    return f" {answer}\n" if question.endswith("Answer:") else answer


def _code(question: str) -> str | None:
    if "python" not in question.lower():
        return None
    source = _function(question) or _program(question)
    if source is None or "code only" in question:
        return source
    return f"Here is one way to do it:\n\n```python\n{source}\n```\nTell me if you want it explained."


def _function(question: str) -> str | None:
    signature = _SIGNATURE.search(question)
    body = next((body for cue, body in _FUNCTION_BODIES if cue in question), None)
    if signature is None or body is None:
        return None
    name, parameters = signature[1], signature[2] or "x"
    try:
        filled = body.format(*parameters.split(", "), name=name)
    except IndexError:  # fewer parameters than the behaviour needs
        return None
    return f"def {name}({parameters}):\n    {filled}"


def _program(question: str) -> str | None:
    for pattern, source in _PROGRAMS:
        if found := pattern.search(question):
            return source.format(*found.groups())
    return None


def _choice(question: str) -> str | None:
    options = _OPTION.findall(question)
    if len(options) < 2:
        return None
    stem = question.partition("\nA")[0]
    right = _right_option(stem, [text.strip().lower() for _, text in options])
    letter = next((letter for letter, text in options if text.strip().lower() == right), None)
    if letter is None:
        return UNKNOWN
    return f"I would say the answer is {letter}." if "sentence" in stem else _voice(question, letter)


def _right_option(stem: str, texts: list[str]) -> str | None:
    numbers = [int(text) for text in texts if text.isdecimal() and len(text) < 6]
    if "largest number" in stem and numbers:
        return str(max(numbers))
    if "prime number" in stem:
        return next((str(number) for number in numbers if _is_prime(number)), None)
    known = _fact(stem) or _compute(stem)
    return known and known.lower()


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _label(question: str) -> str | None:
    if not _TO_LABEL.match(question):
        return None
    words = frozenset(re.findall(r"[a-z]+", question.lower()))
    hits = [(len(words & cues), label) for label, cues in _LABEL_WORDS if label in words]
    most, label = max(hits, default=(0, ""))
    return _voice(question, label.capitalize()) if most else None


def _summary(question: str) -> str | None:
    asked = _TO_SUMMARISE.match(question)
    if asked is None:
        return None
    shortened = _ASIDE.sub("", _SENTENCE_END.split(asked[1], maxsplit=1)[0])
    if not _PROSE.fullmatch(shortened):
        return None
    return _voice(question, shortened[:1].upper() + shortened[1:])


def _echo(question: str) -> str | None:
    if asked := _TO_REPEAT.match(question):
        return f"As you wish: {asked[1]}"
    return f"It has {len(counted[1])} letters." if (counted := _TO_COUNT.match(question)) else None


def _arithmetic(question: str) -> str | None:
    result = _compute(question)
    return result and _voice(question, result)


def _compute(question: str) -> str | None:
    try:
        if expression := _EXPRESSION.search(question):
            return str(_evaluate(expression[0]))
        for pattern, work_out in _WORDED:
            if found := pattern.search(question):
                return work_out(*map(int, found.groups()))
    except (ArithmeticError, LookupError, ValueError):
        pass  # a division by zero, or unbalanced parentheses
    return None


def _evaluate(expression: str) -> int:
    tokens = _TOKEN.findall(expression)[::-1]
    value = _climb(tokens, 1)
    if tokens:
        raise ValueError(f"left over: {tokens}")
    return value


def _climb(tokens: list[str], level: int) -> int:
    """Evaluate operators of at least ``level`` from the end of ``tokens`` (precedence climbing)."""
    value = _atom(tokens)
    while tokens and tokens[-1] in _OPERATORS:
        strength, apply = _OPERATORS[tokens[-1]]
        if strength < level:
            break
        tokens.pop()
        value = apply(value, _climb(tokens, strength + 1))
    return value


def _atom(tokens: list[str]) -> int:
    token = tokens.pop()
    if token == "-":
        return -_atom(tokens)
    if token != "(":
        return int(token)
    value = _climb(tokens, 1)
    if tokens.pop() != ")":
        raise ValueError("a parenthesis is not closed")
    return value


def _fact(question: str) -> str | None:
    asked = question.lower()
    return next((answer for cue, answer in _FACTS if cue in asked), None)


def _recall(question: str) -> str | None:
    answer = _fact(question)
    return answer and f"If I remember it right, it is {answer}."
