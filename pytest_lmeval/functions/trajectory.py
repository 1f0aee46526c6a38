"""Provide the ``lm`` methods that check a running example's tool calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.functions.steps import Step

if TYPE_CHECKING:
    from pytest_lmeval.functions.calls import Finding, Mode
    from pytest_lmeval.metrics.parts.call import Call


class Trajectory(ABC):
    """Checks on an example's calls so far; :mod:`pytest_lmeval.trajectory` has the same checks for other traces."""

    @property
    @abstractmethod
    def trace(self) -> tuple[Step, ...]:
        """The example's steps so far, ordered by start time."""

    @property
    def calls(self) -> list[Call]:
        """The tool calls that the model has requested so far, in order, as pairs of a name and arguments."""
        from pytest_lmeval.functions.calls import asked_in

        return [call for step in self.trace for call in asked_in(step)]

    def called(self, name: str, *, times: int | None = None, arguments: Mapping[str, Any] | None = None) -> Finding:
        """Check whether a tool was called; see :func:`~pytest_lmeval.trajectory.called`."""
        from pytest_lmeval.functions.calls import called

        return called(self.trace, name, times=times, arguments=arguments)

    def never_called(self, *names: str) -> Finding:
        """Check that no tool with these names was called; see :func:`~pytest_lmeval.trajectory.never_called`."""
        from pytest_lmeval.functions.calls import never_called

        return never_called(self.trace, *names)

    def in_order(self, *names: str) -> Finding:
        """Check that tools were called in this order; see :func:`~pytest_lmeval.trajectory.in_order`."""
        from pytest_lmeval.functions.calls import in_order

        return in_order(self.trace, *names)

    def match(self, expected: Sequence[Any], mode: Mode = "strict") -> Finding:
        """Check ``lm.calls`` against the expected calls; see :func:`~pytest_lmeval.trajectory.match`."""
        from pytest_lmeval.functions.calls import match

        return match(self.calls, expected, mode)

    def max_steps(self, limit: int, *, kind: str | None = None) -> Finding:
        """Check that there are at most ``limit`` steps; see :func:`~pytest_lmeval.trajectory.max_steps`."""
        from pytest_lmeval.functions.calls import max_steps

        return max_steps(self.trace, limit, kind=kind)
