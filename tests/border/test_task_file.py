"""The border to task files: what is meant as a task is read or refused, and files of others stay untouched."""

from __future__ import annotations

import json
from pathlib import Path

from tests.border.table import Border, Row, check, refused_run, since_baseline
from tests.conftest import RunModule

ANSIBLE = """\
- hosts: all
  vars: {<<: *defaults, secret: !vault x, mode: 0755}
  tasks:
    - name: definition of done
      template: src=a dest={{ path }}
---
- import_playbook: other.yaml
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
data:
  key: value
  definition: |
    a: [1
---
kind: Secret
"""
OPENAPI = """\
openapi: 3.0.0
info: {title: x, version: '1'}
definitions:
  Pet: {type: object, properties: {key: {type: string}}}
"""
COMPOSE = """\
x-common: &common
  restart: always
services:
  web: {<<: *common, image: nginx, ports: ["80:80"]}
"""
TRAINING = """\
prompt: "{instruction}"
data: train.csv
metric: rouge
learning_rate: 0.1
model: {name: base}
"""
OTHERS = {
    f"tasks/{name}.yaml": text
    for name, text in [
        ("ansible", ANSIBLE),
        ("map", CONFIG_MAP),
        ("openapi", OPENAPI),
        ("compose", COMPOSE),
        ("training", TRAINING),
    ]
}
TASK = "key: capitals\ndisplay_name: Capitals\ndefinition:\n  dataset: {path: rows.csv}\n"


