"""The names that eval-framework's task modules import, so that only a module's import lines need to change.

The package includes all names of :mod:`pytest_lmeval.tasks`, but with a ``BaseTask`` that works as in eval-framework.
The other names are new implementations that produce the same texts and numbers.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pytest_lmeval import tasks
from pytest_lmeval.compat.eval_framework.measures import (
    ConfidenceWeightedAccuracy,
    DistributionalCorrectnessScore,
    LanguageRawConsistencyChecker,
    PartialEvalAccuracy,
    TernaryScore,
)
from pytest_lmeval.compat.eval_framework.minerva import (
    MathMinervaCompletion,
    MathMinervaCompletionRelaxed,
    extract_answers,
    normalized_gold_from_solution,
)
from pytest_lmeval.compat.eval_framework.programs import (
    BIG_CODE_BENCH_PACKAGE_MAPPING,
    CallableSerializer,
    CodeCompletionAssertion,
    CodeExecutionPassAtOneContext,
    CodeExecutionPassAtOneWithCodebench,
    IFEvalMetric,
    IFEvalMetricContext,
    MultiPLECodeAssertion,
    MultiPLEMetricContext,
    _parse_unittest_output,
    unittest_merge_snippets,
)
from pytest_lmeval.compat.eval_framework.styles import (
    BPBStyle,
    ClozeStyle,
    MCCompletionStyle,
    MCStyle,
    StyledTask,
    TaskStyler,
    answer_key_to_index,
    format_mc_prompt,
    get_n_letters,
    shuffle_correct_with_distractors,
)
from pytest_lmeval.tasks import *  # noqa: F403  # every name of that module is here
from pytest_lmeval.tasks import BaseMetricContext
from pytest_lmeval.tasks import SquadF1 as F1SquadNormalized

BaseTask = StyledTask  # type: ignore[misc]  # in place of that of pytest_lmeval.tasks
SubjectType = TypeVar("SubjectType")
RANDOM_SEED = 42
# Files in the task file's folder that pin the revisions of datasets on the hub.
HF_REVISIONS_LOCKFILE = Path("hf-dataset-revisions.json")
FROZEN_HF_REVISIONS_LOCKFILE = Path("frozen-hf-dataset-revisions.json")


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class DropMetricContext(BaseMetricContext):
    """The right answers for ``DropF1ExactMatch``; each answer is a list of spans."""

    answer_tuples: list[list[str]]


__all__ = [
    "BIG_CODE_BENCH_PACKAGE_MAPPING",
    "FROZEN_HF_REVISIONS_LOCKFILE",
    "HF_REVISIONS_LOCKFILE",
    "RANDOM_SEED",
    "BPBStyle",
    "CallableSerializer",
    "ClozeStyle",
    "CodeCompletionAssertion",
    "CodeExecutionPassAtOneContext",
    "CodeExecutionPassAtOneWithCodebench",
    "ConfidenceWeightedAccuracy",
    "DistributionalCorrectnessScore",
    "DropMetricContext",
    "F1SquadNormalized",
    "IFEvalMetric",
    "IFEvalMetricContext",
    "LanguageRawConsistencyChecker",
    "MCCompletionStyle",
    "MCStyle",
    "MathMinervaCompletion",
    "MathMinervaCompletionRelaxed",
    "MultiPLECodeAssertion",
    "MultiPLEMetricContext",
    "PartialEvalAccuracy",
    "Role",
    "SubjectType",
    "TaskStyler",
    "TernaryScore",
    "_parse_unittest_output",
    "answer_key_to_index",
    "extract_answers",
    "format_mc_prompt",
    "get_n_letters",
    "normalized_gold_from_solution",
    "shuffle_correct_with_distractors",
    "unittest_merge_snippets",
]
__all__ += tasks.__all__
