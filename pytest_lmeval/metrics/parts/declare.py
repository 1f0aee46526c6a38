"""How a metric says what a registry needs to know of it, where it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

from pytest_lmeval.types import Metric

__all__ = ["declared", "metric"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_ATTRIBUTE = "declared_metric"


def metric(
    name: str = "", *, threshold: float = 1.0, extras: tuple[str, ...] = (), **needs: Any
) -> Callable[[_Function], _Function]:
    """Declare a function as the metric ``name``, by default its own name; see :class:`~pytest_lmeval.types.Metric`.

    ``needs`` are its ``needs_sandbox``, ``needs_targets``, ``takes_calls``, ``package`` and ``install``.
    """

    def declare(function: _Function) -> _Function:
        found = Metric(name or function.__name__, function, threshold, extras=extras, **needs)
        setattr(function, _ATTRIBUTE, found)
        return function

    return declare


def declared(module: ModuleType) -> Iterator[Metric]:
    """Yield the metrics that ``module`` declares, in the order of its lines."""
    for value in vars(module).values():
        # A function that was imported is declared where it is written.
        if getattr(value, "__module__", "") == module.__name__ and hasattr(value, _ATTRIBUTE):
            yield getattr(value, _ATTRIBUTE)
