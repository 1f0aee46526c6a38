"""The page on log-likelihoods says what the code does: its bundle loads, its messages are the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_lmeval.formats.core import CoreTask

from .bundle import CHOICES, LANGUAGE, SCHEMAS, load_bundle, write_bundle

PAGE = (Path(__file__).parents[3] / "docs" / "log-likelihood.md").read_text(encoding="utf-8")
YAML, CSV, ADAPTER, MESSAGES = (
    re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[-1] for kind in ("yaml", "csv", "python", "text")
)
COPA = [{"query": f"{number}", "choices": ["a", "b"], "gold": 0} for number in range(100)]
FAULTS = {
    "gold": ("", ""),
    "icl_task_type": ("multiple_choice", "multiple_choise"),
    "label": ("copa,50", "coda,50"),
    "dataset_uri": ("", ""),
    "num_fewshot": ("[0]", "[100]"),
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    write_bundle(tmp_path, [], {"copa": CHOICES, "winograd_wsc": SCHEMAS, "jeopardy": LANGUAGE}, CSV)
    (tmp_path / "core.yaml").write_text(YAML)
    return tmp_path / "core.yaml"


def test_the_bundle_loads(bundle: Path) -> None:
    loaded = load_bundle(bundle)
    assert () == tuple(loaded.errors)
    tasks = [task for task in loaded.tasks if isinstance(task, CoreTask)]
    assert [("copa", 0.5), ("winograd_wsc", 0.5), ("jeopardy", 0.0)] == [
        (task.name, task.random_baseline) for task in tasks
    ]
    assert ["animals", "plays", "animals"] == [example.category for example in tasks[2].examples]


@pytest.mark.parametrize("field", FAULTS)
def test_a_message_is_the_real_one(bundle: Path, field: str) -> None:
    write_bundle(bundle.parent, [], {"copa": COPA}, CSV)
    old, new = FAULTS[field]
    bundle.write_text(YAML.replace(old, new, 1))
    if field == "label":
        (bundle.parent / "eval_meta_data.csv").write_text(CSV.replace(old, new))
    if field == "gold":
        write_bundle(bundle.parent, [], {"copa": [*COPA[:11], COPA[11] | {"gold": 2}, *COPA[12:]]}, CSV)
        bundle.write_text(YAML)
    if field == "dataset_uri":
        (bundle.parent / "copa.jsonl").unlink()
    shown = [error.at("core/core.yaml") for error in load_bundle(bundle).errors]
    (expected,) = (line for line in MESSAGES.splitlines() if f"copa.{field}:" in line)
    assert shown[0].startswith(expected)


def test_the_adapter_answers() -> None:
    names: dict[str, type] = {}
    exec(ADAPTER, names)
    from pytest_lmeval.asking.ask import ask
    from pytest_lmeval.types import LogLikelihood, LogProb

    (answer,) = ask(names["Model"](), [LogLikelihood("a", "b")])
    assert isinstance(answer, LogProb)
    assert len(answer.tokens) == len(answer.ids)
