"""Names that task files import: task classes, metrics, and functions that load data or run code."""

from __future__ import annotations

from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask, Language
from pytest_lmeval.tasks.conversations import Task, TaskMixture, TaskSequence, render_mc
from pytest_lmeval.tasks.execution import execute_code
from pytest_lmeval.tasks.judging import JudgedAnswer, LLMJudgeScore
from pytest_lmeval.tasks.loading import load_dataset, load_hub_dataset
from pytest_lmeval.tasks.sample import BaseMetricContext, ResponseType, Sample
from pytest_lmeval.tasks.scores import (
    F1,
    AccuracyCompletion,
    AccuracyCompletionOLMES,
    AccuracyLoglikelihood,
    AccuracyNormLoglikelihood,
    BitsPerByteLoglikelihood,
    Bleu,
    CodeExecutionPassAtOne,
    CSVFormat,
    DropF1ExactMatch,
    JSONFormat,
    MathReasoningCompletion,
    Rouge1,
    Rouge2,
    RougeL,
    SquadF1,
)
from pytest_lmeval.types import Message, Score

__all__ = [
    "F1",
    "NO_SUBJECT",
    "AccuracyCompletion",
    "AccuracyCompletionOLMES",
    "AccuracyLoglikelihood",
    "AccuracyNormLoglikelihood",
    "BaseMetricContext",
    "BaseTask",
    "BitsPerByteLoglikelihood",
    "Bleu",
    "CSVFormat",
    "CodeExecutionPassAtOne",
    "DropF1ExactMatch",
    "JSONFormat",
    "JudgedAnswer",
    "LLMJudgeScore",
    "Language",
    "MathReasoningCompletion",
    "Message",
    "ResponseType",
    "Rouge1",
    "Rouge2",
    "RougeL",
    "Sample",
    "Score",
    "SquadF1",
    "Task",
    "TaskMixture",
    "TaskSequence",
    "execute_code",
    "load_dataset",
    "load_hub_dataset",
    "render_mc",
]
