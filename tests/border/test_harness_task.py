"""The border to task files of lm-evaluation-harness: their YAML, includes, functions, filters, rows, and answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.border.table import Border, Row, check, since_baseline
from tests.conftest import BOTH, MODEL, RunModule

LIKELY = """
    def loglikelihood(self, requests):
        from pytest_lmeval import LogProb
        return [LogProb(-float(len(each.continuation)), greedy=True) for each in requests]
"""
RED = '{"said": "red", "right": "red"}\n'
BOTH_ROWS = RED + '{"said": "blue", "right": "green"}\n'
METRIC = "metric_list: [{metric: exact_match}]\n"
OPTIONS = "output_type: multiple_choice\ndoc_to_choice: [red, grey]\nmetric_list: [{metric: acc}]\n"
OWN = "process_results: !function f.g\n"
PIPE = "filter_list: [{name: x, filter: [{function: custom, filter_fn: !function f.g}]}]\n"


def task(
    name: str, keys: str = "", rows: str = RED, code: str = "", more: str = METRIC, **wanted: Any
) -> dict[str, str | bytes]:
    """Return the files of a task in a folder of its own, and of what asks for it."""
    usual = f"task: {name}\ndataset_path: made/{name}\ntest_split: test\n"
    texts = "doc_to_text: 'say: {{said}}'\ndoc_to_target: '{{right}}'\n"
    asked = {"harness": {"from": f"../theirs/{name}", "data": "../data", "tasks": [name], **wanted}}
    return {
        f"theirs/{name}/{name}.yaml": usual + texts + more + keys,
        f"theirs/{name}/f.py": code,
        f"data/made__{name}/test.jsonl": rows,
        f"tasks/{name}.yaml": json.dumps(asked),
    }


def used(kind: str, what: str, name: str, status: str, score: float, files: dict[str, str | bytes]) -> Row:
    return Row(kind=kind, what=what, files=files, example=f"{name}:0", status=status, score=score)


def error(kind: str, what: str, name: str, says: str, files: dict[str, str | bytes]) -> Row:
    return Row(
        kind=kind, what=what, files=files, fate="refused", example=f"{name}:0", status="error", says=says, on=("board",)
    )


def refused(kind: str, what: str, says: str, files: dict[str, str | bytes]) -> Row:
    return Row(kind=kind, what=what, fate="refused", says=says, files=files)


def returning(value: str) -> str:
    return f"def g(*given):\n    return {value}\n"


TAKEN = (
    used("absent", "a column of one row", "none", "passed", 1.0, task("none", rows='{"said": "None"}\n' + BOTH_ROWS)),
    used("empty", "a text and its answer", "nothing", "passed", 1.0, task("nothing", rows='{"said": "", "right": ""}')),
    used("wrong type", "rows that are a list", "listed", "passed", 1.0,
         task("listed", "process_docs: !function f.g\n", code="def g(docs):\n    return [*docs]\n")),
    used("too large", "an answer of 100,000 characters", "long", "failed", 0.0,
         task("long", "doc_to_text: 'say: {{said * 100000}}'\n")),
    used("control characters", "an escape in a row", "escape", "passed", 1.0,
         task("escape", rows='{"said": "\\u001b[31mred", "right": "\\u001b[31mred"}\n')),
    used("out of order", "rows turned round by a function", "turned", "failed", 0.0,
         task("turned", "process_docs: !function f.g\n", BOTH_ROWS,
              "def g(docs):\n    return docs.select(range(len(docs) - 1, -1, -1))\n")),
    used("twice", "a key: the last one counts", "key", "passed", 1.0, task("key", "doc_to_target: '{{said}}'\n")),
    used("twice", "a name that is asked for", "asked", "passed", 1.0, task("asked", tasks=["asked", "asked"])),
    used("twice", "an option", "options", "passed", 1.0,
         task("options", "doc_to_choice: [red, red]\ndoc_to_target: 0\n", more=OPTIONS)),
    used("not finite or negative", "the number of an option", "below", "failed", 0.0,
         task("below", "doc_to_target: -1\n", more=OPTIONS)),
    used("wrong type", "a target that is no option", "outside", "failed", 0.0,
         task("outside", "doc_to_target: black\n", more=OPTIONS)),
    error("not finite or negative", "a metric", "inf", "the deciding metric is inf, not a number",
          task("inf", OWN, code=returning("{'exact_match': float('inf')}"))),
    error("wrong type", "metrics", "list", "f.g returned [1]: expected metrics and their values",
          task("list", OWN, code=returning("[1]"))),
    error("empty", "what a filter returns", "dropped", "f.g returned 0 lists of responses for one document",
          task("dropped", PIPE, code=returning("[]"))),
    error("raising", "a function", "raised", "f.g: ZeroDivisionError", task("raised", OWN, code=returning("1 / 0"))),
    Row(kind="raising", what="an aggregation", fate="reported", on=("terminal",),
        says="summed: its aggregation failed: ScoringError: f.g: ZeroDivisionError",
        files=task("summed", "metric_list: [{metric: exact_match, aggregation: !function f.g}]\n",
                   code=returning("1 / 0"))),
)  # fmt: skip
REFUSED = (
    refused("absent", "an include", "include: no.yaml: cannot be read", task("inc", "include: no.yaml\n")),
    refused("absent", "a document", "the split 'test' has no document", task("norows", rows="")),
    refused("absent", "a column", "template '{{sad}}': 'sad' is undefined",
            task("column", "doc_to_text: '{{sad}}'\n")),
    refused("empty", "a list of metrics", "metric_list: nometric: expected a metric",
            task("nometric", "metric_list: []\n")),
    refused("empty", "a list of filters", "filter_list: nofilter: expected a name and its list",
            task("nofilter", "filter_list: []\n")),
    refused("empty", "options", "doc_to_choice: item 0: expected an option",
            task("noption", "doc_to_choice: []\ndoc_to_target: 0\n", more=OPTIONS)),
    refused("wrong type", "rows", "process_docs: norow: expected rows, got None",
            task("norow", "process_docs: !function f.g\n", code=returning("None"))),
    refused("wrong type", "few-shot examples", "fewshot_config.samples: shots: expected a list of rows, got 'x'",
            task("shots", "num_fewshot: 1\nfewshot_config: {samples: x}\n")),
    refused("wrong type", "stop texts", "generation_kwargs.until: stops: expected texts, got [1]",
            task("stops", "generation_kwargs: {until: [1]}\n")),
    refused("wrong type", "an option of a filter", "the filter regex: got an unexpected keyword argument 'patern'",
            task("filters", "filter_list: [{name: x, filter: [{function: regex, patern: x}]}]\n")),
    refused("wrong type", "a pattern", "the filter regex: missing ), unterminated subpattern",
            task("pattern", "filter_list: [{name: x, filter: [{function: regex, regex_pattern: '('}]}]\n")),
    refused("wrong type", "a pattern to ignore", "exact_match: missing ), unterminated subpattern",
            task("ignored", "metric_list: [{metric: exact_match, regexes_to_ignore: ['(']}]\n")),
    refused("wrong type", "a metric that decides", "harness.metric.decides: expected 'METRIC' or 'METRIC,FILTER'",
            task("decides", metric={"decides": 3})),
    refused("wrong type", "a task of a metric", "harness.metric.others: no task of this file; did you mean 'other'?",
            task("other", metric={"others": "exact_match"})),
    refused("too large", "a file", "more than 4,194,304 bytes", task("wide", "#" * (4 << 20))),
    refused("too large", "a text", "more than 4,194,304 characters", task("deep", "doc_to_text: '{{said * 10**8}}'\n")),
    refused("not finite or negative", "a number of a row", "test.jsonl:1: NaN is not JSON",
            task("nan", rows='{"said": NaN}\n')),
    refused("not finite or negative", "few-shot examples", "num_fewshot: fewer: expected 0 or more, got -1",
            task("fewer", "num_fewshot: -1\n")),
    refused("not finite or negative", "repeats", "repeats: never: expected 1 or more, got 0",
            task("never", "repeats: 0\n")),
    refused("not finite or negative", "tokens", "generation_kwargs.max_gen_toks: short: expected a number from 1",
            task("short", "generation_kwargs: {max_gen_toks: 0}\n")),
    refused("not finite or negative", "a temperature", "temperature: cold: expected a number from 0, got -1",
            task("cold", "generation_kwargs: {temperature: -1}\n")),
    refused("not finite or negative", "draws of an error", "harness.bootstrap: expected a number from 0, got -1",
            task("draws", bootstrap=-1)),
    refused("control characters", "no UTF-8", "invalid leading UTF-8 octet",
            {**task("latin"), "theirs/latin/latin.yaml": b"task: latin\nx: \xff\n"}),
    refused("raising", "a function that ends the process", "loading the file called sys.exit(3)",
            task("exits", "process_docs: !function f.g\n", code=returning("exit(3)"))),
    refused("raising", "a module that ends the process", "f.py beside ended/: SystemExit: 3",
            task("ended", OWN, code="raise SystemExit(3)\ndef g():\n    pass\n")),
    refused("absent", "a module of the harness's tasks", "ImportError: no y of lm_eval.tasks.x in the folders of tasks",
            task("imports", OWN, code="from lm_eval.tasks.x import y\ndef g():\n    pass\n")),
    refused("raising", "a function of a row", "item 1: f.g: KeyError: 'blue'",
            task("item", "doc_to_target: !function f.g\n", BOTH_ROWS, returning("{'red': 'red'}[given[0]['said']]"))),
    refused("same name", "two pipelines", "duplicate pipeline 'x'",
            task("pipes", f"filter_list: [{', '.join(['{name: x, filter: [{function: take_first}]}'] * 2)}]\n")),
    refused("wrong type", "a key of a metric", "ignore_cas: keys: unknown field 'ignore_cas'; did you mean",
            task("keys", "metric_list: [{metric: exact_match, ignore_cas: true}]\n")),
    refused("same name", "a task of two files", "the task name 'first' is taken by tasks/first.yaml",
            {**task("first"), "tasks/second.yaml": task("first")["tasks/first.yaml"]}),
)  # fmt: skip
# Another plugin has drawn numbers and imported a package of numbers, before the tasks are read.
DREW = """
import random
from contextlib import suppress
random.seed(3)
random.random()
with suppress(ImportError):
    __import__("numpy").random.seed(3)
