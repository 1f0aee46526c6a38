"""Quantiles and histogram of the latencies."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.report.html.data import latency_facts
from tests import needs
from tests.tables import each_row

LATENCIES = st.lists(st.floats(min_value=0, max_value=1e6, allow_subnormal=False), min_size=1, max_size=60)


def test_without_a_latency_there_is_nothing_to_show() -> None:
    assert None is latency_facts([])


@given(LATENCIES)
def test_every_value_is_in_one_bin_and_the_bins_join(values: list[float]) -> None:
    facts = latency_facts(values)
    assert facts is not None
    bins = facts["bins"]
    assert len(values) == sum(count for _, _, count in bins)
    assert (min(values), max(values)) == (bins[0][0], bins[-1][1])
    assert [high for _, high, _ in bins[:-1]] == [low for low, _, _ in bins[1:]]


@given(LATENCIES)
def test_quantiles_are_those_of_numpy(values: list[float]) -> None:
    facts = latency_facts(values)
    assert facts is not None
    numpy = needs.module("numpy")
    quantiles = {"median": (0.5, 1), "p95": (0.95, 20), "p99": (0.99, 100)}
    for name, (share, least) in quantiles.items():
        expected = float(numpy.quantile(values, share, method="inverted_cdf")) if len(values) >= least else None
        assert expected == facts[name]


@each_row(("fastest", "log"), [(0.0, False), (10.0, False), (1.0, True)])
def test_bins_are_of_equal_ratio_where_the_values_span_much(fastest: float, log: bool) -> None:
    facts = latency_facts([fastest, 50.0, 100.0])
    assert facts is not None
    low, high, _ = facts["bins"][1]
    width = high / low if log else high - low
    assert log == facts["log"]
    assert math.isclose(width, 100 ** (1 / 24) if log else (100 - fastest) / 24)
