"""``lm_eval.api.registry``: decorators that leave what they decorate as it is; tasks name it with ``!function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register_filter(name: str) -> Callable[[Any], Any]:
    """Return a decorator that does nothing."""
    return lambda decorated: decorated
