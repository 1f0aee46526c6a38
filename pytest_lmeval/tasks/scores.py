"""Define the classes for ``METRICS``; each class names registered metrics or is a metric function.

Your own metric class needs ``NAME`` and ``__call__(prediction, targets, extras)``, which returns a float in [0, 1]. The
class may have ``THRESHOLD`` (1.0 by default) and ``NEEDS_SANDBOX`` (for a fourth argument that runs code). To ask a
judge, derive the metric class from :class:`~pytest_lmeval.tasks.judging.LLMJudgeScore`.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.f1 import multiset_f1
from pytest_lmeval.types import Score

_COMMA_AND_DOLLAR = str.maketrans("", "", ",$")


class NamedMetrics:
    """The registered metrics in ``NAMES``; the first metric always applies.

    ``NEEDS`` maps further metrics to the field of the metric context that each of them needs; a run skips a metric
    whose field is missing.
    """

    NAMES: ClassVar[tuple[str, ...]]
    NEEDS: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def applies(cls, name: str, targets: Sequence[str], extras: Mapping[str, Any]) -> bool:
        """Return True if the metric ``name`` applies to an item with the given targets and metric context."""
        return name not in cls.NEEDS or cls.NEEDS[name] in extras


class AccuracyCompletion(NamedMetrics):
    """Scores 1.0 if the prediction equals a correct answer exactly, otherwise 0.0."""

    NAMES = ("completion_accuracy",)


class Rouge1(NamedMetrics):
    """ROUGE-1 F1."""

    NAMES = ("rouge_1",)


class Rouge2(NamedMetrics):
    """ROUGE-2 F1."""

    NAMES = ("rouge_2",)


class RougeL(NamedMetrics):
    """ROUGE-L F1."""

    NAMES = ("rouge_l",)


class Bleu(NamedMetrics):
    """Sentence BLEU, from 0 to 1."""

    NAMES = ("bleu",)


class SquadF1(NamedMetrics):
    """F1 over words without articles and punctuation, and exact match of the same words."""

    NAMES = ("squad_f1", "squad_em")


class DropF1ExactMatch(NamedMetrics):
    """F1 and exact match of spans, for the best correct answer; ``answer_tuples`` in the context lists the spans."""

    NAMES = ("drop_f1", "drop_em")


class F1:
    """F1 over the multisets of lowercased words, for the best correct answer."""

    NAME = "f1_of_words"
    THRESHOLD = 0.5

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
        """Return the F1 score; two empty strings score 1."""
        given = prediction.lower().split()
        return max((multiset_f1(given, target.lower().split()) for target in targets), default=0.0)


class AccuracyCompletionOLMES:
    """The share of correct answers that the prediction equals, ignoring commas, dollar signs and a final full stop.

    As in OLMES, the metric also ignores text up to the last ``#### ``.
    """

    NAME = "accuracy_completion_olmes"

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
        """Return the share of the targets that the prediction equals."""
        given = self._normal(prediction)
        return sum(given == self._normal(target) for target in targets) / len(targets) if targets else 0.0

    @staticmethod
    def _normal(text: str) -> str:
        text = text.translate(_COMMA_AND_DOLLAR).rpartition("#### ")[2]
        # Like $ in a pattern, also match before a trailing newline.
        body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
        return body.removesuffix(".") + end


class MathReasoningCompletion(NamedMetrics):
    """Scores 1.0 if the answer is mathematically equal to a correct answer, otherwise 0.0."""

    NAMES = ("math_equal",)


class JSONFormat(NamedMetrics):
    """Four metrics: the answer contains JSON, is only JSON, fits ``json_schema``, and equals the correct answer."""

    NAMES = ("is_json", "only_json", "json_schema", "json_exact")
    NEEDS: ClassVar[Mapping[str, str]] = {"json_schema": "json_schema"}

    @classmethod
    def applies(cls, name: str, targets: Sequence[str], extras: Mapping[str, Any]) -> bool:
        """Return False for ``json_exact`` if a target is not JSON; for other metrics, decide by ``NEEDS``."""
        if name != "json_exact":
            return super().applies(name, targets, extras)
        from pytest_lmeval.metrics import only_json

        return all(only_json(target, (), {}) for target in targets)


class CSVFormat(NamedMetrics):
    """Three metrics: the answer contains a table, and has the context's ``separator`` and number of ``columns``."""

    NAMES = ("has_csv", "csv_separator", "csv_columns")
    NEEDS: ClassVar[Mapping[str, str]] = {"csv_separator": "separator", "csv_columns": "columns"}


class AccuracyLoglikelihood(NamedMetrics):
    """Scores 1.0 if the most probable completion is the correct answer, otherwise 0.0."""

    NAMES = ("accuracy_loglikelihood",)


class AccuracyNormLoglikelihood(NamedMetrics):
    """Scores 1.0 if the completion with the highest log-probability per character is correct, otherwise 0.0."""

    NAMES = ("accuracy_norm_loglikelihood",)


