"""The names that eval-framework's task modules import, all in one place: only their import lines change.

All names of :mod:`pytest_lmeval.tasks` are here; ``BaseTask`` is the one that eval-framework's modules mean. What is
here alone is written anew, and gives the same texts and numbers.
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
    Bleu,
    CodeExecutionPassAtOne,
    CSVFormat,
    DropF1ExactMatch,
    JSONFormat,
    JudgedAnswer,
    Language,
    LLMJudgeScore,
    MathReasoningCompletion,
    Message,
    ResponseType,
    Rouge1,
    Rouge2,
    RougeL,
    Sample,
    Score,
    SquadF1,
    Task,
    TaskMixture,
    TaskSequence,
    execute_code,
    load_dataset,
    render_mc,
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
    "Bleu",
    "CSVFormat",
    "ClozeStyle",
    "CodeExecutionPassAtOne",
    "ConfidenceWeightedAccuracy",
    "DistributionalCorrectnessScore",
    "DropF1ExactMatch",
    "DropMetricContext",
    "F1SquadNormalized",
    "JSONFormat",
    "JudgedAnswer",
    "LLMJudgeScore",
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
    "Rouge1",
    "Rouge2",
    "RougeL",
    "Sample",
    "Score",
    "SquadF1",
    "SubjectType",
    "Task",
    "TaskMixture",
    "TaskSequence",
    "TaskStyler",
    "TernaryScore",
    "answer_key_to_index",
    "execute_code",
    "extract_answers",
    "format_mc_prompt",
    "get_n_letters",
    "load_dataset",
    "normalized_gold_from_solution",
    "render_mc",
    "shuffle_correct_with_distractors",
]
