"""What the metrics declare is what a registry knows of them, and a registry is made without what few runs need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from pytest_lmeval import metrics
from pytest_lmeval.builtin import default_registry
from pytest_lmeval.metrics.parts.declare import declared, metric
from pytest_lmeval.types import Metric

FOLDER = Path(str(metrics.__file__)).parent
LATE = (
    "jsonschema",
    "subprocess",
    "math_verify",
    "sympy",
    "pytest_lmeval.sandbox",
    "pytest_lmeval.metrics.parts.worker",
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
    assert {"entry_point", "io_pairs", "stdouts", "tests", "timeout_s"} == set(code_exec.extras)


def test_a_module_declares_only_what_it_defines() -> None:
    @metric("length", threshold=0.5, extras=("unit",))
    def own(prediction: str, targets: object, extras: object) -> float:
        return 1.0

    module = ModuleType(own.__module__)
    vars(module).update(own=own, imported=metrics.f1)
    assert [Metric("length", own, 0.5, extras=("unit",))] == list(declared(module))


def test_a_registry_is_made_without_what_few_runs_need() -> None:
    program = (
        "import json, sys; from pytest_lmeval.builtin import default_registry; default_registry(entry_points=False);"
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert set() == loaded.intersection(LATE)
    assert [] == [name for name in loaded if name.startswith("pytest_lmeval.metrics.parts.math_")]
