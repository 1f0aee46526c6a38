"""Metrics for programs and for instruction following, and the metrics' contexts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks import BaseMetricContext, CodeExecutionPassAtOne
from pytest_lmeval.types import Score

BIG_CODE_BENCH_PACKAGE_MAPPING: dict[str, str | None] = {}
"""Empty: programs import the installed packages that the sandbox allows."""


class CodeCompletionAssertion:
    """A score of 1 if the predicted program prints ``True`` as its last word; scores are marked as ``forgeable``."""

    NAME = "code_completion_accuracy"
    NEEDS_SANDBOX = True

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, object], sandbox: Any) -> Score:
        """Return the score."""
        from pytest_lmeval.tasks.programs import prints_true

        return prints_true(prediction, sandbox)


class CodeExecutionPassAtOneContext(BaseMetricContext):
    """The context of ``CodeExecutionPassAtOne``; only ``test_code`` and ``benchmark_timeout`` have an effect."""

    run_env: str
    code_prompt: str
    test_code: str
    package_downloads: dict[str, str | None]
    snippet_merge_fn: str
    output_parse_fn: str
    benchmark_timeout: int = 60


class CodeExecutionPassAtOneWithCodebench(CodeExecutionPassAtOne):
    """The metric ``CodeExecutionPassAtOne`` for programs that import packages, which the user must install."""

    NAME = "code_pass_at_one_codebench"


class CallableSerializer:
    """Encodes a function as its name, because no run reads the function's code."""

    @staticmethod
    def encode(fn: Callable[..., Any]) -> str:
        """Return the function's name."""
        return f"{fn.__module__}.{fn.__qualname__}"


def unittest_merge_snippets(code: str, test_code: str) -> str:
    """Concatenate a program and its tests."""
    return f"{code}\n\n{test_code}"


def _parse_unittest_output(output: str) -> bool:
    """Return True if the last line of unittest's output begins with ``OK``; no run calls this function."""
    return output.rstrip().rpartition("\n")[2].startswith("OK")


class IFEvalMetricContext(BaseMetricContext):
    """The instructions that the answer to an item must follow."""

    key: int
    instruction_id_list: list[str]
    prompt: str
    additional_kwargs: list[dict[str, object]]


class IFEvalMetric:
    """A score of 1 if the answer follows all instructions by the strict rule of lm-eval's checker, and 0 otherwise."""

    NAME = "ifeval"
    NEEDS_TARGETS = False
    PACKAGE = "lm_eval"
    INSTALL = "lm-eval[ifeval]"

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, object]) -> Score:
        """Return 1.0 or 0.0."""
        names = ("key", "instruction_id_list", "prompt")
        document = {name: extras[name] for name in names} | {"kwargs": extras["additional_kwargs"]}
        found = import_module("lm_eval.tasks.ifeval.utils").process_results(document, [prediction])
        return Score(float(found["prompt_level_strict_acc"]), {"ifeval": dict(found)})


class MultiPLEMetricContext(BaseMetricContext):
    """The prompt and the tests of a program in a language other than Python."""

    prompt: str
    tests: str
    language: str


class MultiPLECodeAssertion:
    """A metric that runs refuse, because the sandbox has no compilers for languages other than Python."""

    NAME = "multipl_e_assertion"
    NEEDS_TARGETS = False
    NEEDS_SANDBOX = True

    def __call__(self, prediction: str, targets: Sequence[str], extras: Mapping[str, object], sandbox: Any) -> Score:
        """Raise RecordRefused."""
        raise AssertionError("check refuses every context")

    @staticmethod
    def check(extras: Mapping[str, object]) -> None:
        """Raise RecordRefused."""
        language = extras.get("language", "another language")
        detail = f"a program in {language!r} needs a container of the package llm-sandbox, which no run starts"
        raise RecordRefused("bad_value", "METRICS", f"MultiPLECodeAssertion: {detail}")
