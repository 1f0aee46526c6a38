"""The substitute of ``lm_eval.api.registry``: decorators without effect, since tasks name filters by ``!function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register_filter(name: str) -> Callable[[Any], Any]:
    """Return a decorator that does nothing."""
    return lambda decorated: decorated
