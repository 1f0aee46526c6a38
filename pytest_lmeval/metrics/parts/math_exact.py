"""Numbers that need no algebra: a tree of them to an exact fraction."""

from __future__ import annotations

import math
from fractions import Fraction

from pytest_lmeval.metrics.parts.math_parse import Tree

CLOSE = 2e-6
"""Relative difference up to which a number that was written with a decimal point equals another: 0.333333 is 1/3."""

_BITS = 4096


def exact_value(tree: Tree) -> Fraction | None:
    """Return the value of ``tree``; None where it has symbols, irrational parts, or more digits than anyone writes."""
    try:
        return _value(tree)
    except (KeyError, ValueError, ZeroDivisionError, RecursionError):
        return None


def same_number(left: Fraction, right: Fraction, *, decimal: bool) -> bool:
    """Tell whether two numbers are equal, or, if ``decimal``, nearly so."""
    return left == right or (decimal and abs(left - right) <= CLOSE * max(abs(left), abs(right)))


def _value(tree: Tree) -> Fraction:
    kind, *rest = tree
    if kind == "num":
        return Fraction(rest[0])
    if kind in {"add", "mul"}:
        values = [_value(each) for each in rest[0]]
        return _limited(sum(values, Fraction(0)) if kind == "add" else math.prod(values, start=Fraction(1)))
    if kind == "neg":
        return -_value(rest[0])
    if kind == "div":
        return _limited(_value(rest[0]) / _value(rest[1]))
    if kind == "pow":
        return _power(_value(rest[0]), _value(rest[1]))
    raise ValueError(kind)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    bits = base.numerator.bit_length() + base.denominator.bit_length()
    if exponent.denominator != 1 or abs(exponent) * bits > _BITS:
        raise ValueError("not a small whole exponent")
    return base ** int(exponent)


def _limited(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > _BITS:
        raise ValueError("too many digits")
    return value
