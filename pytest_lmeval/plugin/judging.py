"""What stands for the judge of a run that named none."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["NoJudge"]

_HOW = "the lm_judge fixture needs --lm-judge SPEC, or an override in a conftest"


class NoJudge:
    """Stands for the judge that nobody named: false, and a usage error as soon as it is asked for anything."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise pytest.UsageError(_HOW)
