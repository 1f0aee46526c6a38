"""The substitute of ``lm_eval``: the parts that functions of tasks import."""

from __future__ import annotations

from pytest_lmeval.formats.harness.substitutes.lm_eval import utils

__all__ = ["utils"]
