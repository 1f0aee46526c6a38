"""Published tasks of lm-evaluation-harness, against the harness itself, which ``.ci/large --only=lm-eval`` installs.

``LMEVAL_TESTS_LM_EVAL`` is a Python that has it. Rows are those beside the checkout; some tasks are asked with those of
a task of the same columns.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.harness.index import index_of
from pytest_lmeval.formats.harness.resolve import Resolver
from tests.golden.harness.test_harness_records import HERE, WAYS, assert_close, check, check_groups, loaded, recorded
from tests.needs import DATA, needs_file

PYTHON = os.environ.get("LMEVAL_TESTS_LM_EVAL", "")
ROWS = DATA / "lm_eval" / "rows"
ALIKE = {
    "cais_mmlu_abstract_algebra": ["cais/mmlu|anatomy", "cais/mmlu|virology", "cais/mmlu|marketing"],
    "nyu-mll_blimp_adjunct_island": ["nyu-mll/blimp|causative", "nyu-mll/blimp|passive_1"],
    "allenai_ai2_arc_ARC-Easy": ["allenai/ai2_arc|ARC-Challenge"],
    "facebook_xnli_en": ["facebook/xnli|es", "facebook/xnli|fr"],
}
# With the rows that are there: no document is left, a split is missing, or a module of another project.
AT_LEAST = 60
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="LMEVAL_TESTS_LM_EVAL names no Python with lm-eval"),
]


def harness(*arguments: str | Path) -> Any:
    """Return what the harness itself asked and scored."""
    out = Path(arguments[0])
    # A module that functions of a recorded task import, and that the harness is to find.
    stub = out.parent / "a_module_that_nobody_has.py"
    stub.touch()
    variables = {**os.environ, "PYTHONPATH": str(stub.parent), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    subprocess.run([PYTHON, HERE / "record.py", *arguments], check=True, timeout=1500, env=variables)
    return json.loads(out.read_text("utf-8"))


def laid_out(folder: Path) -> set[str]:
    """Link the rows as the key ``data`` wants them; return the data sets, with their configuration."""
    index = json.loads((ROWS / "index.json").read_text("utf-8"))
    index |= {name: rows for rows, names in ALIKE.items() for name in names}
    for data_set, rows in index.items():
        path, _, name = data_set.partition("|")
        base = folder / path.replace("/", "__")
        place = base / name.replace("/", "__") if name not in ("None", "False") else base
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(ROWS / rows)
    return {*index}


def tasks_of(root: Path, data_sets: set[str]) -> Iterator[str]:
    """Yield the published tasks whose rows are there and whose functions and keys are supported."""
    index = index_of(root)
    for name in index.tasks:
        resolver = Resolver(index)
        try:
            resolver.want(name)
        except ValueError:
            continue
        given = resolver.configs[name].given
        if f"{given.get('dataset_path')}|{given.get('dataset_name')}" in data_sets:
            yield name


def test_the_records_are_what_the_harness_says_today(tmp_path: Path) -> None:
    assert_close(recorded(), harness(tmp_path / "records.json"), "records")


@needs_file(ROWS)
def test_published_tasks_ask_and_score_as_the_harness_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data_sets = laid_out(data)
    printed = subprocess.run(
        [PYTHON, "-c", "import lm_eval; print(lm_eval.__path__[0])"], check=True, capture_output=True, text=True
    )
    root = Path(printed.stdout.strip()) / "tasks"
    names = [*tasks_of(root, data_sets)]
    empty = tmp_path / "empty"
    empty.mkdir()
    said = harness(tmp_path / "published.json", empty, data, *names)
    compared: dict[str, set[str]] = {}
    documents, missed = 0, {}
    for way in WAYS:
        for name, record in said[way].items():
            try:
                rows = [check(task, record) for task in loaded(root, data, way, name, tmp_path)]
                check_groups(rows, record)
            except AssertionError as error:
                missed[f"{way} {name}"] = str(error)[:300]
                continue
            compared.setdefault(name, set()).add(way)
            documents += sum(row.total for row in rows)
    whole = sorted(name for name, ways in compared.items() if ways == {*WAYS})
    print(f"compared: {len(whole)} tasks in all ways, {len(compared)} in one, {documents} documents: {' '.join(whole)}")
    assert {} == missed
    assert len(whole) >= AT_LEAST
