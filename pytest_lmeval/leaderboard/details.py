"""Read the details of results: facts about responses, and the steps of eval functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pytest_lmeval.numbers import is_number
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

METRIC = "function"
"""The metric of examples that an eval function scores."""
CHECKS = "checks"
"""The metric of examples that several checks score."""
BY_NAME = frozenset((METRIC, CHECKS))
"""The metrics of examples whose named scores become sub-rows of the task."""
DURATION = "duration_ms"
"""The detail with an eval function's duration in milliseconds, or with a list of durations for several repeats."""
WHY = "why"
"""The detail with the reasons for scores, by name."""
RUBRIC = "rubric"
"""The metric of examples that a judge grades."""
GRADED = frozenset((RUBRIC, CHECKS))
"""The metrics that may query the run's judge."""
NO_ROW = "{}"
"""The row of an eval function without data, as JSON."""
FUNCTION = "function"
"""The detail with the function's name and a hash of its code."""
OUTPUT = "output"
"""The detail with the application's answer, in JSON values."""
DECIDED_BY = "decided_by"
"""The detail with the name of the decisive score; "" if only assertions decided."""
FAILED_ATTEMPTS = "failed_attempts"
"""The detail with the failed earlier attempts at an example that a plugin reran, in order."""
NOT_NAMED = "none"
"""Represents the value of an option that a request does not name."""
VARIOUS = "various"
"""Represents values of an option that differ from request to request, such as random seeds."""
CALLED = ("tool", "mcp")
"""The kinds of recorded steps that query no model: tool calls, and requests for a server's list of tools."""
_ASKING = ("request", "http")
_JUDGING = ("judge", "user")
_MOST_NAMES = 10
_LONGEST_NAME = 100


def is_function(result: ExampleResult) -> bool:
    """Return True for an eval function's result."""
    return result.metric == METRIC and FUNCTION in result.details


