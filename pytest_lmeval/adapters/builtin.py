"""The adapters that come with the package, by name; each is imported only when it is asked for."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.registry import Registry

__all__ = ["register"]


def register(registry: Registry) -> None:
    """Add the built-in adapters to ``registry``."""
    registry.add_adapter("toy", _toy)
    registry.add_adapter("replay", _replay)
    registry.add_adapter("hf", _hf)
    registry.add_adapter("openai", _openai)


def _toy(argument: str, **options: Any) -> Any:
    from pytest_lmeval.adapters.toy import ToyAdapter

    if argument:
        raise UsageError(f"adapter 'toy' takes no argument, got {argument!r}")
    return ToyAdapter(**options)


def _replay(argument: str, **options: Any) -> Any:
    from pytest_lmeval.adapters.replay import ReplayAdapter

    if not argument:
        raise UsageError("adapter 'replay' needs the file to answer from: replay:PATH")
    return ReplayAdapter(argument, **options)


def _hf(argument: str, **options: Any) -> Any:
    from pytest_lmeval.adapters.hf import HfAdapter

    if not argument:
        raise UsageError("adapter 'hf' needs a model folder or name: hf:PATH_OR_NAME")
    return HfAdapter(argument, **options)


def _openai(argument: str, **options: Any) -> Any:
    from pytest_lmeval.adapters.openai import OpenAIAdapter

    if not argument:
        raise UsageError("adapter 'openai' needs the model's name: openai:MODEL")
    return OpenAIAdapter(argument, **options)
