"""Provide the metrics, which are functions that score a prediction from 0 to 1.

A metric takes a prediction and a record's targets and extras, and returns a float or a ``Score``, usually for the best
target. A few metrics also take a sandbox or a judge. The prediction is the completion after the post-process rule has
changed it.

Each module in this folder declares its metrics with :func:`~pytest_lmeval.metrics.parts.declare.metric`, and every
registry imports all modules. The folder ``parts/`` contains code that only some runs need or that several metrics
share.
"""

from __future__ import annotations

from pytest_lmeval.metrics.bleu import bleu, bleu_4
from pytest_lmeval.metrics.csv_format import csv_columns, csv_separator, has_csv
from pytest_lmeval.metrics.drop import drop_em, drop_f1
from pytest_lmeval.metrics.exact import (
    accuracy,
    completion_accuracy,
    exact_match,
    exact_match_normalized,
    multiple_choice,
    substring_contains,
)
from pytest_lmeval.metrics.f1 import f1, squad_em, squad_f1
from pytest_lmeval.metrics.json_format import is_json, json_exact, json_schema, only_json
from pytest_lmeval.metrics.parts.texts import lcs_length
from pytest_lmeval.metrics.rouge import rouge_1, rouge_2, rouge_l

__all__ = [
    "accuracy",
    "bleu",
    "bleu_4",
    "completion_accuracy",
    "csv_columns",
    "csv_separator",
    "drop_em",
    "drop_f1",
    "exact_match",
    "exact_match_normalized",
    "f1",
    "has_csv",
    "is_json",
    "json_exact",
    "json_schema",
    "lcs_length",
    "multiple_choice",
    "only_json",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "squad_em",
    "squad_f1",
    "substring_contains",
]