def steps_of(details: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield each repeat's recorded steps."""
    for each in _each(details):
        steps = each.get("steps", ())
        yield [step for step in steps if isinstance(step, dict)] if isinstance(steps, (list, tuple)) else ()


def mixed_decisions(results: Iterable[ExampleResult]) -> str:
    """Return a message if a task's examples are decided by different scores, else ""."""
    found = Counter(name for result in results for name in _decisions(result))
    if len(found) < 2:
        return ""
    names = ", ".join(f"{name or 'asserts alone'} ({count})" for name, count in found.most_common())
    return f"its examples are decided by different scores: {names}; set score=NAME in eval_task"


def answered_requests(details: Mapping[str, Any], kind: str = "request", asked: str = "") -> list[dict[str, Any]]:
    """Return the answers that steps recorded, in the format of :func:`~pytest_lmeval.records.answers.recorded_answer`.

    ``kind`` is ``request`` for answers from the model or its server, or ``judge`` for answers from judges and simulated
    users. ``asked`` is the name of the model that answered, or "" for any model.
    """
    kinds = _ASKING if kind == "request" else _JUDGING
    return [
        {
            "request": step.get("key"),
            "repeat": repeat,
            "output": step["output"],
            **({"latency_ms": step["ms"]} if "ms" in step else {}),
            **{name: step[name] for name in ("thoughts", "served_by", "adapter_key", "extra") if name in step},
            **(step["usage"] if isinstance(step.get("usage"), Mapping) else {}),
            "model": str(step.get("name", "")),
        }
        for repeat, steps in enumerate(steps_of(details))
        for step in steps
        if step.get("kind") in kinds and step.get("key") and "output" in step and "error" not in step
        if asked in ("", step.get("name"))
    ]


Trace = tuple[ExampleResult, Sequence[Mapping[str, Any]]]
"""The result of an eval function, and the steps of all its repeats."""


def asked_model(result: ExampleResult) -> bool:
    """Return True if an example queried a model; for an eval function, look for requests in its recorded steps."""
    return not is_function(result) or any(step.get("kind") in _ASKING for step in chain(*steps_of(result.details)))


def traces(results: Iterable[ExampleResult]) -> list[Trace]:
    """Return each result of an eval function, with the steps of all its repeats."""
    return [(result, list(chain(*steps_of(result.details)))) for result in results if is_function(result)]


def models_of(results: Iterable[ExampleResult]) -> dict[str, dict[str, int]]:
    """Return how often clients requested each model and how often it answered; {} if no request named a model."""
    steps = [step for _, steps in traces(results) for step in steps if step.get("kind") == "request"]
    asked = _models(step["client"] for step in steps if isinstance(step.get("client"), Mapping))
    answering = [step for step in steps if not (step.get("error") or step.get("cancelled"))]
    answered = Counter(str(step.get("name", ""))[:_LONGEST_NAME] for step in answering)
    return {"asked": dict(sorted(asked.items())), "answered": dict(sorted(answered.items()))} if asked else {}


class NamedOptions(NamedTuple):
    """The number of requests from applications' clients, and how often the requests set each option to each value.

    NOT_NAMED counts the requests that do not set an option. VARIOUS replaces an option's values if there are too many.
    """

    requests: int
    values: Mapping[str, Mapping[str, int]]


def options_in(results: Iterable[ExampleResult]) -> NamedOptions:
    """Return the options that eval functions' requests set; results from earlier versions have no options."""
    steps = [step for _, steps in traces(results) for step in steps if step.get("kind") == "request"]
    clients = [step["client"] for step in steps if isinstance(step.get("client"), Mapping)]
    named = [options for client in clients if isinstance(options := client.get("options"), Mapping)]
    names = sorted({str(name) for options in named for name in options})
    return NamedOptions(len(named), {name: _values([options.get(name) for options in named]) for name in names})


def _values(given: Sequence[object]) -> dict[str, int]:
    found = Counter(str(value) for value in given if value is not None)
    if len(found) > _MOST_NAMES or 1 < len(found) > found.total() / 2:
        found = Counter({VARIOUS: found.total()})
    found[NOT_NAMED] = len(given) - found.total()
    return {name: count for name, count in sorted(found.items()) if count}


def requests_in(result: ExampleResult) -> list[Mapping[str, Any]]:
    """Return an eval function's steps that are requests to the model or its server."""
    return [step for step in chain(*steps_of(result.details)) if step.get("kind") in _ASKING and step.get("key")]


def _decisions(result: ExampleResult) -> Sequence[str]:
    details = result.outcome.details
    if "repeats" not in details:
        return (details[DECIDED_BY],) if DECIDED_BY in details else ()
    return [each[DECIDED_BY] for each in _each(details) if DECIDED_BY in each]


def notes_of(of_functions: Sequence[Trace], adapter: str) -> list[str]:
    """Return a board's notes on its eval functions, and on the clients that they used."""
    return [*_client_notes(of_functions, adapter), *_function_notes(of_functions, adapter)]


def _function_notes(of_functions: Iterable[Trace], adapter: str) -> list[str]:
    """Return lines counting, by task, passes by assertions alone, examples without requests, and cancelled requests."""
    counts: dict[str, Counter[str]] = {}
    for result, steps in of_functions:
        found = counts.setdefault(result.task, Counter())
        found["cancelled"] += sum(bool(step.get("cancelled")) and step.get("kind") not in CALLED for step in steps)
        if result.score is not None:
            found["scored"] += 1
            found["silent"] += not any(step.get("kind") in _ASKING for step in steps)
            found["asserted"] += result.status == "passed" and set(_decisions(result)) == {""}
    return [line for task, found in sorted(counts.items()) for line in _notes(task, found, adapter)]


def _notes(task: str, counts: Counter[str], adapter: str) -> Iterator[str]:
    if asserted := counts["asserted"]:
        yield f"{task}: {asserted} example{'s' if asserted > 1 else ''} passed by asserts alone"
    silent, scored = counts["silent"], counts["scored"]
    if silent and adapter != "none":
        asked = f"{scored - silent} of its {scored} scored examples asked"
        asked = f"none of its {scored} examples asked" if silent == scored else asked
        yield f"{task}: {asked if scored > 1 else 'its example did not ask'} {adapter}"
    if cancelled := counts["cancelled"]:
        yield f"{task}: the application cancelled {cancelled} request{'s' if cancelled > 1 else ''}"


def _client_notes(of_functions: Iterable[Trace], adapter: str) -> list[str]:
    """Return lines about clients kept from other examples, and about models, fields and media in clients' requests."""
    found = [step for _, steps in of_functions for step in steps if isinstance(step.get("client"), Mapping)]
    if not found:
        return []
    asked = [step for step in found if step.get("kind") != "http"]
    kept = Counter(str(step["client"]["kept"]) for step in found if step["client"].get("kept"))
    lines = [f"requests counted for the current example: {_listed(kept)}"] if kept else []
    others = [step for step in asked if step["client"].get("model") != step.get("name")]
    named = _models(step["client"] for step in asked if step["client"].get("model") == step.get("name"))
    lines += [f"models asked by name: {_listed(named)}"] if named.keys() - {adapter} else []
    if models := _models(step["client"] for step in others):
        is_answered = not any(step.get("error") or step.get("cancelled") for step in others)
        instead = f"all were answered by {adapter}" if is_answered else f"{adapter} was asked instead"
        lines.append(f"clients asked for {_listed(models)}; {instead}")
    if forwarded := _models(step["client"] for step in found if step.get("kind") == "http"):
        lines.append(f"clients asked the server of {adapter} for other models: {_listed(forwarded)}")
    lists = [names for step in asked if isinstance(names := step["client"].get("dropped"), list)]
    if dropped := Counter(str(name) for names in lists for name in names):
        lines.append(f"dropped between clients and {adapter}: {_listed(dropped)}")
    if count := sum(map(_has_address, asked)):
        whose = f"{count} request{'s' if count > 1 else ''} of clients had addresses of media"
        lines.append(f"{whose}, which {adapter} read: no hash covers their content")
    return lines


def _has_address(step: Mapping[str, object]) -> bool:
    """Return True if a request contains media of which the ledger records only the address."""
    given = step.get("input")
    contents = [each.get("content") for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, Mapping) and "sha256" not in part for part in parts)


