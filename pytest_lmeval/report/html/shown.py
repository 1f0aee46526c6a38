"""What a model's page was given of its examples, kept for the page that compares the models of a run."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.types import ExampleResult

_MOST = 4_000
_MOST_CHARACTERS = 8_000_000
_WITH_A_BASELINE = ("flip", "before")


class ShownExamples:
    """The fields of the examples of one page, each until it is taken; all others are made anew.

    ``models`` is of how many models the run keeps them: together they hold a bounded number of examples and characters.
    """

    def __init__(self, models: int) -> None:
        self._room = _MOST // models
        self._characters = _MOST_CHARACTERS // models
        self._held: dict[int, tuple[ExampleResult, int, dict[str, Any]]] = {}

    def keep(self, result: ExampleResult, prefix: int, fields: dict[str, Any], size: int) -> None:
        """Keep the fields of a result, made without the first ``prefix`` characters of its prompt, while there is room.

        ``size`` is the length of their JSON text.
        """
        if len(self._held) >= self._room or size > self._characters:
            return
        self._characters -= size
        if not fields.keys().isdisjoint(_WITH_A_BASELINE):
            fields = {name: value for name, value in fields.items() if name not in _WITH_A_BASELINE}
        self._held[id(result)] = result, prefix, fields

    def take(self, result: ExampleResult, prefix: int) -> dict[str, Any] | None:
        """Return what was kept of a result, and let go of it; None if there is nothing, or of another prefix."""
        _, made_without, fields = self._held.pop(id(result), (None, -1, None))
        return fields if made_without == prefix else None
