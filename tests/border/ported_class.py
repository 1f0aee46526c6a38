"""The border "a ported class": what a class written for eval-framework overrides is used, or refused by name."""

from __future__ import annotations

import json

from tests.border.table import Border, Row

ROWS = [{"q": f"say: {number}", "a": str(number), "level": number} for number in range(4)]
CLASS = """
from pytest_lmeval.compat.eval_framework import *
from pathlib import Path
import asyncio

class Ported(BaseTask[str]):
    NAME = "{name}"
    DATASET_PATH = "rows"
    METRICS = [AccuracyCompletion]
    def _get_instruction_text(self, item): return item["q"]
    def _get_ground_truth(self, item): return item["a"]
    def loaded(self): return self._load_hf_dataset(path="rows")
{body}
"""
# A file of which nothing is left would stop the run.
GOOD = """
class Good(BaseTask[str]):
    NAME = "{name}-good"
    DATASET_PATH = "rows"
    METRICS = [AccuracyCompletion]
    def _get_instruction_text(self, item): return item["q"]
    def _get_ground_truth(self, item): return item["a"]
"""
DATA = "".join(json.dumps(row) + "\n" for row in ROWS)


def _row(kind: str, name: str, body: str, **fields: object) -> Row:
    """Return the row of a class ``name`` with the members in ``body``."""
    source = (CLASS + GOOD).replace("{name}", name).replace("{body}", f"    {body}")
    return Row(kind=kind, what=body, files={f"tasks/task_{name}.py": source}, **fields)  # type: ignore[arg-type]  # by name


def _used(kind: str, name: str, body: str, example: str = "ex-0") -> Row:
    return _row(kind, name, body, example=f"{name}:{example}", status="passed", score=1.0)


def _refused(kind: str, name: str, body: str, says: str) -> Row:
    return _row(kind, name, body, fate="refused", says=says)


_ALL = "def _load_dataset(self, subject): self.dataset = "
_ONE = "def _create_samples(self, item, index, subject): return "
_SAMPLE = 'Sample(id=index, subject=subject, messages=[Message(Role.USER, "say: {}")], ground_truth="{}")'
BORDER = Border(
    name="a ported class",
    files={"tasks/rows/test.jsonl": DATA},
    arguments=("--lm-adapter=model:Model", "--lm-allow-bad-tasks", "-Wignore::pytest.PytestWarning"),
    rows=(
        _used("absent", "plain", ""),
        _refused("absent", "nothing", "def _load_dataset(self, subject): pass", "expected self.dataset to have at"),
        _refused(
            "absent", "none", "def _get_messages(self, item): return None", "expected a list of messages, got None"
        ),
        _used("empty", "chosen", f'{_ALL}{{"test": [row for row in self.loaded()["test"] if row["level"] > 2]}}'),
        _refused("empty", "emptied", f'{_ALL}{{"test": []}}', "in the split 'test', got the splits test"),
        _refused("empty", "samples", f"{_ONE}[]", "expected a list of at least one Sample, got []"),
        _refused(
            "empty", "silent", "def _get_instruction_text(self, item): return ''", "expected a question, got no text"
        ),
        _refused("wrong type", "rows", f'{_ALL}{{"test": [5]}}', "expected items that are dicts, got 5"),
        _refused("wrong type", "texts", f'{_ONE}["say: 1"]', "expected a list of at least one Sample, got ['say: 1']"),
        _refused(
            "wrong type", "roles", "def _get_messages(self, item): return [Message('bot', 'x')]", "role one of system"
        ),
        _refused(
            "wrong type",
            "styled",
            "def __init__(self): self.num_fewshot, self.TASK_STYLER = 0, MCStyle()",
            "no run calls it, so it would",
        ),
        _refused("wrong type", "lock", "def generate_completions(self, *a, **k): pass", "no run calls it, so it would"),
        _used("too large", "long", f'{_ALL}{{"test": [{{"q": "say: 1", "a": "1"}}] * 1000}}', "ex-999"),
        _used("not finite or negative", "nan", f'{_ALL}{{"test": [{{"q": "say: x", "a": "x", "n": float("nan")}}]}}'),
        _refused(
            "not finite or negative", "few", "def __init__(self): self.num_fewshot = -1", "expected a whole number >= 0"
        ),
        _used("control characters", "bell", f'{_ALL}{{"test": [{{"q": "say: \\x07", "a": "\\x07"}}]}}'),
        _used("twice", "both", f"{_ONE}[{_SAMPLE.format(1, 1)}, {_SAMPLE.format(2, 2)}]", "ex-7"),
        _refused(
            "twice",
            "again",
            f'{_ALL}{{"test": [{{"id": "x", "q": "say: 1", "a": "1"}}] * 2}}',
            "'x' is already the id of item 0",
        ),
        Row(kind="late", never="a class is asked for its samples while tasks are collected, before the run begins"),
        _used("out of order", "backwards", f'{_ALL}{{"test": self.loaded()["test"][::-1]}}', "ex-3"),
        _refused(
            "cancelled", "cancelled", f"{_ALL}asyncio.run(asyncio.sleep('x'))", "python_error Ported._load_dataset"
        ),
        _refused(
            "raising", "raising", f"{_ONE}1 / 0", "python_error Ported._create_samples: item 0, and 3 more like it"
        ),
        _refused("raising", "exits", f"{_ALL}exit(3)", "python_error Ported._load_dataset: SystemExit: 3"),
        Row(
            kind="secret", never="a class is the project's own code; what it asks and scores is redacted as any other's"
        ),
        _used("beside", "drew", f'{_ALL}{{"test": self.loaded()["test"][self.num_fewshot:]}}'),
        _refused(
            "environment",
            "missing",
            "def _get_instruction_text(self, item): import none_such",
            "No module named 'none_such'",
        ),
        Row(
            kind="changed unseen",
            never="a class is compared by what it asks and expects, as rows are: test_data_set.py",
        ),
        Row(kind="earlier run", never="a class is made anew in each run, and reads no file that a run writes"),
        Row(kind="kept client", never="a class is given items and answers, and has no client"),
        _refused("same name", "near", "def _create_sample(self, item): pass", "did you mean '_create_samples' by"),
        _used(
            "same name",
            "helper",
            "def _load_data(self): pass\n    def _get_cue_text(self, i): return self._load_data()",
        ),
    ),
)
