"""A data file: YAML with a prompt that is filled with the columns of a file's rows, or of rows in it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import load_tasks
from pytest_lmeval.formats.files import load_file, task_name
from pytest_lmeval.formats.jsonl import JsonlTask
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.loading import default_registry
from tests.conftest import Project
from tests.needs import module
from tests.schemas import validator
from tests.tables import each_row

CSV = "id,said,label\nr,red,red\nb,blue,{{ 1 + 1 }}\n"
USUAL: Mapping[str, Any] = {
    "prompt": "say: {{ said }}",
    "data": "rows.csv",
    "target": "{{ label }}",
    "metric": "exact_match",
}
REGISTRY = default_registry(entry_points=False)


def _load(folder: Path, document: object, rows: str | bytes = CSV, name: str = "rows.csv") -> LoadedFile:
    (folder / name).write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    path = folder / "q.yaml"
    # Each key has a line of its own.
    path.write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in document.items()))  # type: ignore[attr-defined]  # a mapping
    return load_file(path, task_name(path, folder), REGISTRY, is_named=True)


def _without(*names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**USUAL, **changes}.items() if name not in names}


def _faults(loaded: LoadedFile) -> list[str]:
    return [error.at("q.yaml") for error in loaded.errors]


def _of(loaded: LoadedFile) -> list[tuple[str, str, tuple[str, ...]]]:
    assert [] == _faults(loaded)
    (task,) = loaded.tasks
    return [(each.id, each.prompt, each.targets) for each in task.examples]


def test_rows_of_each_kind_of_file_are_the_same_examples(tmp_path: Path) -> None:
    expected = [("r", "say: red", ("red",)), ("b", "say: blue", ("{{ 1 + 1 }}",))]
    cells = [dict(zip(("id", "said", "label"), line.split(","), strict=True)) for line in CSV.splitlines()[1:]]
    assert expected == _of(_load(tmp_path, USUAL))
    lines = "".join(json.dumps(row) + "\n" for row in cells)
    assert expected == _of(_load(tmp_path, _without(data="rows.jsonl"), lines, "rows.jsonl"))
    assert expected == _of(_load(tmp_path, _without("data", rows=cells)))
    parquet = module("pyarrow.parquet")
    parquet.write_table(module("pyarrow").Table.from_pylist(cells), tmp_path / "rows.parquet")
    data = (tmp_path / "rows.parquet").read_bytes()
    assert expected == _of(_load(tmp_path, _without(data="rows.parquet"), data, "rows.parquet"))


@pytest.mark.parametrize(
    ("changes", "rows", "expected"),
    [
        ({}, "said,label\nred,x\nblue,y\n", ["1", "2"]),
        ({}, "id,said,label\n 7,red,x\n08,blue,y\n", [" 7", "08"]),
        ({"id": "q-{{ said }}"}, CSV, ["q-red", "q-blue"]),
    ],
)
def test_ids_are_those_of_the_template_the_column_or_the_row(
    tmp_path: Path, changes: dict[str, Any], rows: str, expected: list[str]
) -> None:
    assert expected == [id for id, _, _ in _of(_load(tmp_path, {**USUAL, **changes}, rows))]


def test_columns_are_data_whatever_they_are_called(tmp_path: Path) -> None:
    rows = 'prompt,metric,threshold,extras,row,First name\nred,f1,0.1,"{}",x,Ada\n'
    document = _without(prompt="{{ prompt }} {{ metric }} {{ row }}", target="{{ threshold }}{{ extras }}")
    assert [("1", "red f1 x", ("0.1{}",))] == _of(_load(tmp_path, document, rows))
    document = _without(prompt='{{ row["First name"] }}', target="a")
    assert [("1", "Ada", ("a",))] == _of(_load(tmp_path, document, rows.replace(",row,", ",other,")))


def test_the_examples_have_what_the_file_says_of_all(tmp_path: Path) -> None:
    extras = {"post_process": "lower", "threshold": 0.5, "extras": {"must_pass": True}, "metric": "f1"}
    (task,) = _load(tmp_path, _without("target", targets=["{{ label }}", "{{ said }}"], **extras)).tasks
    assert isinstance(task, JsonlTask)
    first = task.examples[0]
    assert (("red", "red"), "lower") == (first.targets, first.post_process)
    assert {"must_pass": True, "post_process": "lower", "threshold": 0.5} == first.metadata
    assert ("f1", "rows.csv", {}, "") == (task.metric, task.dataset["path"], task.config, task.key)


EMPTY = "{0!r} is empty, and the template uses it; to allow that, write {{{{ {0} or 'unknown' }}}}"
FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"prompt": "said"},
        "1: bad_value prompt: 'said' is text, and the name of a column: write '{{ said }}' for its value",
    ),
    ({"target": "label"}, "3: bad_value target: 'label' is text, and the name of a column"),
    (
        {"target": "{label}"},
        "3: bad_value target: '{label}' is text, and the name of a column: write '{{ label }}' for its value",
    ),
    (
        {"prompt": "Answer {said} now."},
        "1: bad_value prompt: it uses no column of rows.csv (id, said, label); a column is written {{ id }}",
    ),
    (
        {"extras": {"rubric": "Does it name {{ labl }}?"}, "metric": "rubric"},
        "5: bad_value extras.rubric: there is no column 'labl'; did you mean 'label'?",
    ),
    ({"id": "{{ nr }}"}, "5: bad_value id: there is no column 'nr'; there is id, said, label"),
    ({"prompt": "{{ sad }}"}, "1: bad_value prompt: there is no column 'sad'; did you mean 'said'?"),
    ({"prompt": "{{ said"}, "1: bad_value prompt: line 1 of the template"),
    ({"prompt": "{{ said.x }}"}, "1: bad_value prompt: template"),
    ({"target": "("}, "3: bad_value targets: "),
    ({"extras": {"relative": -1}, "metric": "number", "target": "1"}, "5: bad_value extras.relative: "),
    ({"data": "rows.cvs"}, "2: bad_value data: rows.cvs: expected a file that ends in .csv, .jsonl, .parquet"),
    ({"data": "row.csv"}, "2: bad_value data: row.csv: cannot be read: No such file or directory; did you mean"),
    ({"data": "/etc/rows.csv"}, "2: bad_value data: /etc/rows.csv: outside of the project"),
    ({"data": 3}, "2: bad_type data: expected a non-empty string, got a number"),
    ({"rows": [{}]}, "5: bad_value rows: both 'data' and 'rows' are set"),
    ({"targets": ["x"]}, "5: bad_value targets: both 'target' and 'targets' are set"),
    ({"target": 5}, '3: bad_type target: expected a text, got a number 5; write "5"'),
    ({"prompt": {}}, "1: bad_type prompt: expected a text, or a mapping of names to texts, got an empty one"),
    ({"prompt": {"a b": "x"}}, "1: bad_value prompt.a b: a prompt's name consists of letters"),
    ({"prompt": {"a": "said"}}, "1: bad_value prompt.a: 'said' is text"),
    ({"prompt": 3.5}, "1: bad_type prompt: expected a text, got a number 3.5"),
    ({"metric": "exact"}, "4: bad_value metric: unknown metric 'exact'"),
    ({"threshold": 2}, "5: bad_value threshold: expected a number in [0, 1]"),
    ({"tresh": 2}, "5: unknown_field tresh: unknown field 'tresh'; did you mean 'threshold'?"),
]
ROW_FAULTS = [
    ('said,label\n"red\n",a\n"", \n', "bad_value prompt: rows.csv:4: 'said' is empty"),
    ("id,said,label\n,red,x\nb,blue,y\n", "bad_value id: rows.csv:2: expected a text or a whole number in the "),
]


@pytest.mark.parametrize(("changes", "said"), FAULTS)
def test_what_is_wrong_is_said_once_with_its_place(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    metric = {"metric": "regex"} if changes.get("target") == "(" else {}
    (found,) = _faults(_load(tmp_path, {**USUAL, **metric, **changes}))
    assert found.startswith(f"q.yaml:{said}")


@pytest.mark.parametrize(("rows", "said"), ROW_FAULTS)
def test_what_is_wrong_in_a_row_is_said_once_with_its_line(tmp_path: Path, rows: str, said: str) -> None:
    (found,) = _faults(_load(tmp_path, USUAL, rows))
    assert found.startswith(f"q.yaml:2: {said}")


def test_extras_are_filled_and_then_checked_for_each_row(tmp_path: Path) -> None:
    document = {**USUAL, "extras": {"tolerance": "{{ label }}"}, "metric": "number", "target": "1"}
    (found,) = _faults(_load(tmp_path, document, "id,said,label\na,1,x\n"))
    assert found.startswith("q.yaml:2: bad_value extras.tolerance: rows.csv:2: ")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (_without("metric"), "1: missing_required metric: a data file needs a metric"),
        (_without("target"), "1: missing_required targets: required: prompt, targets, metric"),
        (_without("data", rows=[]), "4: bad_type rows: expected a non-empty list of mappings, got an empty one"),
        (
            _without("data", rows="rows.csv"),
            "4: bad_type rows: expected a non-empty list of mappings, got a string; a f",
        ),
        (_without("data", rows=[{"said": "a", "label": "b"}, 3]), "4: bad_type rows[1]: expected a mapping"),
        (_without("prompt", promt="x"), "1: missing_required _root: column 1: no task in the file; expected one of th"),
    ],
)
def test_what_a_data_file_lacks(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    (found,) = _faults(_load(tmp_path, document))
    assert found.startswith(f"q.yaml:{said}")


def test_the_schema_refuses_what_is_wrong_in_the_file_alone() -> None:
    is_valid = validator("data-file").is_valid
    assert is_valid(dict(USUAL))
    assert is_valid(_without("data", "target", rows=[{"a": 1}], prompt={"a": "x"}))
    shapes = [({**USUAL, **changes}, said) for changes, said in FAULTS]
    refused = [fault for document, fault in shapes if not is_valid(document)]
    assert {"data", "rows", "targets", "target", "prompt", "prompt.a", "threshold", "tresh"} == {
        fault.split(": ")[1].split()[1] for fault in refused
    }


def test_a_bad_row_in_the_file_itself_has_its_line_and_good_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(
        "prompt: 'say: {{ said }}'\nrows:\n- {said: red, label: a}\n- said: blue\n- {said: x, label: ''}\n"
        "target: '{{ label }}'\nmetric: f1\n"
    )
    loaded = load_file(path, "q", REGISTRY)
    assert [
        "q.yaml:4: missing_required target: the row has no 'label', which the template uses; there is said",
        f"q.yaml:5: bad_value target: {EMPTY.format('label')}",
    ] == _faults(loaded)
    assert [("1", 3)] == [(each.id, each.line) for each in loaded.tasks[0].examples]


def test_each_prompt_is_a_variant_and_a_bad_row_is_named_once(tmp_path: Path) -> None:
    rows = "said,label,more\nred,red,\nblue,,x\n"
    prompts = {"short": "{{ said }}", "long-1.0": "{{ said }} {{ more }}"}
    loaded = _load(tmp_path, {**USUAL, "prompt": prompts}, rows)
    assert [
        f"q.yaml:2: bad_value target: rows.csv:3: {EMPTY.format('label')}",
        f"q.yaml:2: bad_value prompt.long-1.0: rows.csv:2: {EMPTY.format('more')}",
    ] == _faults(loaded)
    assert [("q@short", "q", {"prompt": "short"}, 1)] == [
        (task.name, task.key, task.config, len(task.examples)) for task in loaded.tasks
    ]


@each_row(
    ("text", "said"),
    [
        ("prompt: x\ndata: t.csv\n", "no key metric"),
        ("promt: x\ndata: t.csv\nmetric: f1\n", "no key prompt; did you mean 'prompt'?"),
        ("prompt: x\ndata: t.csv\nmetrics: f1\n", "no key metric; did you mean 'metric'?"),
        ("prompt: x\ndata: t.csv\nmetric: f1\nmodel: gpt\nlr: 0.1\n", "it has the keys of a data file, and others"),
        ("a: {prompt: x, data: t.csv, metric: f1}\n", "no key definition"),
        ("prompt: {{ x }}\ndata: ${d}\n  metric: f1\n", "no key metric"),
    ],
)
def test_yaml_of_others_is_left_alone(text: str, said: str) -> None:
    path = Path("others.yaml")
    from pytest_lmeval.formats.task import TaskSource
    from pytest_lmeval.formats.yaml import load

    loaded = load(TaskSource(path, text.encode(), "others"), REGISTRY)
    assert ((), (), True) == (loaded.tasks, tuple(loaded.errors), said in loaded.no_task), loaded


PROMPTS = """\
prompt:
  plain: "say: {{ said }}"
  brief: |
    Be brief.
    say: {{ said }}
