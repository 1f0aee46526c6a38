"""Texts that end an answer."""

from __future__ import annotations

from collections.abc import Sequence


class AsSent(tuple[str, ...]):
    """Stop texts of an application's client: all of them go to the server, and the server alone cuts at them."""

    __slots__ = ()


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return the place of the first of the stop texts in ``text``, or None; an empty stop text has no effect."""
    return min((place for stop in stops if stop and (place := text.find(stop)) >= 0), default=None)