"""
SHUFFLED = "import random\ndef g(docs):\n    return [random.choice([doc]) for doc in docs]\n"
AROUND = (
    Row(kind="beside", what="a plugin that drew numbers before few-shot examples are drawn", fate="used",
        files={"conftest.py": DREW, **task("shots1", "num_fewshot: 1\nfewshot_split: train\n"),
               "data/made__shots1/train.jsonl": "".join(f'{{"said": "n{n}", "right": "n{n}"}}\n' for n in range(20))},
        example="shots1:0", status="passed", says="say: n14 n14", on=("board",)),
    Row(kind="environment", what="a package of numbers that is imported",
        files=task("drawn", "process_docs: !function f.g\ndoc_to_text: 'say: {{n}}'\n",
                   code="import random\ndef g(docs):\n    return [{**doc, 'n': random.random()} for doc in docs]\n"),
        example="drawn:0", status="failed", says="say: 0.8444218515250481", on=("board",)),
    since_baseline("changed unseen", "a row of the data since the baseline",
                   "not compared: 1 changed (1 passed before); compared: 0 of the baseline's 1 example",
                   task("row"), code=1, files=task("row", rows=RED.replace("red", "blue"))),
)  # fmt: skip
NEVER = (
    Row(kind="late", never="all is read when it is collected; an answer that is late is another border"),
    Row(kind="cancelled", never="nothing here waits for anything"),
    Row(kind="earlier run", never="a task file names its data, and a run leaves none where the harness looks for rows"),
    Row(kind="kept client", never="functions of the harness are given rows and answers, and no client"),
    Row(kind="secret", never="rows and functions are the author's; what a model answers is another border"),
)
BORDER = Border(
    name="a task of lm-evaluation-harness", files={"model.py": MODEL + LIKELY}, rows=(*TAKEN, *REFUSED, *AROUND, *NEVER)
)


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize(("rows", "code"), [((*TAKEN, *AROUND), 3), (REFUSED, 2)], ids=["taken", "refused"])
def test_what_a_task_file_brings_is_used_or_refused(
    tmp_path: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch, processes: str, rows: Any, code: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    check(replace(BORDER, rows=rows, code=code), tmp_path, run_module, processes)
