"""Declare a function as a metric for the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pytest_lmeval.types import Metric

__all__ = ["DECLARED", "Extras", "metric"]

Extras = Mapping[str, Any]
"""The extras of a record: JSON values by name; a metric reads only the names that it declares."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
DECLARED = "declared_metric"
"""The name of a function's attribute that contains its declaration."""


def metric(
    name: str = "", *, threshold: float = 1.0, extras: tuple[str, ...] = (), **needs: Any
) -> Callable[[_Function], _Function]:
    """Declare a function as a metric, by default under the function's name; see :class:`~pytest_lmeval.types.Metric`.

    Further fields of ``Metric`` (``check``, ``needs_sandbox``, ``needs_targets``, ``takes_calls``, ``asks_judge``,
    ``package`` and ``install``) come from ``needs``.
    """

    def declare(function: _Function) -> _Function:
        found = Metric(name or function.__name__, function, threshold, extras=extras, **needs)
        setattr(function, DECLARED, found)
        return function

    return declare
