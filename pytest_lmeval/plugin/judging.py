"""The judge of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.judge import Judge, NamedJudges, known_answers

if TYPE_CHECKING:
    from pytest_lmeval.plugin.state import RunState

__all__ = ["Judging", "NoJudge"]

_HOW = "the lm_judge fixture needs --lm-judge SPEC, or an override in a conftest"


class NoJudge:
    """Stands for the judge that nobody named: false, and a usage error as soon as it is asked for anything."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise pytest.UsageError(_HOW)


class Judging:
    """One process's judge, made when the first example is scored."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._judge: NamedJudges | None = None

    def judge(self, adapter: Any, engine: Engine) -> NamedJudges:
        """Return the judge behind ``adapter``, if that is one; ``engine`` is the model's."""
        if self._judge is None:
            self._judge = self._open(adapter, engine)
        return self._judge

    def close(self) -> None:
        """Stop asking."""
        if self._judge is not None:
            self._judge.close()

    def _open(self, adapter: Any, engine: Engine) -> NamedJudges:
        known = known_answers(self._run.held.results.values())

        def open_model(spec: str) -> Judge:
            return Judge(Engine(self._run.make(spec, {}), engine.policy, engine.budget), known)

        if not adapter:
            return NamedJudges(open_model)
        return Judge(Engine(adapter, engine.policy, engine.budget), known, open_model)
