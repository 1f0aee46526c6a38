"""Mathematical equality: what is the same, what is not, and what becomes of text that is out to break it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.builtin import default_registry
from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.math_answer import extract_answer, plain_text, read_answer
from pytest_lmeval.metrics.parts.math_child import decide
from pytest_lmeval.metrics.parts.math_compare import math_score
from pytest_lmeval.metrics.parts.math_exact import exact_value
from pytest_lmeval.metrics.parts.math_parse import NotMath, parse_math
from pytest_lmeval.metrics.parts.worker import Worker
from tests import needs

needs.module("sympy")
many = settings(max_examples=200, deadline=None)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker()
    yield found
    found.close()


def _status(worker: Worker, prediction: str, *targets: str) -> str:
    score = math_score(prediction, targets, worker)
    assert (score.value == 1.0) == (score.details["math_status"] == "equal")
    return str(score.details["math_status"])


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("1/2", "0.5"),
        (r"We find \boxed{\frac{1}{2}}.", r"\dfrac12"),
        (r"\boxed{1} or rather \boxed{\frac{2}{4}}", "0.5"),
        (r"50\%", "0.5"),
        ("50%", "50"),
        ("The answer is 1,234.", "1234"),
        ("1{,}000", "1000"),
        ("x = 5", "5"),
        (r"3\frac{1}{2}", "7/2"),
        ("3 1/2", "3.5"),
        ("0.333333", "1/3"),
        (r"-\frac{1}{2}", "-.5"),
        ("2^{10}", "1024"),
        (r"5\text{ cm}", "5"),
        ("5 cm", r"5\,\mathrm{cm}"),
        (r"90^\circ", "90"),
        (r"\$12.50", "12.5"),
        ("(1,2)", "( 1 , 2 )"),
        (r"\{1,2\}", "2, 1"),
        (r"x=\pm 2", "2,-2"),
        (r"x=1 \text{ or } x=2", "1, 2"),
        (r"[1,2)\cup(3,\infty)", r"(3,\infty) \cup [1,2)"),
        (r"x \ge 5", r"5 \le x"),
        (r"\text{Evelyn}", "evelyn"),
        ("(C)", r"\text{(C)}"),
    ],
)
def test_the_same_answer_in_other_words_needs_no_algebra(prediction: str, target: str) -> None:
    worker = Worker()
    assert "equal" == _status(worker, prediction, target)
    assert worker._process is None


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        (r"\sqrt{8}", r"2\sqrt{2}"),
        ("(x+1)^2", "x^2+2x+1"),
        (r"\sin^2 x+\cos^2 x", "1"),
        (r"So we get $x^2$ and finally $\frac{\pi}{4}$.", "pi/4"),
        (r"\log_2 8", "3"),
        (r"\ln e^2", "2"),
        ("|-3|", "3"),
        ("5!", "120"),
        (r"\binom{5}{2}", "10"),
        ("y=2x+3", "2x+3"),
        ("2x-y+3=0", "y-2x-3=0"),
        (r"e^{i\pi}", "-1"),
        (r"\frac{\sqrt3}{3}", r"\frac{1}{\sqrt{3}}"),
        (r"\sqrt[3]{-8}", "-2"),
        (r"\frac{1}{x}-\frac{1}{x+1}", r"\frac{1}{x(x+1)}"),
        ("1.414214", r"\sqrt2"),
    ],
)
def test_algebra_finds_the_same_value(worker: Worker, prediction: str, target: str) -> None:
    assert "equal" == _status(worker, prediction, target)
    assert "equal" == _status(worker, target, prediction)


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("1/2", "0.51"),
        ("0.33", "1/3"),
        ("5 cm", "5 kg"),
        ("(2,1)", "(1,2)"),
        ("[1,2)", "[1,2]"),
        ("1,2", "1,2,3"),
        ("1,1", "1,2"),
        ("50%", "51"),
        ("x>5", "x<5"),
        ("x=5", "y=5"),
        ("x^2", "x^3"),
        (r"\sqrt{x^2}", "x"),
        (r"\frac{1}{0}", "0"),
        (r"2\pi", r"\pi"),
    ],
)
def test_another_answer_is_another_answer(worker: Worker, prediction: str, target: str) -> None:
    assert "different" == _status(worker, prediction, target)


@pytest.mark.parametrize("prediction", ["", "dunno", "((((1", "2 3", r"\begin{x}", "__import__('os').getcwd()", "act"])
def test_what_is_no_mathematics_is_unparsed_unless_it_is_the_target_itself(worker: Worker, prediction: str) -> None:
    assert "unparsed" == _status(worker, prediction, "cat")
    if prediction:
        assert "equal" == _status(worker, prediction, prediction)


def test_the_best_target_counts(worker: Worker) -> None:
    assert "equal" == _status(worker, "7", "dunno", "8", "14/2")
    assert "different" == _status(worker, "7", "8")
    assert 0.0 == math_score("7", [], worker).value


def test_an_expression_that_never_ends_is_killed_and_the_next_is_answered() -> None:
    worker = Worker(cpu_limit_s=2.0)
    assert "timeout" == _status(worker, "9^{9^{9^9}}+x", "x")
    assert "equal" == _status(worker, "9^{9^{9^9}}+x", "x", r"9^{9^{9^9}} + x")
    assert "equal" == _status(worker, r"\sqrt{12}", r"2\sqrt{3}")


def test_without_sympy_numbers_are_compared_and_algebra_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("sympy.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = Worker()
    assert 1.0 == math_score("0.5", ["1/2"], worker).value
    with pytest.raises(ScoringError, match=r"math_equal needs sympy: pip install 'pytest-lmeval\[math\]'"):
        math_score(r"\sqrt2", ["x"], worker)


def test_a_process_that_fails_is_an_error_and_not_a_wrong_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("sympy.py").write_text("import os; os._exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ScoringError, match="math_equal: its process ended with exit code 3"):
        math_score(r"\sqrt2", ["x"], Worker())


def test_the_registered_metric_uses_the_worker_that_all_share() -> None:
    metric = default_registry(entry_points=False).metric("math_equal").function
    assert ["equal", "different"] == [metric(r"\sqrt4", [each], {}).details["math_status"] for each in ("2", "3")]


# Numbers, against the fractions module


_FRACTION = st.fractions(max_denominator=99).filter(lambda value: abs(value) < 10_000)


@many
@given(_FRACTION, _FRACTION)
def test_arithmetic_is_that_of_fractions(a: Fraction, b: Fraction) -> None:
    def tex(value: Fraction) -> str:
        return rf"\left(\frac{{{value.numerator}}}{{{value.denominator}}}\right)"

    def value(text: str) -> Fraction | None:
        answer = read_answer(text)
        assert answer is not None
        assert answer.parsed is not None
        return exact_value(answer.parsed.tree)

    assert a + b == value(f"{tex(a)}+{tex(b)}")
    assert a - b == value(f"{tex(a)} - {tex(b)}")
    assert a * b == value(rf"{tex(a)} \cdot {tex(b)}")
    assert a * b == value(f"{tex(a)}{tex(b)}")
    assert a**2 == value(f"{tex(a)}^2")
    assert (a / b if b else None) == value(f"{tex(a)}/{tex(b)}")


@many
@given(_FRACTION, _FRACTION)
def test_equal_numbers_and_only_those_are_equal(a: Fraction, b: Fraction) -> None:
    worker = Worker()
    assert "equal" == _status(
        worker, f"{2 * a.numerator}/{2 * a.denominator}", rf"\frac{{{a.numerator}}}{{{a.denominator}}}"
    )
    assert ("equal" if a == b else "different") == _status(worker, str(a), str(b))


# Algebra, in this process


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=4), st.integers(-3, 3))
def test_the_order_of_factors_does_not_matter_and_their_number_does(roots: list[int], other: int) -> None:
    left, right = ("".join(f"(x{-root:+d})" for root in order) for order in (roots, roots[::-1]))
    assert "equal" == decide(parse_math(left).tree, parse_math(right).tree, False)
    assert "different" == decide(parse_math(left).tree, parse_math(f"{left}(x{other:+d})").tree, False)


# Text that is out to break it

_HOSTILE = [
    *("answer" + " " * 100_000, "answer" + "\n" * 100_000, "answer " * 15_000, r"\(" * 50_000, "$" * 100_000),
    *(r"\boxed{" * 15_000, r"\text{" * 20_000, "(" * 100_000, "{" * 1999, " " * 100_000, "1," * 900, "±" * 1000),
    *(r"\sqrt" * 400, r"\sin " * 300, r"\frac" * 300, "x^" + "-" * 1990 + "1", "5" + "!" * 1900, "1" + "/2" * 900),
]


@pytest.mark.parametrize("text", _HOSTILE, ids=lambda text: repr(text[:8]))
def test_hostile_text_is_read_in_no_time_and_raises_nothing(text: str) -> None:
    started = time.process_time()
    answer = extract_answer(text)
    plain_text(answer)
    read_answer(answer)
    assert 5 > time.process_time() - started  # the square of the length would be minutes


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("0123.,x y()[]{}\\^_+-*/=<>|!%$\N{UNION}±frac sqrt text boxed and or"), max_size=40))
def test_any_text_is_an_answer_or_none(text: str) -> None:
    answer = extract_answer(text)
    assert answer in text or answer == text.strip()
    read_answer(answer)


@pytest.mark.parametrize("text", ["", "1+", "word", "3^", r"\unknown", "f'(x)", "10_2", "(1", "1)", "1 2"])
def test_what_the_grammar_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(NotMath):
        parse_math(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("-x^2", ["neg", ["pow", ["sym", "x"], ["num", "2"]]]),
        ("2x", ["mul", [["num", "2"], ["sym", "x"]]]),
        ("1/2x", ["mul", [["div", ["num", "1"], ["num", "2"]], ["sym", "x"]]]),
        (r"\sin 2x", ["fn", "sin", ["mul", [["num", "2"], ["sym", "x"]]]]),
        ("x_{12}", ["sym", "x_12"]),
        ("abc", ["mul", [["sym", "a"], ["sym", "b"], ["sym", "c"]]]),
    ],
)
def test_the_grammar_binds_as_mathematics_does(text: str, tree: Any) -> None:
    assert tree == parse_math(text).tree


def test_the_child_is_never_given_text_to_evaluate() -> None:
    source = Path(str(sys.modules[decide.__module__].__file__)).read_text("utf-8")
    assert [] == [name for name in ("eval(", "sympify", "parse_expr", "exec(", "parse_latex") if name in source]
