"""Hashes of prompts: what they cover, and the file that they stand in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.formatting import formatted, formatting_hashes, read_hashes, update_hashes
from pytest_lmeval.formatters import FORMATTERS
from pytest_lmeval.loading import load_tasks

CUED = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask

class Cued(BaseTask[str]):
    NAME = "cued"
    DATASET_PATH = "rows.jsonl"
    METRICS = [AccuracyCompletion]

    def _get_instruction_text(self, item): return item["q"]
    def _get_ground_truth(self, item): return "4"
    def _get_cue_text(self, item): return "So"
"""
RECORD = {"prompt": "2 + 2 =", "targets": ["4"], "metric": "exact_match"}


def test_every_task_has_a_hash_per_formatter(tmp_path: Path) -> None:
    (tmp_path / "sums.jsonl").write_text(json.dumps(RECORD))
    tasks = load_tasks(tmp_path)
    hashes = formatting_hashes(tasks)

    assert {"sums": FORMATTERS.keys()} == {name: by.keys() for name, by in hashes.items()}
    assert hashlib.sha256(b"2 + 2 =").hexdigest() == hashes["sums"]["concatenation"]
    assert "<|im_start|>user\n2 + 2 =<|im_end|>\n<|im_start|>assistant\n" == formatted(tasks[0], "chatml")


def test_the_concatenation_is_the_text_that_a_model_without_roles_reads(tmp_path: Path) -> None:
    (tmp_path / "task_cued.py").write_text(CUED)
    (tmp_path / "rows.jsonl").write_text('{"q": "2 + 2?"}')

    assert "2 + 2?So" == formatted(load_tasks(tmp_path)[0], "concatenation")


def test_what_is_recorded_is_read_again_and_others_keep_theirs(tmp_path: Path) -> None:
    path = tmp_path / "formatting.json"
    assert {} == read_hashes(path)

    update_hashes(path, {"b": {"chatml": "1"}, "a": {"chatml": "2", "b": "3"}})
    update_hashes(path, {"b": {"chatml": "4"}})
    assert {"a": {"b": "3", "chatml": "2"}, "b": {"chatml": "4"}} == read_hashes(path)
    assert ["a", "b"] == list(json.loads(path.read_text())["prompts"])


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": "other", "prompts": {}}',
        '{"schema": "pytest-lmeval/formatting/1"}',
        '{"schema": "pytest-lmeval/formatting/1", "prompts": {"a": "x"}}',
        '{"schema": "pytest-lmeval/formatting/1", "prompts": {"a": {"b": 1}}}',
    ],
)
def test_another_file_of_that_name_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "formatting.json"
    path.write_text(content)

    with pytest.raises(UsageError, match=r"formatting\.json: .*recorded hashes of prompts"):
        update_hashes(path, {})
    assert content == path.read_text()
