r"""LaTeX and plain mathematics to a tree: a grammar of its own, because model text must never be evaluated.

A tree is made of JSON values, so that it can be sent to another process: ``["num", "3/10"]``, ``["sym", "x_1"]``,
``["const", "pi"]``, ``["add", [...]]``, ``["mul", [...]]``, ``["neg", a]``, ``["div", a, b]``, ``["pow", a, b]``,
``["root", degree, a]``, ``["log", base, a]``, ``["binom", n, k]``, ``["fn", name, a]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

Tree = list[Any]

_LONGEST = 2000
_DEEPEST = 60
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh exp abs factorial".split()  # noqa: SIM905  # a word a line would hide the list
)
_NAMES = FUNCTIONS | {"sqrt", "ln", "log"}
_GREEK = frozenset(
    "alpha beta gamma delta epsilon theta lambda mu nu rho sigma tau phi varphi omega Delta Omega".split()  # noqa: SIM905  # a word a line would hide the list
)
_CONSTANTS = MappingProxyType({"pi": "pi", "infty": "oo", "e": "e", "i": "i"})
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\[A-Za-z]+|\\.)|([A-Za-z]+)|(\S))")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MULTIPLY = frozenset({"*", "\\cdot", "\\times"})
_DIVIDE = frozenset({"/", "\\div"})
_CLOSING = frozenset({"", ")", "]", "}", "|", "+", "-", "^", "!", "_", ",", "=", "<", ">"})


class NotMath(ValueError):
    """The text does not follow the grammar."""


class Parsed(NamedTuple):
    """A tree, and whether a number in it was written with a decimal point."""

    tree: Tree
    decimal: bool


def parse_math(text: str) -> Parsed:
    """Return the tree of an expression; raise NotMath where ``text`` is none, too long or nested too deeply."""
    if len(text) > _LONGEST:
        raise NotMath("too long")
    parser = _Parser(_tokens(text))
    try:
        tree = parser.expression()
    except RecursionError:
        raise NotMath("nested too deeply") from None
    parser.expect("")
    if not _is_shallow(tree):
        raise NotMath("nested too deeply")
    return Parsed(tree, parser.decimal)


def _is_shallow(tree: Tree) -> bool:
    level = [tree]
    for _ in range(2 * _DEEPEST):
        level = [child for each in level for child in each if isinstance(child, list)]
        if not level:
            return True
    return False


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    for number, command, letters, other in _TOKEN.findall(text):
        if number or command or other:
            found.append(number or command or other)
        elif letters in _NAMES or letters == "pi":
            found.append(f"\\{letters}")
        elif len(letters) <= 2 or letters.lower() in _ALPHABET:
            # "xy" and "abc" are products; a longer run of letters is a word, and a text with words is no formula.
            found += letters
        else:
            raise NotMath(letters)
    return found


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.decimal = False

    @property
    def next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.next
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise NotMath(f"expected {token or 'the end'}")

    def expression(self) -> Tree:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise NotMath("nested too deeply")
        terms = [self.signed_term()]
        while self.next in {"+", "-"}:
            terms.append(self.signed_term())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else ["add", terms]

    def signed_term(self) -> Tree:
        negative = False
        while self.next in {"+", "-"}:
            negative ^= self.take() == "-"
        term = self.term()
        return ["neg", term] if negative else term

    def term(self) -> Tree:
        tree = self.power()
        while True:
            if self.next in _MULTIPLY:
                self.take()
                tree = _product(tree, self.signed_power())
            elif self.next in _DIVIDE:
                self.take()
                tree = ["div", tree, self.signed_power()]
            elif self.next in _CLOSING:
                return tree
            else:
                tree = self.juxtaposed(tree)

    def juxtaposed(self, tree: Tree) -> Tree:
        """Return the product of ``tree`` and what follows without a sign, or the mixed number that both are."""
        follows_number = self.next[:1].isdigit()
        right = self.power()
        if _is_whole(tree) and right[0] == "div" and _is_whole(right[1]) and _is_whole(right[2]):
            return ["add", [tree, right]]
        if follows_number:
            if _is_whole(tree) and _is_whole(right) and self.next == "/":
                self.take()
                return ["add", [tree, ["div", right, self.power()]]]
            raise NotMath("a number after a factor")
        return _product(tree, right)

    def signed_power(self) -> Tree:
        if self.next in {"+", "-"}:
            return self.power() if self.take() == "+" else ["neg", self.power()]
        return self.power()

    def power(self) -> Tree:
        tree = self.atom()
        while self.next == "!":
            self.take()
            tree = ["fn", "factorial", tree]
        if self.next == "^":
            self.take()
            tree = ["pow", tree, self.argument()]
        return tree

    def argument(self) -> Tree:
        """Return what stands in braces, or the one number, symbol or command that follows, with its sign."""
        if self.next == "{":
            return self.enclosed("{", "}")
        if self.next in {"+", "-"}:
            return self.argument() if self.take() == "+" else ["neg", self.argument()]
        return self.atom()

    def digit_argument(self) -> Tree:
        r"""Return an argument of a command, of which ``\frac12`` has two: without braces it is one digit."""
        if self.next.isdigit() and len(self.next) > 1:
            token = self.next
            self.tokens = [*self.tokens[: self.position], *token, *self.tokens[self.position + 1 :]]
        return self.argument()

    def enclosed(self, opening: str, closing: str) -> Tree:
        self.expect(opening)
        tree = self.expression()
        self.expect(closing)
        return tree

    def atom(self) -> Tree:
        token = self.next
        if token[:1].isdigit() or (token[:1] == "." and len(token) > 1):
            return self.number()
        if token in {"(", "[", "{"}:
            return self.enclosed(token, {"(": ")", "[": "]", "{": "}"}[token])
        if token == "|":
            return ["fn", "abs", self.enclosed("|", "|")]
        self.take()
        if token.startswith("\\"):
            return self.command(token[1:])
        if len(token) == 1 and token.isalpha() and token.isascii():
            return self.symbol(token)
        raise NotMath(token or "an end too soon")

    def number(self) -> Tree:
        token = self.take()
        self.decimal |= "." in token
        if self.next == "_":
            raise NotMath("a number with an index")
        return ["num", str(Fraction(token))]

    def symbol(self, name: str) -> Tree:
        if self.next != "_":
            return ["const", _CONSTANTS[name]] if name in _CONSTANTS else ["sym", name]
        self.take()
        if self.next != "{":
            return ["sym", f"{name}_{self.take()}"]
        self.take()
        index = ""
        while self.next not in {"}", ""}:
            index += self.take()
        self.expect("}")
        return ["sym", f"{name}_{index}"]

    def command(self, name: str) -> Tree:
        known: dict[str, Callable[[], Tree]] = {
            "frac": lambda: ["div", self.digit_argument(), self.digit_argument()],
            "binom": lambda: ["binom", self.digit_argument(), self.digit_argument()],
            "sqrt": self.square_root,
            "log": self.logarithm,
            "ln": lambda: ["log", ["const", "e"], self.operand()],
        }
        if name in known:
            return known[name]()
        if name in FUNCTIONS:
            return self.function(name)
        if name in _GREEK or name in _CONSTANTS:
            return self.symbol(name)
        raise NotMath(f"\\{name}")

    def square_root(self) -> Tree:
        degree: Tree = ["num", "2"]
        if self.next == "[":
            degree = self.enclosed("[", "]")
        return ["root", degree, self.digit_argument()]

    def logarithm(self) -> Tree:
        base: Tree = ["num", "10"]
        if self.next == "_":
            self.take()
            base = self.digit_argument()
        return ["log", base, self.operand()]

    def function(self, name: str) -> Tree:
        exponent: Tree | None = None
        if self.next == "^":
            self.take()
            exponent = self.argument()
        tree: Tree = ["fn", name, self.operand()]
        if exponent is None:
            return tree
        if exponent == ["neg", ["num", "1"]]:
            raise NotMath("an inverse function or a reciprocal")
        return ["pow", tree, exponent]

    def operand(self) -> Tree:
        r"""Return what a function is applied to: something in brackets, or all of the ``2x`` of ``\sin 2x``."""
        if self.next in {"(", "[", "{", "|"}:
            return self.atom()
        tree = self.signed_power()
        while self.next.isalpha() or self.next in {"\\pi", *(f"\\{name}" for name in _GREEK)}:
            tree = _product(tree, self.power())
        return tree


def _product(left: Tree, right: Tree) -> Tree:
    return ["mul", [*left[1], right]] if left[0] == "mul" else ["mul", [left, right]]


def _is_whole(tree: Tree) -> bool:
    return bool(tree[0] == "num" and tree[1].isdigit())
