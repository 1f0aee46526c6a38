"""What ``lm`` knows of the steps of its example, and how an application adds some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_lmeval.functions.example import ExampleState, as_json, cut
from pytest_lmeval.functions.steps import Step

if TYPE_CHECKING:
    from pytest_lmeval.functions.calls import Finding
    from pytest_lmeval.metrics.parts.call import Call


class Traced:
    """The steps of an example that runs."""

    if TYPE_CHECKING:

        @property
        def _running(self) -> ExampleState: ...

    def step(self, kind: str, name: str, input: Any = None, output: Any = None) -> Step:
        """Add a step to the example's trace, such as the call of a tool: ``step("tool", "search", {"q": q}, hits)``."""
        return self._running.step(kind, name, input, output)

    @contextmanager
    def span(self, name: str, kind: str = "span") -> Iterator[Step]:
        """Add a step that lasts as long as the ``with`` block; its ``output`` may be set within."""
        state = self._running
        step = state.step(kind, name, None, None)
        try:
            yield step
        except BaseException as error:
            step.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            step.ms = state.now_ms - step.start_ms
            step.output = cut(as_json(step.output)[0])

    @property
    def trace(self) -> tuple[Step, ...]:
        """The steps of the example so far, in the order in which they began."""
        return tuple(self._running.steps)

    @property
    def calls(self) -> list[Call]:
        """The calls of tools that the model asked for so far, in order, each a pair of name and arguments."""
        from pytest_lmeval.functions.calls import asked_in

        return [call for step in self.trace for call in asked_in(step)]

    def called(self, name: str, *, times: int | None = None, arguments: Mapping[str, Any] | None = None) -> Finding:
        """Find whether a tool was called; see :func:`~pytest_lmeval.trajectory.called`."""
        from pytest_lmeval.functions.trajectory import called

        return called(self.trace, name, times=times, arguments=arguments)
