"""Which metrics a class of them stands for, and when they say anything."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.loading import default_registry
from pytest_lmeval.tasks import CSVFormat, JSONFormat, scores
from pytest_lmeval.tasks.scores import NamedMetrics

CLASSES = [value for value in vars(scores).values() if isinstance(value, type) and issubclass(value, NamedMetrics)]
NOT_THERE_YET = {"accuracy_loglikelihood", "accuracy_norm_loglikelihood", "byte_probability"}


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not NamedMetrics], ids=lambda kind: kind.__name__)
def test_every_class_stands_for_registered_metrics(kind: type[NamedMetrics]) -> None:
    known = default_registry(entry_points=False).metrics.keys() | NOT_THERE_YET

    assert set() == set(kind.NAMES) - known
    assert kind.NEEDS.keys() <= set(kind.NAMES[1:])


@pytest.mark.parametrize(
    ("kind", "targets", "extras", "names"),
    [
        (JSONFormat, ["not json"], {}, ["is_json", "only_json"]),
        (JSONFormat, ['{"a": 1}'], {}, ["is_json", "only_json", "json_exact"]),
        (JSONFormat, ["x"], {"json_schema": {}}, ["is_json", "only_json", "json_schema"]),
        (CSVFormat, ["x"], {}, ["has_csv"]),
        (CSVFormat, ["x"], {"separator": ",", "columns": 2}, ["has_csv", "csv_separator", "csv_columns"]),
    ],
)
def test_a_metric_that_lacks_what_it_needs_is_left_out(
    kind: type[NamedMetrics], targets: list[str], extras: dict[str, Any], names: list[str]
) -> None:
    assert names == [name for name in kind.NAMES if kind.applies(name, targets, extras)]