data: rows.csv
target: "{{ label }}"
metric: exact_match
"""
ROWS = "said,label\nred,red\nblue,blue\ngrey,green\n"


def _project(project: Project) -> None:
    project.write("tasks/colours.yaml", PROMPTS)
    project.write("tasks/rows.csv", ROWS)


def test_variants_are_rows_that_options_call_by_name_or_together(project: Project) -> None:
    _project(project)
    project.run("tasks").assert_outcomes(passed=4, failed=2)
    rows = {row["task"]: (row["config"], row["score"]) for row in project.board()["tasks"]}
    assert ["colours@brief", "colours@plain"] == [*rows]
    assert {"prompt": "brief"} == rows["colours@brief"][0]
    project.run("tasks/colours.yaml::colours-brief.3").assert_outcomes(failed=1)
    done = project.run("tasks", "--lm-gate=tasks", "--lm-min-score=colours=0.9")
    done.stdout.fnmatch_lines(["*colours@brief: 0.6667 is below its floor 0.9", "*colours@plain: 0.6667 is below*"])
    assert 4 == project.run("tasks", "--lm-min-score=colors=0.9").ret
    ranked = project.lmeval("rank", "reports/ledger.jsonl", "--by", "config")
    ranked.stdout.fnmatch_lines(["brief *", "plain *", "*scores are over the 3 example(s)*"])


def test_a_csv_alone_is_no_task_and_the_jsonl_of_a_data_file_neither(project: Project) -> None:
    _project(project)
    project.write("tasks/own.jsonl", '{"said": "red"}\n')
    project.write("tasks/own.yaml", PROMPTS.replace("rows.csv", "own.jsonl").replace("{{ label }}", "red"))
    assert 4 == project.run("tasks/rows.csv").ret
    done = project.lmeval("validate", "tasks")
    assert (0, "2 file(s): 8 valid record(s), 0 bad") == (done.ret, done.outlines[-1])
    done = project.lmeval("validate", "tasks/rows.csv")
    assert 2 == done.ret
    done.stderr.fnmatch_lines(["*rows.csv: not a task file*a task in YAML names such a file as its data*"])


def test_the_library_has_the_tasks(project: Project) -> None:
    _project(project)
    tasks = load_tasks(project.path / "tasks")
    assert ["colours@plain", "colours@brief"] == [task.name for task in tasks]
    assert ["say: red", "say: blue", "say: grey"] == [each.prompt for each in tasks[0].examples]
    assert "Be brief.\nsay: red" == tasks[1].examples[0].prompt


def test_an_edited_prompt_is_compared_by_id(project: Project) -> None:
    _project(project)
    project.write("tasks/rows.csv", "id,said,label\na,red,red\nb,blue,blue\nc,grey,green\n")
    options = ("tasks", "--lm-gate=baseline", "--lm-baseline=b.json", "--lm-pair-by=id")
    project.run(*options, "--lm-update-baseline")
    project.edit("tasks/colours.yaml", "Be brief.", "Be quick.")
    done = project.run(*options)
    assert 0 == done.ret
    done.stdout.fnmatch_lines(["*the prompts of 3 of 6 examples differ from the baseline: colours@brief 3"])


SYSTEM = {"role": "system", "content": "Name the colour."}
ASK = {"role": "user", "content": "say: {{ said }}"}


def test_a_prompt_may_be_messages(tmp_path: Path) -> None:
    document = {**USUAL, "prompt": {"chat": [SYSTEM, ASK], "plain": "say: {{ said }}"}}
    chat, plain = _load(tmp_path, document).tasks

    talk = chat.examples[0]
    assert [("system", "Name the colour."), ("user", "say: red")] == [(m.role, m.content) for m in talk.messages]
    assert "Name the colour.\n\nsay: red" == talk.prompt
    assert () == plain.examples[0].messages
    assert validator("data-file").is_valid({**document, "data": "rows.csv"})


@each_row(
    ("messages", "fault"),
    [
        ([], "bad_type prompt: expected a text or a list of messages, got an empty one"),
        (["say"], "bad_type prompt[0]: expected a mapping of role and content, got 'say'"),
        ([{"role": "user"}], "bad_type prompt[0]: expected a mapping of role and content, got {'role': 'user'}"),
        ([{**ASK, "role": "me"}], "bad_value prompt[0].role: 'me' is not one of assistant, system, user"),
        ([ASK, SYSTEM], "bad_value prompt: expected a system message at the front, if any, and one of the user at the"),
        ([SYSTEM, {**ASK, "content": ["x"]}], "bad_type prompt[1].content: expected a non-empty string, got an array"),
        ([{**ASK, "content": "{{ sayd }}"}], "bad_value prompt[0].content: there is no column 'sayd'; did you mean"),
    ],
)
def test_messages_that_are_none_are_refused(messages: object, fault: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (found,) = _faults(_load(Path(folder), {**USUAL, "prompt": messages}))
    assert fault in found
