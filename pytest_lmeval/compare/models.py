"""Compare the models that applications requested in two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_lmeval.leaderboard.details import is_function, models_of, names_of
from pytest_lmeval.records.boardfile import NOT_COMPARED
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

MUCH = 0.1
"""Only larger differences in shares, and larger relative changes, are reported."""
_NONE: Mapping[str, int] = {}
_WAYS_OUT = (
    "have each request's own model asked (--lm-adapter=openai:, also anthropic: or litellm:), or update the baseline"
)


def other_models(old: Sequence[ExampleResult], new: Sequence[ExampleResult]) -> tuple[list[str], list[str]]:
    """Return lines about models that the new run did not test, and lines about other differences between the runs.

    The new run did not test a model if only the new run requested it and it did not answer. The other differences are
    changed models, or shares of models, in examples that both runs have, and tasks for which the old run recorded no
    model names.
    """
    untested, others, nameless = [], [], []
    before, now = by_function(old), by_function(new)
    for task in sorted(before.keys() & now.keys()):
        known, models = models_of(before[task].values()), models_of(now[task].values())
        asked = models.get("asked", _NONE)
        if asked and not known:
            nameless.append(task)
        elif missed := asked.keys() - known.get("asked", _NONE).keys() - models.get("answered", _NONE).keys():
            counts = {name: asked[name] for name in missed}
            answered = names_of(models["answered"]) or "none"
            untested.append(
                f"{task}: requests ask for {names_of(counts)} now, in the baseline for {names_of(known['asked'])}; "
                f"{answered} answered, so this change was not tested: {_WAYS_OUT}"
            )
        elif differs := _difference(before[task], now[task]):
            others.append(f"{task}: {differs}")
    if nameless:
        where = f"the baseline's {', '.join(nameless)} has no names of models that requests ask for"
        others.append(f"{NOT_COMPARED}the names of models: {where}")
    return [printable(line, keep="") for line in untested], [printable(line, keep="") for line in others]


def by_function(results: Iterable[ExampleResult]) -> dict[str, dict[str, ExampleResult]]:
    """Return the results of eval functions by task and id."""
    found: dict[str, dict[str, ExampleResult]] = {}
    for result in results:
        if is_function(result):
            found.setdefault(result.task, {})[result.id] = result
    return found


def _difference(old: Mapping[str, ExampleResult], new: Mapping[str, ExampleResult]) -> str:
    """Return text about the requested models if the models differ, or if a share differs by more than a tenth."""
    both = old.keys() & new.keys()
    before, now = (
        models_of(result for id, result in of.items() if id in both).get("asked", _NONE) for of in (old, new)
    )
    if not shares_differ(before, now):
        return ""
    return f"requests ask for {names_of(now) or 'no model'} now, in the baseline for {names_of(before) or 'none'}"


def shares_differ(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """Return True if the names differ, or if the share of any name differs by more than a tenth."""
    shares = [{name: count / sum(counts.values()) for name, count in counts.items()} for counts in (old, new)]
    return old.keys() != new.keys() or any(abs(shares[0][name] - shares[1][name]) > MUCH for name in old)