class BitsPerByteLoglikelihood(NamedMetrics):
    """The mean probability of a byte of the correct answer, ``2 ** -(bits per byte)``; higher is better."""

    NAMES = ("byte_probability",)


class CodeExecutionPassAtOne:
    """Scores 1.0 if the program passes every test case, otherwise 0.0.

    ``test_cases`` in the metric context may be Python expressions or ``assert`` statements, or the source of a
    ``check(candidate)``. Test cases may also be ``[arguments..., expected]`` lists or ``{"input", "output"}`` objects
    for the function ``entry_point``. ``timeout_s`` is the limit in CPU seconds, 3 by default. Instead of
    ``test_cases``, the context may have ``test_code``, unittest source that runs after the program, and
    ``benchmark_timeout``, a number of CPU seconds, of which at most 30 count.
    """

    NAME = "code_pass_at_one"
    NEEDS_SANDBOX = True

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any], sandbox: Any) -> Score:
        """Score the code block in ``prediction``; without a code block or with ``test_code``, score the whole text."""
        if "test_code" in extras:
            from pytest_lmeval.tasks.programs import passes_unittests

            return passes_unittests(prediction, extras, sandbox)
        from pytest_lmeval.metrics import code_exec
        from pytest_lmeval.postprocess import post_process

        plan = plan_test_cases(extras)
        program = post_process("extract_code_block", prediction)
        score = code_exec.code_exec_expressions if plan.expressions else code_exec.code_exec
        fraction = score(program, plan.expressions, plan.extras, sandbox)
        return Score(float(fraction.value == 1.0), fraction.details)

    @staticmethod
    def check(extras: Mapping[str, Any]) -> None:
        """Raise RecordRefused if the metric context has no valid test cases."""
        if "test_code" in extras:
            from pytest_lmeval.tasks.programs import check_unittests

            check_unittests(extras)
            return
        from pytest_lmeval.metrics.parts import code_plan

        plan = plan_test_cases(extras)
        code_plan.timeout_of(plan.extras, "extras")
        if plan.expressions:
            code_plan.plan_targets(plan.expressions)
        else:
            code_plan.plan_extras(plan.extras, ())


@dataclass(frozen=True, slots=True)
class Plan:
    """The expressions that must be true, or the extras of a compact ``code_exec`` record."""

    expressions: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


def plan_test_cases(context: Mapping[str, Any]) -> Plan:
    """Return the plan for ``context["test_cases"]``; raise RecordRefused if the test cases are not valid.

    >>> plan_test_cases({"test_cases": ["assert add(1, 2) == 3", "add(0, 0) == 0"]}).expressions
    ('add(1, 2) == 3', 'add(0, 0) == 0')
    """
    cases = context.get("test_cases")
    limit = {"timeout_s": context["timeout_s"]} if "timeout_s" in context else {}
    if isinstance(cases, str):
        return Plan(extras={**limit, **_source(cases, context)})
    if not isinstance(cases, Sequence) or not cases:
        raise RecordRefused("bad_value", "test_cases", f"expected source, or a list of test cases, got {cases!r:.80}")
    if all(isinstance(case, str) for case in cases):
        expressions = [_expression(case) for case in cases]
        if None not in expressions:
            return Plan(tuple(text for text in expressions if text is not None), limit)
        return Plan(extras={**limit, **_source("\n".join(cases), context)})
    pairs = [_pair(number, case) for number, case in enumerate(cases)]
    return Plan(extras={**limit, "io_pairs": pairs, "entry_point": context.get("entry_point")})


def _source(text: str, context: Mapping[str, Any]) -> Mapping[str, Any]:
    entry_point = context.get("entry_point")
    if "def check(" in text:
        return {"tests": text, "entry_point": entry_point}
    named = f"    {entry_point} = candidate\n" if isinstance(entry_point, str) else ""
    body = textwrap.indent(textwrap.dedent(text), "    ")
    return {"tests": f"def check(candidate):\n{named}{body}\n", "entry_point": entry_point}


def _expression(text: str) -> str | None:
    """Return the expression, or an assertion's condition, in ``text``; return None unless it is the only statement."""
    try:
        body = ast.parse(textwrap.dedent(text).strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordRefused("bad_value", "test_cases", f"expected Python, got {text!r:.80}: {error}") from None
    if len(body) != 1:
        return None
    (statement,) = body
    if isinstance(statement, ast.Assert):
        return ast.unparse(statement.test)
    return ast.unparse(statement.value) if isinstance(statement, ast.Expr) else None


def _pair(number: int, case: Any) -> list[Any]:
    if isinstance(case, list | tuple):
        return list(case)
    if isinstance(case, Mapping) and "input" in case and "output" in case:
        given = case["input"]
        return [*(given if isinstance(given, list | tuple) else [given]), case["output"]]
    wanted = 'a list [arguments..., expected], or an object with "input" and "output"'
    raise RecordRefused("bad_value", "test_cases", f"case {number}: expected {wanted}, got {case!r:.80}")
