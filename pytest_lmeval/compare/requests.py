"""Compare eval functions' requests in two runs: their options, number and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_lmeval.compare.models import MUCH, by_function, shares_differ
from pytest_lmeval.leaderboard.details import NOT_NAMED, names_of, options_in, requests_in
from pytest_lmeval.numbers import is_number
from pytest_lmeval.records.boardfile import NOT_COMPARED
from pytest_lmeval.stats.intervals import ROUNDING, mean
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_TOKENS = ("prompt_tokens", "completion_tokens")
_THEN = "applications' requests were sent with temperature 0 then (openai:, litellm:), unless they named another one"


def other_requests(old: Sequence[ExampleResult], new: Sequence[ExampleResult]) -> list[str]:
    """Return lines about tasks whose request options changed, or whose requests or tokens changed by more than a tenth.

    The lines cover only examples that have a score and the same number of repeats in both runs.
    """
    lines, unknown = [], []
    before, now = by_function(old), by_function(new)
    for task in sorted(before.keys() & now.keys()):
        pairs = [(before[task][id], each) for id, each in now[task].items() if id in before[task]]
        was, found = ([pair[side] for pair in pairs if _are_comparable(*pair)] for side in (0, 1))
        if options_in(found).requests and not options_in(was).requests and _have_clients(was):
            unknown.append(task)
        else:
            lines += [f"{task}: {line}" for line in _other_options(was, found)]
        lines += [f"{task}: {line}" for line in _other_amounts(was, found)]
    if unknown:
        lines.append(f"{NOT_COMPARED}the options of requests: the baseline's {', '.join(unknown)} has none; {_THEN}")
    return [printable(line, keep="") for line in lines]


def is_other_amount(old: float | None, new: float | None) -> bool:
    """Return True if only one of the amounts is known, or if ``new`` differs from ``old`` by more than a tenth."""
    return old is not new if old is None or new is None else abs(new - old) > MUCH * old + ROUNDING


def _are_comparable(old: ExampleResult, new: ExampleResult) -> bool:
    # An example that ended in an error may have fewer requests.
    repeats = [len(found) if isinstance(found := each.details.get("repeats"), list) else 1 for each in (old, new)]
    return old.score is not None and new.score is not None and repeats[0] == repeats[1]


def _have_clients(results: Iterable[ExampleResult]) -> bool:
    return any(step.get("client") for result in results for step in requests_in(result))


def _other_options(old: Sequence[ExampleResult], new: Sequence[ExampleResult]) -> Iterator[str]:
    """Yield a line with the new and the old values of each request option that was added, dropped or changed."""
    was, now = options_in(old), options_in(new)
    if was.requests and now.requests:
        for name in sorted(was.values.keys() | now.values.keys()):
            before, after = (each.values.get(name, {NOT_NAMED: each.requests}) for each in (was, now))
            if shares_differ(before, after):
                yield f"requests have {name} {names_of(after)} now, in the baseline {names_of(before)}"


def _other_amounts(old: Sequence[ExampleResult], new: Sequence[ExampleResult]) -> Iterator[str]:
    if not old:
        return
    of_requests = [mean([len(requests_in(each)) for each in results]) for results in (old, new)]
    for what, (before, now) in (("requests", of_requests), ("tokens", [*map(_tokens, (old, new))])):
        if before and now and is_other_amount(before, now):
            change = f"{now / before - 1:+.0%}"
            named = what.removesuffix("s") if now == 1 else what
            yield f"{now:,.4g} {named} per example now, in the baseline {before:,.4g} ({change.replace('%', ' %')})"


def _tokens(results: Iterable[ExampleResult]) -> float | None:
    """Return the mean number of tokens per example, or None if an answer's tokens are unknown."""
    total = count = 0.0
    for result in results:
        count += 1
        for step in requests_in(result):
            usage = step.get("usage")
            known = [*filter(is_number, map(usage.get, _TOKENS))] if isinstance(usage, Mapping) else []
            # Only a reply to a forwarded request may lack token counts; the tokens of an answer must be known.
            if not known and "output" in step and step.get("kind") == "request":
                return None
            total += sum(known)
    return total / count
