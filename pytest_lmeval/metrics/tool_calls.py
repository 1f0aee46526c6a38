"""Compare a model's tool calls with the expected calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.types import Completion, Score

__all__ = ["expected_in", "tool_calls"]


@metric(
    extras=("tools", "calls", "order", "arguments", "text", "tool_choice"),
    needs_targets=False,
    takes_calls=True,
    binary=True,
)
def tool_calls(prediction: str, targets: Sequence[str], extras: Extras) -> Score:
    """Return 1.0 if the model made exactly the calls in ``extras.calls``, else 0.0; any text around them has no effect.

    ``prediction`` is the output in the ledger's format. The order of calls matters only if ``extras.order`` is
    ``exact``; the default is ``any``. If ``extras.arguments`` is ``subset``, a call may have more arguments than
    expected. A call is wrong if its arguments violate its tool's schema in ``extras.tools``. If ``extras.text`` is
    ``bfcl``, the comparison of strings ignores case, spaces and some punctuation. The details contain the ``expected``
    calls, the first ``difference`` of a wrong answer and, as ``not_checked``, the schemas' ignored keywords.

    Raises ScoringError for expected calls that are malformed or violate their schemas.
    """
    from pytest_lmeval.metrics.parts.call import LONGEST, Call
    from pytest_lmeval.metrics.parts.tool_schema import schema_of, unchecked
    from pytest_lmeval.metrics.parts.wanted_call import CallComparison, fault_of, wanted_calls

    tools = [tool.get("function", tool) for tool in extras.get("tools") or ()]
    schemas = {str(tool.get("name")): schema_of(tool) for tool in tools}
    subset = extras.get("arguments") == "subset"
    try:
        expected = wanted_calls(extras.get("calls"), schemas, "extras.calls", subset=subset)
    except RecordRefused as refused:
        raise ScoringError(f"{refused.field}: {refused.detail}") from None
    made = [Call.of(call) for call in Completion.of_output(prediction).tool_calls]
    invalid = [fault_of(call, schemas.get(call.name)) for call in made]
    calls = CallComparison(expected, made, invalid, subset, extras.get("text", "exact"))
    difference = calls.in_order() if extras.get("order") == "exact" else calls.in_any_order()
    details: dict[str, Any] = {"expected": [call.as_python() for call in expected]}
    if difference:
        details["difference"] = difference[: 4 * LONGEST]
    if passed_over := {word for schema in schemas.values() for word in unchecked(schema)}:
        details["not_checked"] = sorted(passed_over)
    return Score(float(not difference), details)


def expected_in(metric: str, details: Mapping[str, Any]) -> Sequence[str]:
    """Return the expected calls in this metric's details, as strings, or () if there are no such details."""
    found = details.get("expected") if metric == tool_calls.__name__ else None
    if not isinstance(found, list) or not all(isinstance(call, str) for call in found):
        return ()
    return found or ("no call",)