def line(id: str = "a", **fields: object) -> str:
    record = {"id": id, "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}
    return json.dumps(record | fields) + "\n"


def filled(*records: object, **changes: object) -> str:
    """Return a file whose records have defaults."""
    defaults = {"prompt": "say: {{ said }}", "metric": "exact_match", **changes}
    return "".join(json.dumps(each) + "\n" for each in ({"defaults": defaults}, *records))


def refused(kind: str, what: str, text: str | bytes, says: str, name: str = "tasks/bad.yaml", code: int = 2) -> Row:
    return refused_run(kind, what, says, code=code, files={name: text})


def checked(*checks: object) -> str:
    return json.dumps({"id": "a", "prompt": "say: x", "checks": checks}) + "\n"


def rows(text: str, folder: str = "q", **changes: object) -> dict[str, str]:
    """Return a data file and its csv."""
    document = {
        "prompt": "say: {{ said }}",
        "data": "q.csv",
        "target": "{{ label }}",
        "metric": "exact_match",
        **changes,
    }
    described = "".join(f"{name}: {json.dumps(value)}\n" for name, value in document.items())
    return {f"tasks/{folder}/q.csv": text, f"tasks/{folder}/q.yaml": described}


def bad_rows(kind: str, what: str, text: str, says: str, **changes: object) -> Row:
    return Row(kind=kind, what=what, fate="refused", says=says, files=rows(text, what.replace(" ", "-"), **changes))


def bad_line(kind: str, what: str, text: str, says: str) -> Row:
    return Row(kind=kind, what=what, fate="refused", says=says, files={f"tasks/{what.replace(' ', '-')}.jsonl": text})


BORDER = Border(
    name="task file",
    files={"tasks/t.jsonl": line(), **OTHERS},
    arguments=("tasks", "--lm-adapter=model:Model"),
    rows=(
        Row(kind="same name", what="files of others beside a task", example="t:a", status="passed", unsaid="bad_yaml"),
        refused("absent", "a task without its definition", "key: a\ndefinitions: {}\n", "unknown_field"),
        refused("empty", "a definition without a value", "key: a\ndefinition:\n", "tasks/bad.yaml"),
        refused("wrong type", "an indented definition", "key: a\n definition:\n  x: 1\n", "bad_yaml"),
        refused("raising", "YAML that does not end", "a: [1\n", "bad_yaml _document: column 1"),
        refused(
            "raising", "Python that does not parse", "def f(:\n", "(tasks/task_x.py:1, column 7)", "tasks/task_x.py"
        ),
        refused("raising", "a record that is cut", line()[:-4], "bad_json", "tasks/bad.jsonl"),
        refused(
            "too large",
            "aliases of aliases",
            "\n".join(
                ["definition: x", "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
                + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
            ),
            "more than 100,000 values, aliases written out",
        ),
        refused("too large", "nested too deep", "definition: " + "[" * 60 + "]" * 60, "nested deeper than 50 levels"),
        refused("not finite or negative", "a limit", "definition: {x: .inf}\n", ".inf is not a finite number"),
        refused("control characters", "no UTF-8", b"key: \xff\n", "not UTF-8: byte 0xff"),
        refused(
            "control characters", "a bell", "definition: {}\nx: '\x07'\n", "the character U+0007 is not allowed in YAML"
        ),
        refused("twice", "a key", TASK + "key: other\n", "bad_yaml"),
        refused("twice", "an id", line() + line(), "duplicate_task_id", "tasks/bad.jsonl"),
        Row(
            kind="same name",
            what="a value that reads like a template",
            files={"tasks/filled.jsonl": filled({"id": "a", "said": "{{ 1 + 1 }}", "targets": ["{{ 1 + 1 }}"]})},
            example="filled:a",
            status="passed",
        ),
        Row(
            kind="same name",
            what="columns that are called as the keys of a record",
            files=rows("id,prompt,metric,label\na,{{ x }},f1,{{ x }}\n", prompt="say: {{ prompt }}"),
            example="q/q:a",
            status="passed",
        ),
        Row(
            kind="same name",
            what="the name of a check with markup",
            files={"tasks/checked.jsonl": checked({"metric": "regex", "targets": ["^x$"], "name": "<b>a</b>|`b`"})},
            example="checked:a",
            status="passed",
            score=1.0,
        ),
        Row(
            kind="beside",
            what="plain tests in the folder of the tasks",
            files={"tasks/test_plain.py": "def test_plain(): pass\n"},
            says='classname="tasks.test_plain" name="test_plain"',
            on=("junit",),
        ),
        Row(
            kind="environment",
            what="the name of a variable, which is a text as any other",
            files={"tasks/variable.jsonl": line(prompt="say: $MY_CITY", targets=["$MY_CITY"])},
            environment={"MY_CITY": "Riga"},
            example="variable:a",
            status="passed",
            unsaid="Riga",
        ),
        since_baseline(
            "changed unseen",
            "a prompt since the baseline",
            "not compared: 1 changed (1 passed before); compared: 0 of the baseline's 1 example",
            {"tasks/t.jsonl": line(prompt="speak and say: x")},
            code=1,
        ),
        Row(
            kind="earlier run",
            what="reports in the folder of the tasks",
            files={"tasks/reports/ledger.jsonl": line("ledger"), "tasks/reports/previous/leaderboard.json": "{}"},
            example="t:a",
            status="passed",
            unsaid="reports/ledger:",
        ),
        Row(kind="kept client", never="a file is read before anything is asked"),
        refused(
            "out of order", "defaults behind a record", line() + filled(), "defaults are allowed", "tasks/bad.jsonl"
        ),
        Row(kind="late", never="files are read once, when they are collected"),
        Row(kind="cancelled", never="to read a file cannot be cancelled"),
        Row(kind="secret", never="a task file is written by its author; what the model answers is another border"),
    ),
)


REFUSED = Border(
    name="bad records",
    files={"tasks/t.jsonl": line()},
    arguments=("tasks", "--lm-adapter=model:Model"),
    code=2,
    rows=(
        bad_line("absent", "a value that the prompt needs", filled({"targets": ["x"]}), "the row has no 'said'"),
        bad_line("empty", "a blank that the prompt needs", filled({"said": "", "targets": ["x"]}), "'said' is empty"),
        bad_line("wrong type", "a misspelt default", filled(metrik="f1"), "did you mean 'metric'?"),
        bad_line("raising", "a template that does not end", filled(prompt="{{ said"), "bad_value defaults.prompt"),
        bad_line(
            "too large",
            "a template that makes much of little",
            filled({"said": "x", "targets": ["x"]}, prompt="{{ said * 9999999 }}"),
            "more than 4,194,304 characters",
        ),
        bad_line("twice", "defaults", filled({"defaults": {}}), "defaults are allowed once, as the first"),
        bad_line(
            "absent", "a check without a metric", checked({"targets": ["x"]}), "missing_required checks[0].metric"
        ),
        bad_line("empty", "checks", checked(), "expected a non-empty array of objects, got an empty one"),
        bad_line("wrong type", "a check of an unknown metric", checked({"metric": "exact"}), "unknown metric 'exact'"),
        bad_line(
            "not finite or negative",
            "a weight",
            checked({"metric": "regex", "targets": ["x"], "weight": -1}),
            "bad_value checks[0].weight: expected a number above 0, at most 1,000,000, got -1",
        ),
        bad_line(
            "twice", "a check", checked(*[{"metric": "regex", "targets": ["x"]}] * 2), "is also the name of checks[0]"
        ),
        bad_line(
            "raising",
            "a pattern that does not end",
            line(metric="regex", targets=["("]),
            "expected regular expressions",
        ),
        bad_line(
            "empty", "a text to look for", line(metric="contains_all", targets=["x", ""]), "every text contains an"
        ),
        bad_line("absent", "a number", line(metric="number", targets=["x"]), "expected a number in each target"),
        bad_line(
            "not finite or negative",
            "a tolerance",
            line(metric="number", targets=["1"], extras={"tolerance": -1}),
            "extras.tolerance: expected a number of at least 0",
        ),
        bad_line("wrong type", "a graded metric turned round", line(metric="f1", extras={"not": True}), "f1 is graded"),
        bad_line("wrong type", "case", line(metric="starts_with", extras={"ignore_case": 1}), "expected true or false"),
        bad_line("wrong type", "not", line(extras={"not": "yes"}), "extras.not: expected true or false, got a string"),
        bad_rows("absent", "a column", "id,label\na,x\n", "there is no column 'said'"),
        bad_rows("empty", "a cell", "said,label\nx,x\nx,\n", "q.csv:3: 'label' is empty, and the template uses it"),
        bad_rows("empty", "a file of rows", "said,label\n", "q.csv: no row in the file"),
        bad_rows("wrong type", "the name of a column", "said,label\nx,x\n", "'said' is text, and the", prompt="said"),
        bad_rows(
            "raising", "a quote that does not end", 'said,label\nx,x\n"x,x\n', "q.csv:3: a quote that does not end"
        ),
        bad_rows("control characters", "a csv that is cut", "said,label\nx\0,x\nx", "q.csv:3: 1 cells; expected 2"),
        bad_rows("twice", "an id", "id,said,label\na,x,x\na,y,y\n", "q.csv:3: 'a' is already the id of q.csv:2"),
        bad_rows("out of order", "a csv without its header", "x,y\n", "q.csv: no row in the file"),
    ),
)


def test_all_bad_records_of_a_run_are_named_at_once(tmp_path: Path, run_module: RunModule) -> None:
    check(REFUSED, tmp_path, run_module)


def test_files_of_others_stay_untouched_by_every_way_to_name_their_folder(
    tmp_path: Path, run_module: RunModule
) -> None:
    (tmp_path / "tasks").mkdir()
    for name, text in {**OTHERS, "tasks/t.jsonl": line()}.items():
        (tmp_path / name).write_text(text)
    done = run_module(tmp_path, "pytest_lmeval.cli", "validate", "tasks")
    assert 0 == done.returncode, done.stdout
    for arguments in (
        ["--lm-adapter=toy"],
        ["tasks", "--lm-adapter=toy"],
        ["-olm_task_paths=tasks", "--lm-adapter=toy"],
    ):
        done = run_module(tmp_path, "pytest", "-q", *arguments)
        assert "1 passed" in done.stdout or "1 failed" in done.stdout, done.stdout
