"""Mathematical equality: a table of judgements, and what becomes of text that is out to break it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.loading import default_registry
from pytest_lmeval.metrics.math_equal import math_equal
from pytest_lmeval.metrics.parts.math_text import LONGEST, for_math_verify, plain_text, stated_answers
from pytest_lmeval.metrics.parts.worker import MetricWorker, TookTooLong, shared_worker
from tests import needs
from tests.conftest import Project
from tests.examples import examples
from tests.tables import each_row

SHARED = "pytest_lmeval.metrics.parts.worker.shared_worker"

# Only the metric's own process imports it.
needs.installed("math_verify")


class Pair(NamedTuple):
    """A line of math_pairs.txt."""

    group: str
    prediction: str
    reference: str
    equal: bool


def _pairs() -> list[Pair]:
    found, group = [], ""
    for line in Path(__file__).with_name("math_pairs.txt").read_text("utf-8").splitlines():
        if pair := re.fullmatch(r"(.*?)  ([=!]=)  (.*)", line):
            found.append(Pair(group, pair[1].replace("⏎", "\n"), pair[3], pair[2] == "=="))
        elif line.startswith("# "):
            group = line[2:]
    return found


PAIRS = _pairs()
PARTS = 8
OTHERWISE, ENDLESS = "judged otherwise by the metric", "without end"
DECIDED = [pair for pair in PAIRS if pair.group not in {OTHERWISE, ENDLESS}]


@pytest.fixture(scope="module")
def worker() -> Iterator[MetricWorker]:
    """Provide the worker that the metric uses, too: to import what it needs takes most of a second."""
    yield shared_worker()
    shared_worker().close()


def _status(worker: MetricWorker, prediction: str, *targets: str) -> str:
    score = math_equal(prediction, targets, {})
    assert (score.value == 1.0) == (score.details["math_status"] == "equal")
    return str(score.details["math_status"])


def _misjudged(worker: MetricWorker, pairs: list[Pair]) -> list[Pair]:
    return [pair for pair in pairs if (_status(worker, pair.prediction, pair.reference) == "equal") != pair.equal]


@each_row(
    ("prediction", "target", "status"),
    [
        ("所以答案为 12。", "12", "equal"),
        ("所以答案为 12。", "13", "different"),
        ("답은 12", "12", "equal"),
        ("ответ: 1/2", "0.5", "equal"),
        ("12。", "12", "equal"),
        # Six digits after the decimal point count, as the page says.
        ("0.0000004", "0.0000001", "equal"),
        ("0.000004", "0.000001", "different"),
    ],
)
def test_prose_in_other_scripts_is_read_and_numbers_have_six_digits(prediction: str, target: str, status: str) -> None:
    assert status == math_equal(prediction, [target], {}).details["math_status"]


def test_the_table_has_hundreds_of_pairs_of_either_kind() -> None:
    assert (266, 146) == tuple(sum(pair.equal is kind for pair in PAIRS) for kind in (True, False))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_the_metric_agrees_with_the_table(worker: MetricWorker, part: int) -> None:
    assert [] == _misjudged(worker, DECIDED[part::PARTS])


def test_the_pairs_that_the_metric_judges_otherwise_are_these(worker: MetricWorker) -> None:
    otherwise = [pair for pair in PAIRS if pair.group == OTHERWISE]
    assert otherwise == _misjudged(worker, otherwise)


@pytest.mark.slow
def test_what_never_ends_is_a_timeout_and_no_score() -> None:
    worker = MetricWorker(cpu_limit_s=1.5)
    endless = [pair for pair in PAIRS if pair.group == ENDLESS]
    assert ["timeout"] * len(endless) == [_status(worker, pair.prediction, pair.reference) for pair in endless]


def test_an_expression_that_never_ends_is_killed() -> None:
    assert "timeout" == _status(MetricWorker(cpu_limit_s=0.4), "9^{9^{9^9}}+x", "x")


def test_a_target_without_end_does_not_hide_one_that_is_met_word_for_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> None:
        raise TookTooLong("math_equal took long")

    worker = MetricWorker()
    monkeypatch.setattr(worker, "ask", ask)
    assert "timeout" == _status(worker, "9^{9^{9^9}}+x", "x", "y")
    assert "equal" == _status(worker, "9^{9^{9^9}}+x", "x", r"9^{9^{9^9}} + x")


# What begins or ends with the target, and makes no sense as a whole: cut off at a limit of tokens, or never sensible.
HALF = [
    ("12", r"$12\sqrt{3$"),
    ("12", r"$12\sqrt{3"),
    ("12", r"The answer is $12\sqrt{3"),
    ("12", r"12\sqrt{3"),
    ("3", r"$3x^{2$"),
    ("3", r"3x^{2"),
    ("2", r"$2x+3}$"),
    ("2", r"2+3}"),
    ("2", r"2+)3"),
    ("2", r"2+{3"),
    ("2", r"2+_3"),
    ("2", r"$2+\left(3$"),
    ("2", r"The answer is $2\pi\mathrm{cm$"),
    ("8", r"$8 + \frac{1}{2$"),
    ("4", r"$4&6$"),
    ("6", r"$6 - \sqrt[3}{2}$"),
    ("7", r"$7!!_{$"),
    ("0.5", r"0.5+&3"),
    ("1", r"1+__import__"),
    ("1", r"1+"),
    ("1", r"1-"),
    ("1", r"1*"),
    ("1", r"$1\cdot$"),
    ("1", r"$1 + $"),
    ("1", r"$1 =$"),
    ("5", r"$4 \lor 5$"),
    ("4", r"$4 \lor 5$"),
    ("4", r"$4 \land 5$"),
    ("9", r"$9\frac{1$"),
    ("9", r"$9\left[1$"),
    ("9", r"$9 + \right)$"),
    ("9", r"$9^$"),
    ("9", r"$9_$"),
    ("9", r"$9\frac{}{}$"),
    ("9", r"\boxed{9 + \sqrt{2}"),
    ("9", r"\boxed{9+}"),
    ("9", r"\boxed{9 \sqrt{}"),
    ("3", r"$3 + (4$"),
    ("3", r"$3 + 4)$"),
    ("3", r"$3 \begin{pmatrix} 1$"),
    ("3", r"$3 + \sqrt$"),
    ("3", r"3 + * 4"),
    ("3", r"3 // 4"),
    ("3", r"3..4"),
    ("3", r"$3 \times$"),
    ("3", r"$3 \div$"),
    ("3", r"3^^2"),
    ("3", r"3 = "),
    ("11", r"$11\log_{2$"),
    ("11", r"$11 \sin($"),
    ("11", r"$11 \int_{0}^{$"),
    ("11", r"$11 \sum_{i=1$"),
    ("11", r"$11 | x$"),
]


def test_half_a_formula_is_no_answer(worker: MetricWorker) -> None:
    found = [(target, text) for target, text in HALF if _status(worker, text, target) == "equal"]
    assert [] == found
    assert len(HALF) >= 50
    cut_off = [text for target, text in HALF[:17] if _status(worker, text, target) != "unparsed"]
    assert [] == cut_off


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("7", r"First I get \boxed{7}. Wait, no: \boxed{"),
        ("7", r"\boxed{7} ... the final answer is \boxed{9"),
        ("12", r"The answer is \boxed{12"),
        ("12", "\\boxed{12\n\nSo it is 12."),
        ("7", r"$\boxed{7$"),
        ("7", r"\boxed{7} and \boxed"),
        ("7", r"\boxed{7} and \boxed {9"),
        ("7", r"\boxed{7} and \fbox{9"),
        ("7", r"\boxed{7\}"),
        (r"\frac{1}{2}", r"\boxed{\frac{1}{2}"),
        ("cat", r"\boxed{cat"),
        ("7", r"\boxed{7} and \boxed{9+}"),
        ("7", r"\boxed{7} and \boxed{}"),
        ("7", r"\boxed{7} and \boxed{\left\{ 9 \right.}"),
    ],
)
def test_a_box_that_was_cut_off_is_no_answer_nor_is_one_before_it(worker: MetricWorker, target: str, text: str) -> None:
    assert "unparsed" == _status(worker, text, target)


@pytest.mark.parametrize(
    ("target", "text", "status"),
    [
        ("9", r"\boxed{7 and \boxed{9}", "equal"),
        ("7", r"\boxed{7 and \boxed{9}", "different"),
        ("5", r"\boxed{4} or \boxed{5}", "equal"),
        ("7", r"\boxed {7}", "equal"),
        ("9", r"\boxed{7}, no, \boxed 9", "equal"),
        ("7", r"\boxed{7}, no, \boxed 9", "different"),
        ("7", r"\boxed{7}, in a \boxed as asked", "equal"),
        (r"\{1, 2\}", r"\boxed{\{1,2\}}", "equal"),
        (r"\frac{\sqrt{2}}{2}", r"\fbox{\frac{\sqrt{2}}{2}}", "equal"),
    ],
)
def test_the_last_box_with_an_end_counts(worker: MetricWorker, target: str, text: str, status: str) -> None:
    assert status == _status(worker, text, target)


def test_a_run_gives_no_credit_for_a_box_before_one_that_was_cut_off(project: Project) -> None:
    texts = {"whole": r"\boxed{7}", "cut": r"First \boxed{7}. No: \boxed{9"}
    records = [
        {"id": id, "prompt": f"say: {text}", "targets": ["7"], "metric": "math_equal"} for id, text in texts.items()
    ]
    project.task("tasks/sums.jsonl", *records)
    project.run("--lm-include-per-example")
    found = {id: (one["score"], one["details"]["math_status"]) for id, one in project.examples().items()}
    assert {"sums:whole": (1.0, "equal"), "sums:cut": (0.0, "unparsed")} == found


def test_a_whole_formula_without_its_last_dollar_is_read(worker: MetricWorker) -> None:
    assert "equal" == _status(worker, r"The answer is $12\sqrt{3}", r"\sqrt{432}")
    assert "equal" == _status(worker, "She pays $5 for each and $18 in all.", "18")


@pytest.mark.parametrize("text", ["$12(x", "$12+", "Answer: 12+", "12+", "12 -", "12*", "12 =", "Answer: 12 +\nDone"])
def test_an_answer_that_ends_with_an_operator_is_cut_off(worker: MetricWorker, text: str) -> None:
    assert "unparsed" == _status(worker, text, "12")


@pytest.mark.parametrize("text", ["12,", "12;", "12)", "12.", "= 12", "=12", "* 12", "$12 + tax", "It costs 12 $"])
def test_what_a_sentence_or_a_list_has_around_a_number_is_no_half_formula(worker: MetricWorker, text: str) -> None:
    assert "equal" == _status(worker, text, "12")


def test_half_a_formula_before_the_answer_does_not_matter(worker: MetricWorker) -> None:
    assert "equal" == _status(worker, "It costs $18 + $18, so the answer is 18", "18")
    assert "equal" == _status(worker, "First $x + $, then\nA: 42", "42")


def test_a_target_that_is_half_a_formula_is_met_word_for_word_alone(worker: MetricWorker) -> None:
    assert "different" == _status(worker, "12", r"12\sqrt{3")
    assert "equal" == _status(worker, r"12\sqrt{3", r"12\sqrt{3")


@pytest.mark.parametrize("prediction", ["", "dunno", "((((", r"\begin{x}", "act"])
def test_a_word_is_the_target_itself_or_wrong(worker: MetricWorker, prediction: str) -> None:
    assert "different" == _status(worker, prediction, "cat")
    assert "unparsed" == _status(worker, prediction, "5")
    if prediction:
        assert "equal" == _status(worker, prediction, prediction)


def test_what_a_solution_states_last_counts(worker: MetricWorker) -> None:
    solution = "She has 16 - 3 = 13 eggs.\nShe sells 9 * $2 = $18.\n"
    assert "equal" == _status(worker, solution + "A: 18", "18")
    assert "equal" == _status(worker, solution + "#### 1,018", "1018")
    assert "different" == _status(worker, solution + "A: 18", "13")


def test_the_best_target_counts(worker: MetricWorker) -> None:
    assert "equal" == _status(worker, "7", "dunno", "8", "14/2")
    assert "different" == _status(worker, "7", "8")
    assert 0.0 == math_equal("7", [], {}).value


def test_without_math_verify_equal_texts_are_equal_and_others_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("math_verify.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(SHARED, MetricWorker)
    assert 1.0 == math_equal("0.5", ["0.5"], {}).value
    with pytest.raises(ScoringError, match=r"math_equal needs math_verify: pip install 'pytest-lmeval\[math\]'"):
        math_equal("1/2", ["0.5"], {})


def test_a_process_that_fails_is_an_error_and_not_a_wrong_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("math_verify.py").write_text("import os; os._exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(SHARED, MetricWorker)
    with pytest.raises(ScoringError, match="math_equal: its process ended with exit code 3"):
        math_equal("1", ["x"], {})


def test_the_registered_metric_uses_the_worker_that_all_share(worker: MetricWorker) -> None:
    metric = default_registry(entry_points=False).metric("math_equal").function
    assert ["equal", "different"] == [metric(r"\sqrt4", [each], {}).details["math_status"] for each in ("2", "3")]


@examples(40)
@given(*[st.fractions(max_denominator=99).filter(lambda value: abs(value) < 10_000)] * 2)
def test_equal_numbers_and_only_those_are_equal(worker: MetricWorker, a: Fraction, b: Fraction) -> None:
    doubled = f"{2 * a.numerator}/{2 * a.denominator}"
    assert "equal" == _status(worker, doubled, rf"\frac{{{a.numerator}}}{{{a.denominator}}}")
    assert ("equal" if a == b else "different") == _status(worker, str(a), str(b))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"0.\overline{3}", r"$\frac{1}{3}$"),
        (r"1.1\overline{6}", r"$\frac{7}{6}$"),
        ("3 1/2", r"$3\frac{1}{2}$"),
        ("101_2", "$5$"),
        ("109_2", "$109_2$"),
        ("1.5e-3", r"$1.5\times 10^{-3}$"),
        ("5 kilograms", r"$5 \text{kilograms}$"),
        ("1 and 2", "$1, 2$"),
        (r"so \$5 = $5$", "so 5 = $5$"),
        ("The sum is 5", "The sum is 5"),
    ],
)
def test_what_math_verify_misreads_is_rewritten_for_it(text: str, read: str) -> None:
    assert read == for_math_verify(text)


_HOSTILE = [
    *("answer" + " " * 100_000, "answer" + "\n" * 100_000, "answer " * 15_000, r"\(" * 50_000, "$" * 100_000),
    *(r"\boxed{" * 15_000, r"\text{" * 20_000, "(" * 100_000, "{" * 1999, " " * 100_000, "1," * 900, "±" * 1000),
    *("9" * 100_000, "0." * 50_000, "1 " * 50_000, "a" * 100_000, "1e" * 50_000, "1_" * 50_000, r"\frac" * 20_000),
]


@pytest.mark.parametrize("text", _HOSTILE, ids=lambda text: repr(text[:8]))
def test_hostile_text_is_made_ready_in_no_time_and_raises_nothing(text: str) -> None:
    started = time.process_time()
    for answer in stated_answers(text):
        plain_text(answer)
    assert 4 * LONGEST > len(for_math_verify(text))
    assert 5 > time.process_time() - started  # the square of the length would be minutes


@examples(300)
@given(st.text(st.sampled_from("0123.,x y()[]{}\\^_+-*/=<>|!%$\N{UNION}±frac sqrt text boxed and or"), max_size=40))
def test_any_text_is_made_ready(text: str) -> None:
    assert all(answer in text for answer in stated_answers(text))
    for_math_verify(text)
