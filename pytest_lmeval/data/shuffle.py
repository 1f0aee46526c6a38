"""Compute, without numpy, the permutation that numpy and the ``datasets`` library draw for a seed.

The result equals ``numpy.random.default_rng(seed).permutation(size)``. The module implements two published algorithms
that numpy uses: O'Neill's ``seed_seq_fe`` for ``SeedSequence``, and PCG64 (XSL-RR) for random numbers. The module draws
again if a random number is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_lmeval.numbers import is_count

_32 = (1 << 32) - 1
_64 = (1 << 64) - 1
_128 = (1 << 128) - 1
_POOL = 4
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


def permutation(seed: int, size: int) -> list[int]:
    """Return the numbers from 0 to ``size - 1`` in the order that ``seed``, a whole number >= 0, determines."""
    if not is_count(seed):
        raise ValueError(f"seed: expected a whole number >= 0, got {seed!r:.80}")
    order = list(range(size))
    numbers = _halves(_pcg64(*_seeds(seed)))
    for last in range(size - 1, 0, -1):
        place = _up_to(numbers, last)
        order[last], order[place] = order[place], order[last]
    return order


def _up_to(numbers: Iterator[int], highest: int) -> int:
    """Return a uniformly distributed number from 0 to ``highest``; ``numbers`` are random 32-bit numbers."""
    mask = (1 << highest.bit_length()) - 1
    return next(number & mask for number in numbers if number & mask <= highest)


def _halves(numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        yield number & _32
        yield number >> 32


def _pcg64(start: int, stream: int) -> Iterator[int]:
    increment = (stream << 1 | 1) & _128
    state = ((increment + start) * _MULTIPLIER + increment) & _128
    while True:
        state = (state * _MULTIPLIER + increment) & _128
        mixed, turn = (state >> 64) ^ (state & _64), state >> 122
        yield (mixed >> turn | mixed << (-turn & 63)) & _64


def _seeds(seed: int) -> tuple[int, int]:
    """Return the two 128-bit numbers that initialize the generator."""
    pool = _mixed([seed >> shift & _32 for shift in range(0, max(seed.bit_length(), 1), 32)])
    scramble = _hash(0x8B51F9DD, 0x58F38DED)
    words = [scramble(pool[number % _POOL]) for number in range(8)]
    values = [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]
    return values[0] << 64 | values[1], values[2] << 64 | values[3]


def _mixed(entropy: Sequence[int]) -> list[int]:
    scramble = _hash(0x43B0D7E5, 0x931E8875)
    pool = [scramble(entropy[number] if number < len(entropy) else 0) for number in range(_POOL)]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mix(pool[target], scramble(pool[source]))
    for extra in entropy[_POOL:]:
        pool = [_mix(each, scramble(extra)) for each in pool]
    return pool


def _mix(one: int, other: int) -> int:
    value = (0xCA01F9DD * one - 0x4973F715 * other) & _32
    return value ^ value >> 16


def _hash(constant: int, multiplier: int) -> Callable[[int], int]:
    """Return a function that scrambles 32-bit numbers, with a different constant in each call."""

    def scramble(value: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * multiplier & _32
        value = value * constant & _32
        return value ^ value >> 16

    return scramble
