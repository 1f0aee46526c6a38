"""Write the golden records of nanochat by running it; see the README above this folder.

Usage: ``python produce.py CHECKOUT OLDER`` in an environment with torch, numpy, pyarrow, jinja2 and PyYAML.
``CHECKOUT`` is the root of a clone of nanochat, ``OLDER`` one of the commit before ``tasks/spellingbee.py`` was
deleted. Nothing of it is copied: what comes out are conversations, prompts and numbers.
"""

from __future__ import annotations

import importlib.machinery
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]

# Imported by modules that are needed, used by none of what runs here.
_STUBBED = ("rustbpe", "tiktoken", "wandb", "kernels", "psutil", "requests")


class _Stub(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Stubs:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in _STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # a duck
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__path__ = []


def rows(*names: str) -> list[Row]:
    """Return the rows of some invented data."""
    text = HERE.joinpath("data", *names).with_suffix(".jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def made(module: str, kind: str, data: list[Row], **arguments: Any) -> Any:
    """Return a task of nanochat over rows of ours, in the order that it gives them."""
    tasks: Any = import_module(f"tasks.{module}")
    table = import_module("pyarrow").Table.from_pylist(data)
    tasks.load_hub_dataset = lambda *names, **options: import_module("tasks.common").HubDataset(table)
    return getattr(tasks, kind)(**arguments)


def recorded(task: Any, answers: Callable[[Row], list[str]]) -> list[dict[str, Any]]:
    """Return every conversation of a task, and what each answer to it is worth."""
    found = []
    for index in range(len(task)):
        talk = task[index]
        texts = list(talk["letters"]) if "letters" in talk else answers(talk)
        scores = [{"text": text, "score": float(task.evaluate(talk, text))} for text in texts]
        found.append({"conversation": talk, "answers": scores})
    return found


def numbers(talk: Row) -> list[str]:
    right = talk["messages"][-1]["content"][-1]["text"].rpartition("#### ")[2]
    plain = right.replace(",", "")
    return [f"It is #### {right}", f"#### {plain}", f"####{plain}", f"#### {plain}.", plain, "#### 7 #### 8", ""]


def programs(talk: Row) -> list[str]:
    whole = talk["messages"][-1]["content"]
    bare = whole.replace("import math\n", "")
    return [
        whole,
        f"Here it is:\n```python\n{whole}\n```\nDone.",
        f"```\n{bare}\n```",
        talk["messages"][0]["content"] + "    return None\n",
        "def (",
        "",
        "```python\nx = 1\n```\n```python\n" + whole + "\n```",
    ]


def conversations() -> dict[str, Any]:
    """Return the records of the tasks of conversations."""
    arc, mmlu = rows("arc", "ARC-Easy", "test"), rows("mmlu", "test")
    gsm8k, humaneval = rows("gsm8k", "test"), rows("humaneval", "test")
    none: Callable[[Row], list[str]] = lambda talk: []  # noqa: E731  # they choose a letter
    tasks = {
        "arc": made("arc", "ARC", arc, subset="ARC-Easy", split="test"),
        "mmlu": made("mmlu", "MMLU", mmlu, subset="all", split="test"),
        "mmlu_view": made("mmlu", "MMLU", mmlu, subset="all", split="test", start=1, stop=8, step=3),
        "gsm8k": made("gsm8k", "GSM8K", gsm8k, subset="main", split="test"),
        "humaneval": made("humaneval", "HumanEval", humaneval),
    }
    answers = {"gsm8k": numbers, "humaneval": programs}
    return {name: recorded(task, answers.get(name, none)) for name, task in tasks.items()}


def mixed() -> dict[str, Any]:
    """Return the order of a mixture and of a sequence, one part of which can only be trained on."""
    common = import_module("tasks.common")
    arc = made("arc", "ARC", rows("arc", "ARC-Easy", "test"), subset="ARC-Easy", split="test")
    talks = made("smoltalk", "SmolTalk", rows("smoltalk", "train"), split="train")
    parts = [arc, talks, arc]
    return {
        kind: [talk["messages"] for talk in map(getattr(common, kind)(parts).__getitem__, range(15))]
        for kind in ("TaskMixture", "TaskSequence")
    }


TEMPLATES = ["How many {letter} are in {word}", "Count the {letter} in {word}", "Wie oft kommt {letter} in {word} vor"]
"""In place of the many that its module has."""


def spelling() -> dict[str, Any]:
    """Return the records of the two tasks about words; to be run with the older checkout."""
    module: Any = import_module("tasks.spellingbee")
    module.USER_MSG_TEMPLATES = TEMPLATES
    module.download_file_with_lock = lambda url, name: str(HERE / "data" / "words.txt")
    bee = module.SpellingBee(size=8, split="test")
    plain = module.SimpleSpelling(size=6, split="test")
    found = recorded(bee, numbers)
    return {
        "spelling_bee": found,
        "simple_spelling": [{"conversation": plain[index], "answers": []} for index in range(len(plain))],
    }


class Bytes:
    """A tokenizer whose tokens are bytes; a text begins with a line feed."""

    def get_bos_token_id(self) -> int:
        return 10

    def __call__(self, texts: list[str], prepend: int) -> list[list[int]]:
        return [[prepend, *text.encode()] for text in texts]


def bigram_model() -> Any:
    """Return a model that looks one byte back, as ``pytest_lmeval.adapters.bigram`` counts."""
    torch = import_module("torch")
    data = b"\n" + (HERE / "bundle" / "model.txt").read_bytes()
    pairs = Counter(pairwise(data))
    table = torch.tensor([[math.log(1 + pairs[first, then]) for then in range(256)] for first in range(256)])
    return lambda ids: table[ids]


def core() -> dict[str, Any]:
    """Return prompts and verdicts of CORE by record, in the order of the file, and the scores of the whole bundle."""
    evaluation, base = import_module("nanochat.core_eval"), import_module("scripts.base_eval")
    yaml, model = import_module("yaml"), bigram_model()
    entries = yaml.safe_load((HERE / "bundle" / "core.yaml").read_text())["icl_tasks"]
    tasks = {}
    for entry in entries:
        text = (HERE / "bundle" / "eval_data" / entry["dataset_uri"]).read_text("utf-8")
        data = [json.loads(line) for line in text.splitlines()]
        meta = {
            "task_type": entry["icl_task_type"],
            "num_fewshot": entry["num_fewshot"][0],
            "continuation_delimiter": entry.get("continuation_delimiter", " "),
        }
        tasks[entry["label"]] = [one_record(evaluation, index, model, data, meta) for index in range(len(data))]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NANOCHAT_BASE_DIR"] = folder
        shutil.copytree(HERE / "bundle", Path(folder) / "eval_bundle")
        whole = base.evaluate_core(model, Bytes(), "cpu")
    return {"tasks": tasks, "bundle": whole}


def one_record(evaluation: Any, index: int, model: Any, data: list[Row], meta: Row) -> dict[str, Any]:
    """Return the prompts that are made of one record, which few-shots are in them, and whether the model is right."""
    seen: dict[str, Any] = {}
    kinds = {"multiple_choice": "mc", "schema": "schema", "language_modeling": "lm"}
    name = f"render_prompts_{kinds[meta['task_type']]}"
    original = getattr(evaluation, name)

    def rendering(item: Row, delimiter: str, shots: list[Row]) -> Any:
        seen["few_shots"] = [data.index(shot) for shot in shots]
        seen["prompts"] = original(item, delimiter, shots)
        return seen["prompts"]

    setattr(evaluation, name, rendering)
    try:
        right = evaluation.evaluate_example(index, model, Bytes(), data, "cpu", meta)
    finally:
        setattr(evaluation, name, original)
    return {**seen, "right": bool(right)}


def write(name: str, record: Any) -> None:
    """Write ``records/NAME.json``."""
    folder = HERE / "records"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write all records; those of the older checkout in a process of its own."""
    checkout, *older = sys.argv[1:]
    random.seed(0)
    sys.meta_path.insert(0, _Stubs())
    sys.path.insert(0, checkout)
    if not older:
        for name, record in spelling().items():
            write(name, record)
        return
    for name, record in {**conversations(), "mixture": mixed(), "core": core()}.items():
        write(name, record)
    subprocess.run([sys.executable, __file__, *older], check=True)


if __name__ == "__main__":
    main()
