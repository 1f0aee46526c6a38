"""Score whole programs by what they report, which a deceptive program could forge."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.code_exec import all_or_nothing
from pytest_lmeval.metrics.parts.code_plan import LONGEST_TIMEOUT_S
from pytest_lmeval.metrics.parts.declare import Extras
from pytest_lmeval.numbers import is_number
from pytest_lmeval.sandbox import Limits
from pytest_lmeval.types import Score

_RUNNER = """
import sys as _sys, unittest as _unittest
_found = _unittest.defaultTestLoader.loadTestsFromModule(_sys.modules["__main__"])
_result = _unittest.TextTestRunner(_sys.stderr).run(_found)
if not (_result.testsRun and _result.wasSuccessful()):
    raise AssertionError(f"{len(_result.failures) + len(_result.errors)} of {_result.testsRun} tests failed")
"""


def prints_true(program: str, sandbox: Any) -> Score:
    """Return 1.0 if the program runs to its end and the last word that it prints is ``True``, otherwise 0.0."""
    run = sandbox.script(program, Limits(cpu_s=LONGEST_TIMEOUT_S))
    return all_or_nothing(run, run.status == "pass" and run.stdout.split()[-1:] == ["True"], forgeable=True)


def check_unittests(context: Extras) -> None:
    """Raise RecordRefused unless ``test_code`` is source code and ``benchmark_timeout`` a number of seconds above 0."""
    code, limit = context["test_code"], context.get("benchmark_timeout", LONGEST_TIMEOUT_S)
    if not isinstance(code, str) or not code.strip():
        raise RecordRefused("bad_type", "test_code", f"expected unittest source, got {code!r:.80}")
    if not is_number(limit) or limit <= 0:
        raise RecordRefused("bad_value", "benchmark_timeout", f"expected seconds above 0, got {limit!r:.80}")


def passes_unittests(program: str, context: Extras, sandbox: Any) -> Score:
    """Return 1.0 if the unittest source ``test_code`` passes in the program's process, otherwise 0.0."""
    cpu_s = min(LONGEST_TIMEOUT_S, float(context.get("benchmark_timeout", LONGEST_TIMEOUT_S)))
    run = sandbox.script(f"{program}\n\n{context['test_code']}\n{_RUNNER}", Limits(cpu_s=cpu_s))
    return all_or_nothing(run, run.status == "pass", forgeable=True)
