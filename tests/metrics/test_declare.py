"""What the metrics declare is what a registry knows of them, and a registry is made without what few runs need."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from pytest_lmeval import metrics
from pytest_lmeval.loading import default_registry
from pytest_lmeval.metrics.parts.declare import DECLARED, metric
from pytest_lmeval.types import Metric

FOLDER = Path(str(metrics.__file__)).parent
LATE = (
    *("jsonschema", "subprocess", "math_verify", "sympy"),
    *("pytest_lmeval.sandbox", "pytest_lmeval.metrics.parts.worker"),
)


def test_every_module_beside_the_parts_declares_a_metric() -> None:
    registered = default_registry(entry_points=False).metrics.values()
    homes = {each.function.__module__.rpartition(".")[2] for each in registered}
    assert {file.stem for file in FOLDER.glob("[!_]*.py")} == homes


def test_a_declaration_reaches_the_registry_whole() -> None:
    registry = default_registry(entry_points=False)
    bleu_4, code_exec = registry.metric("bleu_4"), registry.metric("code_exec")
    assert (0.9, False, ()) == (bleu_4.threshold, bleu_4.needs_sandbox, bleu_4.extras)
    assert (1.0, True) == (code_exec.threshold, code_exec.needs_sandbox)
    assert {"entry_point", "io_pairs", "stdin", "stdouts", "tests", "timeout_s", "tolerance"} == set(code_exec.extras)


def test_a_declaration_says_what_its_decorator_was_given() -> None:
    @metric("length", threshold=0.5, extras=("unit",))
    def own(prediction: str, targets: object, extras: object) -> float:
        return 1.0

    assert Metric("length", own, 0.5, extras=("unit",)) == getattr(own, DECLARED)


def test_no_two_metrics_have_one_name() -> None:
    modules = [import_module(f"{metrics.__name__}.{file.stem}") for file in FOLDER.glob("[!_]*.py")]
    functions = {id(value): value for module in modules for value in vars(module).values() if hasattr(value, DECLARED)}
    names = [getattr(each, DECLARED).name for each in functions.values()]
    assert sorted(default_registry(entry_points=False).metrics) == sorted(names)


def test_a_registry_is_made_without_what_few_runs_need() -> None:
    program = (
        "import json, sys; from pytest_lmeval.loading import default_registry; default_registry(entry_points=False);"
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert set() == loaded.intersection(LATE)
    assert [] == [name for name in loaded if name.startswith("pytest_lmeval.metrics.parts.math_")]
