"""What other tools keep in files of their own, to files of this package: ``lmeval import KIND``.

A new kind is a module with a function ``(source, destination) -> Imported``, and its entry in ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pytest_lmeval.interop.importers.imported import Imported, Remark

__all__ = ["KINDS", "Imported", "Importer", "Kind", "Remark", "importer"]

Importer = Callable[[Path, Path], Imported]


class Kind(NamedTuple):
    """What a kind reads and writes, for the help of the command, and the module that has ``bring_in``."""

    source: str
    destination: str
    module: str


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "promptfoo": Kind(
            "a promptfoo config, YAML or JSON", "the folder of the data files and profiles", "promptfoo.bring_in"
        ),
        "openai-evals": Kind(
            "an eval of OpenAI Evals (registry/evals/NAME.yaml), or its samples (.jsonl)",
            "the folder of the data files",
            "openai_evals",
        ),
        "lm-eval": Kind(
            "a folder that lm_eval wrote with --log_samples, or one results_*.json in it",
            "the ledger of the run, such as reports/ledger.jsonl",
            "lm_eval.bring_in",
        ),
    }
)


def importer(name: str) -> Importer:
    """Return the function of a kind, which is imported when it is asked for."""
    function: Importer = import_module(f"pytest_lmeval.interop.importers.{KINDS[name].module}").bring_in
    return function
