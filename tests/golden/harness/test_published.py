"""Published tasks of lm-evaluation-harness, against the harness itself, which ``.ci/large --only=lm-eval`` installs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.harness.names import Resolver, index_of
from tests.golden.harness.installed import EARLIER, NEEDS_HARNESS, PYTHON, ROWS, laid_out, published_root
from tests.golden.harness.test_harness_records import HERE, WAYS, assert_close, check, check_groups, loaded, recorded
from tests.needs import needs_file

# With the rows that are there: no document is left, a split is missing, or a module of another project.
AT_LEAST = 60
# Most data sets of version 0.4.3 have other names.
AT_LEAST_EARLIER = 9
pytestmark = NEEDS_HARNESS


def harness(*arguments: str | Path, work: Path | None = None) -> Any:
    """Return what the harness itself asked and scored in the folder ``work``."""
    out = Path(arguments[0])
    # A module that functions of a recorded task import, and that the harness is to find.
    stub = out.parent / "a_module_that_nobody_has.py"
    stub.touch()
    variables = {**os.environ, "PYTHONPATH": str(stub.parent), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    variables["HF_DATASETS_CACHE"] = str(out.parent / "cache")
    subprocess.run([PYTHON, HERE / "record.py", *arguments], check=True, timeout=1500, env=variables, cwd=work)
    return json.loads(out.read_text("utf-8"))


def tasks_of(root: Path, data_sets: set[str]) -> Iterator[str]:
    """Yield the published tasks whose rows are there and whose functions and keys are supported."""
    resolver = Resolver([root])
    for name in index_of(root).tasks:
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
    root = published_root()
    names = [*tasks_of(root, data_sets)]
    empty = tmp_path / "empty"
    empty.mkdir()
    whole = compared(harness(tmp_path / "published.json", empty, data, *names), root, data, tmp_path)
    assert len(whole) >= AT_LEAST


@needs_file(ROWS)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.skipif(not EARLIER, reason="LMEVAL_TESTS_LM_EVAL_EARLIER names no folder of tasks")
def test_a_folder_of_an_earlier_version_asks_and_scores_as_the_harness_does(tmp_path: Path) -> None:
    data, root = tmp_path / "data", Path(EARLIER)
    names = [*tasks_of(root, laid_out(data))]
    compared(harness(tmp_path / "earlier.json", root, data, *names), root, data, tmp_path)
    assert len(names) >= AT_LEAST_EARLIER


def compared(said: Any, root: Path, data: Path, tmp_path: Path) -> list[str]:
    """Compare the tasks in every way; return the names of those that the harness ran in all ways."""
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
    return whole


STRANGERS = ("an_array", "packed", "a_folder", "columns", "frames", "shouted", "imported", "of_strangers")


@pytest.mark.parametrize("way", WAYS)
def test_task_folders_beside_the_installed_harness_ask_and_score_as_in_it(
    way: str, of_strangers: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, said = of_strangers
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(project / "site")
    for name in STRANGERS:
        rows = [check(task, said[way][name]) for task in loaded(project / "theirs", project, way, name, tmp_path)]
        check_groups(rows, said[way][name])
        assert {row.task for row in rows} == said[way][name]["samples"].keys()
    assert "lm_eval" not in sys.modules


@pytest.fixture(scope="module")
def of_strangers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a project with a task folder as people share them, and what the harness asked and scored in it."""
    project = tmp_path_factory.mktemp("strangers") / "project"
    shutil.copytree(HERE / "strangers", project)
    (project / "packed").mkdir()
    for name, source in (("one", "rows.json"), ("two", "more.jsonl")):
        packed = gzip.compress((project / "work" / source).read_bytes())
        (project / "packed" / f"{name}.json.gz").write_bytes(packed)
    (project / "site").mkdir()
    (project / "site" / "lm_eval").symlink_to(published_root().parent)
    out = project.parent / "said.json"
    return project, harness(out, project / "theirs", project, *STRANGERS, work=project)