def _models(clients: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(str(client["model"])[:_LONGEST_NAME] for client in clients if client.get("model"))


def names_of(counts: Mapping[str, int], most: int = 5) -> str:
    """Return up to ``most`` of the most frequent names with their counts, and the number of omitted names."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    more = [f"and {len(ordered) - most} more"] if len(ordered) > most else []
    return ", ".join([*(f"{name} ({count})" for name, count in ordered[:most]), *more])


def _listed(counts: Counter[str]) -> str:
    return names_of(counts, _MOST_NAMES)


def shown_name(step: Mapping[str, Any]) -> str:
    """Return a step's name and, if the step used a client kept from another example, that example."""
    client = step.get("client")
    kept = client.get("kept") if isinstance(client, Mapping) else ""
    return f"{step.get('name') or ''} ({kept})" if kept else str(step.get("name") or "")


def details_of(result: ExampleResult) -> Sequence[Mapping[str, Any]]:
    """Return the details of each response to an example, in order."""
    return _each(result.details)


def _each(details: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    repeats = details.get("repeats") if details else None
    if not repeats or not isinstance(repeats, list | tuple):
        return (details,)
    return [each if isinstance(each, Mapping) else {} for each in repeats]


def first_details(result: ExampleResult) -> Mapping[str, Any]:
    """Return the first response's details."""
    return details_of(result)[0]


def first_score(result: ExampleResult) -> float | None:
    """Return the first response's score, or None if the example has no score."""
    scores = result.details.get("scores") if len(result.predictions) > 1 else None
    return float(scores[0]) if scores else result.score


def shown_response(result: ExampleResult) -> int:
    """Return the index of the response to show: the first or, for a failed example, the first with the lowest score.

    A correct response would not explain why an example with repeats failed.
    """
    scores = _scores(result)
    if len(scores) < 2 or result.score is None or is_at_least(result.score, result.threshold):
        return 0
    return scores.index(min(scores))


def responses_under(result: ExampleResult) -> str:
    """Return how many responses are below the threshold, such as ``1 of 3``, or "" for a single response."""
    scores = _scores(result)
    under = sum(not is_at_least(score, result.threshold) for score in scores)
    return f"{under} of {len(scores)}" if len(scores) > 1 else ""


def _scores(result: ExampleResult) -> Sequence[float]:
    found = result.details.get("scores")
    is_whole = isinstance(found, Sequence) and len(found) == len(result.outputs) == len(result.predictions)
    return found if is_whole and found is not None else ()


def confidence_of(details: Mapping[str, Any]) -> float | None:
    """Return the confidence that ``details`` contains, in [0, 1], or None if it is missing or invalid."""
    value = details.get("confidence")
    return float(value) if is_number(value) and 0 <= value <= 1 else None


def confidences(result: ExampleResult) -> list[float | None]:
    """Return the model's confidence in each output of the result, or None for each unknown confidence."""
    found = [confidence_of(details) for details in details_of(result)]
    return found if len(found) == len(result.outputs) else [None] * len(result.outputs)
