"""Tasks of lm-evaluation-harness name their data as the harness takes it."""

from __future__ import annotations

import gzip
import json

import pytest

from tests import needs
from tests.conftest import Project

TASK = """
task: t
dataset_path: PATH
dataset_kwargs: KWARGS
test_split: test
doc_to_text: "TEXT"
doc_to_target: said
"""
ROWS = [{"said": "a", "n": 1}, {"said": "b", "n": 2.5}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
ARRAY = json.dumps(ROWS, indent=1).encode()
CSV = b"said,n\na,1\nb,2\n"


def prompts_of(
    project: Project, path: str, kwargs: str, files: dict[str, bytes], text: str = "say: {{said}}"
) -> list[str]:
    """Return the prompts of a task that names its data so, or the errors of the run."""
    project.write("given/t.yaml", TASK.replace("PATH", path).replace("KWARGS", kwargs).replace("TEXT", text))
    project.write("tasks/all.yaml", "harness: {from: ../given, tasks: [t]}\n")
    for name, data in files.items():
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        (project.path / name).write_bytes(data)
    result = project.run("tasks", "--lm-include-per-example")
    if result.ret == 2:
        return [result.stdout.str() + result.stderr.str()]
    return [each["prompt"] for each in project.board()["tasks"][0]["per_example"]]


NAMED: dict[str, tuple[str, str, dict[str, bytes]]] = {
    "an array": ("json", "{data_files: {test: rows.json}}", {"given/rows.json": ARRAY}),
    "an array behind a byte order mark": (
        "json", "{data_files: {test: rows.json}}", {"given/rows.json": b"\xef\xbb\xbf" + ARRAY},
    ),
    "lines packed": ("json", "{data_files: {test: rows.json.gz}}", {"given/rows.json.gz": gzip.compress(LINES)}),
    "an array packed": ("json", "{data_files: {test: rows.json.gz}}", {"given/rows.json.gz": gzip.compress(ARRAY)}),
    "csv packed": ("csv", "{data_files: {test: rows.csv.gz}}", {"given/rows.csv.gz": gzip.compress(CSV)}),
    "another suffix": ("csv", "{data_files: {test: rows.txt}}", {"given/rows.txt": CSV}),
    "a pattern": (
        "json", "{data_files: {test: 'parts/*.json'}}",
        {"given/parts/1.json": ARRAY[:-1].split(b",\n {")[0] + b"]", "given/parts/2.json": LINES.split(b"\n")[1]},
    ),
    "the working folder": ("json", "{data_files: {test: work/rows.json}}", {"work/rows.json": ARRAY}),
    "the task's folder first": (
        "json", "{data_files: {test: rows.json}}", {"given/rows.json": ARRAY, "rows.json": b"{}"},
    ),
    "no stream": ("json", "{data_files: {test: rows.json}, streaming: false}", {"given/rows.json": ARRAY}),
    "a folder beside the task": ("./mine", "{}", {"given/mine/test.jsonl": LINES, "given/mine/train.jsonl": b"{}"}),
    "a folder of the working folder": (
        "mine", "{}", {"mine/test.json": ARRAY, "mine/README.md": b"test", "mine/.test/a.json": b"{}"},
    ),
    "a word of the path": ("./mine", "{}", {"mine/eval/rows.json.gz": gzip.compress(ARRAY), "mine/train.json": b"{}"}),
}  # fmt: skip


@pytest.mark.parametrize("way", NAMED)
def test_data_are_read_as_the_harness_reads_them(project: Project, way: str) -> None:
    assert ["say: a", "say: b"] == prompts_of(project, *NAMED[way])


DATES = (
    '{"said": "2020-01-02", "n": 1}\n{"said": "2020-01-02T03:04:05+01:00", "n": 2.5}\n{"said": null, "n": null}\n',
    '{"said": "2020-01-02"}\n{"said": "2020-02-30"}\n',
)


def test_columns_have_the_types_of_the_first_split_and_dates_as_in_the_harness(project: Project) -> None:
    files = {"given/a.json": DATES[0].encode(), "given/b.json": b'{"said": "x", "n": 7}'}
    kwargs = "{data_files: {test: a.json, train: b.json}}\nfewshot_split: train\nnum_fewshot: 1"
    first, second, third = prompts_of(project, "json", kwargs, files, "say: {{said}} {{n}}")
    assert "say: x 7.0 x\n\nsay: 2020-01-02 00:00:00 1.0" == first
    assert second.endswith("say: 2020-01-02 02:04:05 2.5")
    assert third.endswith("say: None None")
    kwargs = "{data_files: {test: a.json}}"
    assert "say: 2020-02-30" == prompts_of(project, "json", kwargs, {"given/a.json": DATES[1].encode()})[1]


REFUSED: dict[str, tuple[str, str, dict[str, bytes], str]] = {
    "a broken array": (
        "json", "{data_files: {test: rows.json}}", {"given/rows.json": b'[{"said": "a"},\n {"said": b}]'},
        "rows.json: Expecting value at line 2, column 11",
    ),
    "an array of other things": (
        "json", "{data_files: {test: rows.json}}", {"given/rows.json": b'[{"said": "a"}, 3]'},
        "rows.json: item 2: expected an object, got 3",
    ),
    "broken lines": (
        "json", "{data_files: {test: rows.json}}", {"given/rows.json": b'{"said": "a"}\n{'}, "rows.json:2: Expecting",
    ),
    "a damaged packed file": (
        "json", "{data_files: {test: rows.json.gz}}", {"given/rows.json.gz": gzip.compress(LINES)[:-9]},
        "rows.json.gz: cannot be unpacked: Compressed file ended",
    ),
    "no file": (
        "json", "{data_files: {test: 'no*.json'}}", {},
        "data_files: no*.json: expected a local file beside the task or in the working folder",
    ),
    "a stream": ("json", "{streaming: true}", {}, "streaming: expected false"),
    "no folder": ("./mydata", "{}", {}, "./mydata: no such folder beside the task or in the working folder"),
    "no such split": ("./mine", "{}", {"mine/train.jsonl": LINES}, "./mine: no split 'test'; there is train"),
    "a name of a folder": (
        "./mine", "{}\ndataset_name: one", {"mine/test.jsonl": LINES}, "the folder ./mine takes no name, got 'one'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", REFUSED)
def test_data_that_cannot_be_read_are_refused_by_the_name_of_the_file(project: Project, way: str) -> None:
    path, kwargs, files, says = REFUSED[way]
    (text,) = prompts_of(project, path, kwargs, files)
    assert says in text
    assert "pip install" not in text


def test_an_unpacked_file_has_a_largest_size(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\nlm_max_data_bytes = 1000\n")
    packed = {"given/rows.json.gz": gzip.compress(LINES * 1000)}
    (text,) = prompts_of(project, "json", "{data_files: {test: rows.json.gz}}", packed)
    assert "rows.json.gz: " in text
    assert "at most 1,000 are read (ini lm_max_data_bytes)" in text


METHODS = """
from datasets import Dataset

def process_docs(docs):
    assert docs.unique("n") == [1.0, 2.5]
    docs = docs.select_columns(["said"]).flatten_indices()
    assert docs.column_names == ["said"]
    frame = docs.to_pandas()
    frame = frame[frame["said"] != "a"]
    assert Dataset.from_pandas(frame, preserve_index=False).column_names == ["said"]
    return Dataset.from_pandas(frame.set_index("said"))
"""


def test_functions_may_select_columns_and_use_frames_of_pandas(project: Project) -> None:
    needs.installed("pandas")
    needs.installed("pyarrow")
    project.write("given/utils.py", METHODS)
    kwargs = "{data_files: {test: rows.json}}\nprocess_docs: !function utils.process_docs"
    assert ["say: b"] == prompts_of(project, "json", kwargs, {"given/rows.json": ARRAY})
