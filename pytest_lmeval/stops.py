"""Find the stop texts that end an answer."""

from __future__ import annotations

from collections.abc import Sequence


class AsSent(tuple[str, ...]):
    """The stop texts of an application's client; the server receives all of them, and only the server applies them."""

    __slots__ = ()


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return the index of the first stop text in ``text``, or None; empty stop texts have no effect."""
    return min((place for stop in stops if stop and (place := text.find(stop)) >= 0), default=None)
