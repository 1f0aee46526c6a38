"""The names that eval-framework's task modules import, all in one place: only their import lines change.

Most are those of :mod:`pytest_lmeval.tasks`. What is here alone is written anew, and gives the same texts and numbers.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TypeVar

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
from pytest_lmeval.tasks import (
    F1,
    NO_SUBJECT,
    AccuracyCompletion,
    AccuracyCompletionOLMES,
    AccuracyLoglikelihood,
    AccuracyNormLoglikelihood,
    BaseMetricContext,
    BitsPerByteLoglikelihood,
    DropF1ExactMatch,
    Language,
    MathReasoningCompletion,
    Message,
    ResponseType,
    Sample,
    load_dataset,
)
from pytest_lmeval.tasks import SquadF1 as F1SquadNormalized

BaseTask = StyledTask
SubjectType = TypeVar("SubjectType")
RANDOM_SEED = 42
# Which revision of a dataset is asked about: files beside the task file, needed for data of the hub alone.
HF_REVISIONS_LOCKFILE = Path("hf-dataset-revisions.json")
FROZEN_HF_REVISIONS_LOCKFILE = Path("frozen-hf-dataset-revisions.json")


class Role(StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class DropMetricContext(BaseMetricContext):
    """The answers that ``DropF1ExactMatch`` compares with, each a list of spans."""

    answer_tuples: list[list[str]]


__all__ = [
    "F1",
    "FROZEN_HF_REVISIONS_LOCKFILE",
    "HF_REVISIONS_LOCKFILE",
    "NO_SUBJECT",
    "RANDOM_SEED",
    "AccuracyCompletion",
    "AccuracyCompletionOLMES",
    "AccuracyLoglikelihood",
    "AccuracyNormLoglikelihood",
    "BPBStyle",
    "BaseMetricContext",
    "BaseTask",
    "BitsPerByteLoglikelihood",
    "ClozeStyle",
    "ConfidenceWeightedAccuracy",
    "DistributionalCorrectnessScore",
    "DropF1ExactMatch",
    "DropMetricContext",
    "F1SquadNormalized",
    "Language",
    "LanguageRawConsistencyChecker",
    "MCCompletionStyle",
    "MCStyle",
    "MathMinervaCompletion",
    "MathMinervaCompletionRelaxed",
    "MathReasoningCompletion",
    "Message",
    "PartialEvalAccuracy",
    "ResponseType",
    "Role",
    "Sample",
    "SubjectType",
    "TaskStyler",
    "TernaryScore",
    "answer_key_to_index",
    "extract_answers",
    "format_mc_prompt",
    "get_n_letters",
    "load_dataset",
    "normalized_gold_from_solution",
    "shuffle_correct_with_distractors",
]
