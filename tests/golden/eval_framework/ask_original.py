"""Print what eval-framework's own modules ask and score over given rows, as JSON.

Usage: ``python -m tests.golden.eval_framework.ask_original CHECKOUT`` in an environment that has what eval-framework
imports; standard input has the rows.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.golden.eval_framework.own_modules import MODULES
from tests.golden.eval_framework.plans import Plan, Row
from tests.golden.eval_framework.produce import chosen, importing, written

_FEW_SHOTS = (0, 2)


class _RowsOfSplit(list[Row]):
    def filter(self, function: Callable[[Row], bool]) -> _RowsOfSplit:
        return _RowsOfSplit(row for row in self if function(row))


class _SplitsOfData(dict[str, _RowsOfSplit]):
    def filter(self, function: Callable[[Row], bool]) -> _SplitsOfData:
        return _SplitsOfData({split: rows.filter(function) for split, rows in self.items()})


def _answers(truth: str) -> list[str]:
    """Return texts that a model could have written."""
    bare = truth.strip()
    return [
        truth,
        f" {bare}",
        f"So it is $\\boxed{{{bare}}}$.",
        f"Therefore, the answer is ({bare}). Question: x",
        f"Final Answer: The final answer is ${bare}$. I hope it is correct.",
        f"Therefore, the final answer is: $\\boxed{{{bare}}}$. I hope it is correct.",
        f"It has to be this one.\n#### {bare}",
        f"red, {bare}",
        "Wir wissen es leider nicht genau.",
        "",
    ]


def _tasks(module: Any) -> list[Any]:
    kinds = [value for value in vars(module).values() if isinstance(value, type)]
    return [kind for kind in kinds if kind.__module__ == module.__name__ and hasattr(kind, "NAME")]


def _record(kind: Any, num_fewshot: int) -> dict[str, Any] | None:
    """Return what a class asks with so many few-shots; None where it does not let itself be made with them."""
    kind.REVISION_LOCKFILE = None  # which revision of the published data: there is none
    try:
        task = kind.with_overwrite(num_fewshot, custom_subjects=None, custom_hf_revision=None)
    except AssertionError:
        return None
    # The order of the data, unless the class itself shuffles.
    task._shuffle_splits = lambda hf_dataset: {
        split: list(rows) for split, rows in hf_dataset.items() if split in (task.SAMPLE_SPLIT, task.FEWSHOT_SPLIT)
    }
    samples = []
    for subject in task.SUBJECTS:
        task._load_dataset(subject)
        for index in range(len(task.dataset[task.SAMPLE_SPLIT])):
            samples.append(_sample(task, subject, index))
    limits = {"stop_sequences": task.stop_sequences, "max_tokens": task.max_tokens}
    return {**limits, "generates": task.get_response_type().value == "completion", "samples": samples}


def _sample(task: Any, subject: Any, index: int) -> dict[str, Any]:
    formatter = import_module("template_formatting.formatter")
    generates = task.get_response_type().value == "completion"
    item = task.dataset[task.SAMPLE_SPLIT][index]
    row = copy.deepcopy(item)
    item["subject"] = subject
    task.rnd = random.Random(1234 + index)
    (sample,) = task._create_samples(item, index, str(subject))
    truth = sample.ground_truth
    metrics = [metric.__name__ for metric in task.get_metrics()]
    # To compare formulas takes seconds: a few samples of a class tell.
    is_scored = not generates or (index < 2 and subject in task.SUBJECTS[:1])
    texts = _answers(truth if isinstance(truth, str) else truth[0]) if is_scored else []
    plan = Plan(task.NAME, "", "", "", metrics, answers=lambda row: texts)
    return {
        "subject": sample.subject,
        "messages": [[message.role.value, message.content] for message in sample.messages],
        "text": formatter.ConcatFormatter().format(sample.messages, output_mode="string"),
        "ground_truth": truth,
        "possible_completions": None if generates else sample.possible_completions,
        "answers": written(plan, task, sample, row) if generates else chosen(plan, sample),
    }


def main() -> None:
    """Print a record for each class of each module and number of few-shots."""
    importing(sys.argv[1])
    data = json.load(sys.stdin)

    def loaded(path: str, name: str | None = None, **options: Any) -> _SplitsOfData:
        splits = copy.deepcopy(data[path][name or ""])
        return _SplitsOfData({split: _RowsOfSplit(rows) for split, rows in splits.items()})

    base = import_module("eval_framework.tasks.base")
    base.BaseTask._load_hf_dataset = lambda self, **options: loaded(**options)
    found = {}
    for name in MODULES:
        module: Any = import_module(f"eval_framework.tasks.benchmarks.{name}")
        if hasattr(module, "load_dataset"):
            module.load_dataset = loaded
        found[name] = {kind.NAME: {number: _record(kind, number) for number in _FEW_SHOTS} for kind in _tasks(module)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
