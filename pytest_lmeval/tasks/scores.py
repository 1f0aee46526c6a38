"""The metrics of ``METRICS`` by class: each represents one or several metrics, by name or as a function.

A class of your own works as well: with ``NAME`` and ``__call__(prediction, targets, extras)`` that returns a float in
[0, 1], and, if it likes, ``THRESHOLD`` (default 1.0) and ``NEEDS_SANDBOX`` (a fourth argument that runs code). One that
asks a judge is a subclass of :class:`~pytest_lmeval.tasks.judging.LLMJudgeScore`.
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
    """Metrics of the registry: ``NAMES``, of which the first always applies.

    ``NEEDS`` says of the others which field of the metric context each needs; without it, it is left out.
    """

    NAMES: ClassVar[tuple[str, ...]]
    NEEDS: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def applies(cls, name: str, targets: Sequence[str], extras: Mapping[str, Any]) -> bool:
        """Tell whether the metric ``name`` says anything of an item with these targets and this context."""
        return name not in cls.NEEDS or cls.NEEDS[name] in extras


class AccuracyCompletion(NamedMetrics):
    """The prediction is the ground truth, character for character."""

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
    """F1 over words without articles and punctuation, and whether they are the same words."""

    NAMES = ("squad_f1", "squad_em")


class DropF1ExactMatch(NamedMetrics):
    """The spans of one of the answers; ``answer_tuples`` of the context are the answers, each a list of spans."""

    NAMES = ("drop_f1", "drop_em")


class F1:
    """F1 over the multisets of lowercased words between blanks, of the best ground truth."""

    NAME = "f1_of_words"
    THRESHOLD = 0.5

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
        """Return the F1; two sides without a word are equal."""
        given = prediction.lower().split()
        return max((multiset_f1(given, target.lower().split()) for target in targets), default=0.0)


class AccuracyCompletionOLMES:
    """The prediction is the ground truth, commas, dollars, a last dot and all up to the last ``#### `` aside.

    Of several ground truths: the share of those that it is, as in OLMES.
    """

    NAME = "accuracy_completion_olmes"

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
        """Return the share of the targets that are equal."""
        given = self._normal(prediction)
        return sum(given == self._normal(target) for target in targets) / len(targets) if targets else 0.0

    @staticmethod
    def _normal(text: str) -> str:
        text = text.translate(_COMMA_AND_DOLLAR).rpartition("#### ")[2]
        # As a pattern's $ has it, before a last line end, too.
        body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
        return body.removesuffix(".") + end


class MathReasoningCompletion(NamedMetrics):
    """The answer is the same mathematics as the ground truth."""

    NAMES = ("math_equal",)


class JSONFormat(NamedMetrics):
    """The answer holds JSON; it is nothing else; it fulfils ``json_schema``; it is the ground truth."""

    NAMES = ("is_json", "only_json", "json_schema", "json_exact")
    NEEDS: ClassVar[Mapping[str, str]] = {"json_schema": "json_schema"}

    @classmethod
    def applies(cls, name: str, targets: Sequence[str], extras: Mapping[str, Any]) -> bool:
        """Leave ``json_exact`` out where a target is not JSON."""
        if name != "json_exact":
            return super().applies(name, targets, extras)
        from pytest_lmeval.metrics import only_json

        return all(only_json(target, (), {}) for target in targets)


class CSVFormat(NamedMetrics):
    """The answer holds a table; with ``separator``; with as many ``columns`` as the context says."""

    NAMES = ("has_csv", "csv_separator", "csv_columns")
    NEEDS: ClassVar[Mapping[str, str]] = {"csv_separator": "separator", "csv_columns": "columns"}


class AccuracyLoglikelihood(NamedMetrics):
    """The most probable of the possible completions is the ground truth."""

    NAMES = ("accuracy_loglikelihood",)


class AccuracyNormLoglikelihood(NamedMetrics):
    """The completion with the highest log-probability per character is the ground truth, as in eval-framework."""

    NAMES = ("accuracy_norm_loglikelihood",)


class BitsPerByteLoglikelihood(NamedMetrics):
    """The mean probability of a byte of the ground truth: 2 to the minus bits per byte, so that more is better."""

    NAMES = ("byte_probability",)


class CodeExecutionPassAtOne:
    """1.0 if the program meets every test case, else 0.0.

    The metric context has ``test_cases``: Python expressions or ``assert`` statements; ``[arguments..., expected]``
    lists or ``{"input", "output"}`` objects for the function ``entry_point``; or the source of a
    ``check(candidate)``. ``timeout_s`` is in CPU seconds, 3 by default.
    """

    NAME = "code_pass_at_one"
    NEEDS_SANDBOX = True

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, Any], sandbox: Any) -> Score:
        """Return the score of the code block in ``prediction``, or of all of it."""
        from pytest_lmeval.metrics import code_exec
        from pytest_lmeval.postprocess import post_process

        plan = plan_test_cases(extras)
        program = post_process("extract_code_block", prediction)
        score = code_exec.code_exec_expressions if plan.expressions else code_exec.code_exec
        fraction = score(program, plan.expressions, plan.extras, sandbox)
        return Score(float(fraction.value == 1.0), fraction.details)

    @staticmethod
    def check(extras: Mapping[str, Any]) -> None:
        """Raise RecordRefused where the context does not say what the program must do."""
        from pytest_lmeval.metrics.parts import code_plan

        plan = plan_test_cases(extras)
        code_plan.timeout_of(plan.extras, "extras")
        if plan.expressions:
            code_plan.plan_targets(plan.expressions)
        else:
            code_plan.plan_extras(plan.extras, ())


@dataclass(frozen=True, slots=True)
class Plan:
    """Expressions that must hold, or else the extras of a compact ``code_exec`` record."""

    expressions: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


def plan_test_cases(context: Mapping[str, Any]) -> Plan:
    """Return what ``context["test_cases"]`` asks for; raise RecordRefused for what is not clear.

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
    """Return the expression that ``text``, or the one assertion in it, says; None where it does more."""
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
