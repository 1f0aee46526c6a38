"""Point clients that read environment variables to the endpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_lmeval.functions.lm import LmBase

# These name the account of a client's requests, which the endpoint does not have.
_REMOVED = ("OPENAI_ORG_ID", "OPENAI_PROJECT")


@contextmanager
def pointed(lm: LmBase) -> Iterator[None]:
    """Point OpenAI's clients to the examples of ``lm`` by environment variables, each repeat to its own address."""
    names = ("OPENAI_BASE_URL", "OPENAI_API_KEY", *_REMOVED)
    before = {name: os.environ.get(name) for name in names}
    lm.on_enter = _point
    if lm.state is not None:
        _point(lm)
    try:
        yield
    finally:
        lm.on_enter = None
        for name, value in before.items():
            _put(name, value)


def _point(lm: LmBase) -> None:
    os.environ.update(OPENAI_BASE_URL=lm.base_url, OPENAI_API_KEY=lm.token)
    for name in _REMOVED:
        _put(name, None)


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
