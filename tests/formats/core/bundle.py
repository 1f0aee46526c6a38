"""A folder with ``core.yaml``, a CSV file of baselines and small data, and what is loaded from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.formats.core import CoreTask
from pytest_lmeval.formats.task import LoadedFile, LoadOptions, TaskSource
from pytest_lmeval.formats.yaml import load
from pytest_lmeval.registry import Registry

__all__ = ["CHOICES", "LANGUAGE", "SCHEMAS", "entry", "load_bundle", "only_task", "write_bundle"]

CHOICES: tuple[dict[str, Any], ...] = (
    {"query": "Bees make", "choices": ["honey", "wool", "glass"], "gold": 0},
    {"query": "Sheep grow", "choices": ["honey", "wool"], "gold": 1},
    {"query": "Windows are of", "choices": ["wool", "glass"], "gold": 1},
    {"query": "Spiders spin", "choices": ["webs", "glass", "webs"], "gold": 0},
)
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"context_options": ["The cup broke because the cup", "The cup broke because the floor"], "gold": 0}
    | {"continuation": "was thin."},
    {"context_options": ["Ann thanked Bea because Ann", "Ann thanked Bea because Bea"], "gold": 1}
    | {"continuation": "had helped."},
)
LANGUAGE: tuple[dict[str, Any], ...] = (
    {"context": "What do bees make? ", "continuation": "honey", "category": "animals"},
    {"context": " Who wrote Hamlet?", "continuation": "William Shakespeare", "category": "plays"},
    {"context": "How many legs has a spider?", "continuation": "eight", "category": "animals"},
)


def entry(label: str, kind: str = "multiple_choice", **fields: Any) -> dict[str, Any]:
    """Return an entry of ``icl_tasks``."""
    return {"label": label, "dataset_uri": f"{label}.jsonl", "num_fewshot": 0, "icl_task_type": kind, **fields}


def write_bundle(
    folder: Path,
    entries: Sequence[Mapping[str, Any]],
    data: Mapping[str, Sequence[Mapping[str, Any]]],
    baselines: str | None = None,
) -> Path:
    """Write the files and return the path of ``core.yaml``: JSON, an entry a line, which is YAML as well."""
    lines = ",\n".join(f"  {json.dumps(one)}" for one in entries)
    (folder / "core.yaml").write_text(f'{{"icl_tasks": [\n{lines}\n]}}\n', encoding="utf-8")
    for label, records in data.items():
        text = "".join(f"{json.dumps(record)}\n" for record in records)
        (folder / f"{label}.jsonl").write_text(text, encoding="utf-8")
    if baselines is None:
        rows = "".join(f"{one.get('label', '')},x,25\n" for one in entries)
        baselines = f"Eval Task,Task Category,Random baseline\n{rows}"
    if baselines:
        (folder / "eval_meta_data.csv").write_text(baselines, encoding="utf-8")
    return folder / "core.yaml"


def load_bundle(path: Path, **options: Any) -> LoadedFile:
    """Return what the loader of YAML files makes of ``path``."""
    source = TaskSource(path, path.read_bytes(), path.stem, LoadOptions(**options))
    return load(source, Registry())


def only_task(loaded: LoadedFile) -> CoreTask:
    """Return the single task of a file without errors."""
    assert [] == list(loaded.errors)
    (task,) = loaded.tasks
    assert isinstance(task, CoreTask)
    return task
