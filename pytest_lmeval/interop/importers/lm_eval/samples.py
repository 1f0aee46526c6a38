"""One document of a task, with a sample for each filter, to a result."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.formats.harness.aggregates import encoded, gate_value
from pytest_lmeval.formats.harness.measures import RIGHT_OR_WRONG
from pytest_lmeval.formats.harness.task import DETAILS
from pytest_lmeval.formats.loglikelihood import ranked
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.hashes import hashes_of
from pytest_lmeval.interop.importers.lm_eval.folder import Sample
from pytest_lmeval.leaderboard.groups import shown
from pytest_lmeval.numbers import is_share
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult, LogProb

_NEEDED = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task of the harness as a folder of outputs knows it: its keys, and who answered."""

    name: str
    config: Mapping[str, Any]
    version: Any
    higher: Mapping[str, Any]
    adapter: str

    def decisive(self, first: Mapping[str, Any]) -> str:
        """Return the metric and filter that are the score: the first of each, as for a task file that runs here."""
        listed = [each.get("metric") for each in self.config.get("metric_list") or () if isinstance(each, dict)]
        metric = next((name for name in listed if name in first["metrics"]), first["metrics"][0])
        return f"{metric},{first['filter']}"

    def rises(self, decisive: str) -> bool:
        """Tell whether more of a metric is better."""
        return bool(self.higher.get(decisive.rpartition(",")[0], True))


def results_of(task: ImportedTask, samples: Sequence[Sample]) -> list[ExampleResult]:
    """Return a result for each document, in their order; raise UsageError that names the line that is at fault."""
    documents: dict[int, dict[str, Sample]] = {}
    for place, sample in samples:
        missing = [key for key in _NEEDED if key not in sample]
        if missing or not sample["metrics"] or not isinstance(sample["doc_id"], int):
            raise UsageError(f"{place}: not a sample: {missing[0] if missing else 'doc_id or metrics'!r} is missing")
        by_filter = documents.setdefault(sample["doc_id"], {})
        if sample["filter"] in by_filter:
            raise UsageError(f"{place}: document {sample['doc_id']} is there twice for the filter {sample['filter']!r}")
        by_filter[sample["filter"]] = place, sample
    return [_result(task, [*documents[number].values()]) for number in sorted(documents)]


def _result(task: ImportedTask, samples: Sequence[Sample]) -> ExampleResult:
    place, first = samples[0]
    try:
        values = {f"{name},{each['filter']}": encoded(each[name]) for _, each in samples for name in each["metrics"]}
        decisive = task.decisive(first)
        score, how = (None, "") if values[decisive] is None else gate_value(values[decisive], task.rises(decisive))
        asked = [[*each.values()] for each in first["arguments"].values()]
        details, outputs = _answers(first["resps"], asked)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ScoringError) as error:
        raise UsageError(f"{place}: not a sample as lm_eval writes it: {type(error).__name__}: {error}") from None
    threshold = 1.0 if decisive.rpartition(",")[0] in RIGHT_OR_WRONG else 0.0
    targets = _targets(first, asked, task.config)
    given = first["filtered_resps"][0] if first["filtered_resps"] else ""
    parts = targets, shown(decisive), "none"
    return ExampleResult(
        task=task.name,
        id=str(first["doc_id"]),
        item=f"{task.name}.{first['doc_id']}",
        metric=shown(decisive),
        hash=hashes_of(str(asked), *parts, {"document": first["doc"], "version": task.version})[0],
        scoring_hash=hashes_of(str(asked), *parts, {"document": first["doc"]})[1],
        prompt=str(asked[0][0]) if asked else "",
        targets=targets,
        adapter=task.adapter,
        outputs=outputs,
        predictions=(given if isinstance(given, str) and outputs else "",),
        status="error" if score is None else "passed" if is_at_least(score, threshold) else "below",
        error=f"{shown(decisive)} is not a number" if score is None else "",
        score=score,
        threshold=threshold,
        details={**details, DETAILS: values, **({"gate_value": how} if how else {})},
        metrics={shown(name): float(value) for name, value in values.items() if is_share(value)},
    )


def _answers(responses: Sequence[Any], asked: Sequence[Sequence[Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the details of log-likelihoods, or the texts that were generated."""
    if len(asked[0]) == 2 and isinstance(asked[0][1], Mapping):
        return {}, tuple(map(str, responses[0]))
    given = [_log_prob(response[0]) for response in responses]
    texts = [str(each[-1]) for each in asked]
    return ranked(list(dict(zip(map(str, asked), given, strict=True)).values()), texts, [*map(str, asked)]).record(), ()


def _log_prob(response: Any) -> LogProb:
    total, greedy = (response, False) if isinstance(response, str | float) else response
    return LogProb(float(total), (), str(greedy) == "True")


def _targets(sample: Mapping[str, Any], asked: Sequence[Sequence[Any]], config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the right answers as a task file that runs here has them: of choices their texts."""
    target = str(sample["target"])
    is_number = config.get("output_type") == "multiple_choice" and target.isdecimal() and int(target) < len(asked)
    if is_number and all(each[0] == asked[0][0] for each in asked):
        return (str(asked[int(target)][-1]).removeprefix(str(config.get("target_delimiter", " "))),)
    if target.startswith("["):
        try:
            return tuple(map(str, ast.literal_eval(target)))
        except (SyntaxError, ValueError):
            pass
    return (target,)
