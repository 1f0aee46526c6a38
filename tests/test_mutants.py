"""The mutants of ``benchmarks/mutants.py`` are small faults of functions, each in a module that Python still reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sources import imported_benchmark

SOURCE = '''\
LIMIT = 3

@cache
def f(a: "int" = 1, *, b=True):
    """Not 1."""
    if not a or a < LIMIT:
        return f"{a == 1}"
    return a - 1 if a in (2, 3) else b
'''


@pytest.fixture(scope="module")
def mutants() -> Iterator[Any]:
    with imported_benchmark("mutants") as module:
        yield module


def test_mutants_change_one_expression_of_a_function_each(mutants: Any) -> None:
    found = [str(mutant) for mutant in mutants.mutants("m.py", SOURCE)]

    assert [
        "m.py:4: True -> False",
        "m.py:4: 1 -> 2",
        "m.py:6: not a or a < LIMIT -> (not a) and (a < LIMIT)",
        "m.py:6: not a -> bool(a)",
        "m.py:6: a < LIMIT -> a <= LIMIT",
        "m.py:8: a - 1 if a in (2, 3) else b -> (b) if a in (2, 3) else (a - 1)",
        "m.py:8: a in (2, 3) -> a not in (2, 3)",
        "m.py:8: 2 -> 3",
        "m.py:8: 3 -> 4",
        "m.py:8: a - 1 -> (a) + (1)",
        "m.py:8: 1 -> 2",
    ] == found
    assert {3} == {mutant.function for mutant in mutants.mutants("m.py", SOURCE)}


@pytest.mark.again
def test_a_sample_is_the_same_for_the_same_seed_and_python_reads_each(mutants: Any) -> None:
    drawn = mutants.draw(7, 50)

    assert drawn == mutants.draw(7, 50)
    for mutant in drawn:
        before = (mutants.ROOT / mutants.PACKAGE / mutant.file).read_bytes()
        ast.parse(before[: mutant.start] + f"({mutant.new})".encode() + before[mutant.end :])
