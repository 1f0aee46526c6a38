"""The schemas are sound, fit what is really written, and refuse what is not."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval import ToyAdapter, load_tasks, run_leaderboard, write_leaderboard
from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.formats.jsonl import is_spec_record
from pytest_lmeval.records.recording import read_recording
from pytest_lmeval.schemas import load_schema, schema_names
from tests.schemas import faults, validator
from tests.tables import each_row

if TYPE_CHECKING:
    from tests.conftest import Project

Record = dict[str, Any]
Place = tuple[str | int, ...]
ROOT = Path(__file__).parents[1]
TASK_FILES = [
    *sorted((ROOT / "tasks").glob("*.jsonl")),
    *sorted((ROOT / "pytest_lmeval/starter").rglob("tasks/*.jsonl")),
]


def _records(path: Path) -> list[Any]:
    return [parse_line(line) for _, line in number_lines(path.read_bytes())]


def test_there_is_a_schema_of_every_file_that_is_read_or_written() -> None:
    assert (
        "compact-defaults",
        "compact-record",
        "comparison",
        "data-file",
        "dataset",
        "leaderboard",
        "ledger",
        "recording",
        "spec-record",
        "task",
    ) == schema_names()


def test_an_unknown_schema_is_an_error_that_lists_the_choices() -> None:
    with pytest.raises(UnknownName, match=r"unknown schema 'leaderbord'.* 'leaderboard'.*recording"):
        load_schema("leaderbord")


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_keeps_to_its_draft_and_says_what_it_is_of(name: str) -> None:
    schema = load_schema(name)
    validator(name).check_schema(schema)
    assert "https://json-schema.org/draft/2020-12/schema" == schema["$schema"]
    version = 2 if name in ("leaderboard", "ledger") else 1
    assert f"urn:pytest-lmeval:schema:{name}:{version}" == schema["$id"]
    assert {"title", "description"} <= schema.keys()


@each_row("path", sorted((ROOT / "pytest_lmeval/schemas").glob("*.json")))
def test_a_schema_defines_each_name_once(path: Path) -> None:
    parse_line(path.read_bytes())  # refuses a name that occurs twice


@each_row("name", ["compact-defaults", "compact-record", "data-file", "recording", "spec-record"])
def test_an_editor_can_explain_every_field_that_people_write(name: str) -> None:
    def silent(schema: Record, path: str) -> list[str]:
        found = []
        for key, field in schema.get("properties", {}).items():
            found += [f"{path}.{key}"] * ("description" not in field) + silent(field, f"{path}.{key}")
        return found + (silent(schema["items"], f"{path}[]") if "items" in schema else [])

    assert [] == silent(load_schema(name), name)


@each_row("path", TASK_FILES)
def test_every_shipped_record_fits_its_schema(path: Path) -> None:
    records = _records(path)
    assert [] != records
    name = "spec-record" if is_spec_record(records[0]) else "compact-record"
    assert [] == [fault for record in records for fault in faults(name, record)]


# --- recordings ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "task": st.sampled_from(["sums", "", None, 1, []]),
            "id": st.text(max_size=3) | st.integers(),
            "output": st.text(max_size=3),
            "outputs": st.lists(st.text(max_size=3), max_size=2),
            "prediction": st.text(max_size=3),
            "predictions": st.lists(st.text(max_size=3), min_size=1, max_size=2),
            "note": st.sampled_from([None, 1, "x"]),
        },
    )
)
def test_the_replay_adapter_reads_every_line_that_fits_the_schema(line: Record) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.replay.jsonl"
        path.write_text(json.dumps(line), "utf-8")
        try:
            read = list(read_recording(path))
        except UsageError:
            read = []
    holds_text = all(outputs for _, _, outputs in read) and line.get("outputs") != []
    assert (read != [] and holds_text) == (not faults("recording", line))


@each_row(
    "line",
    [
        {"id": "a"},
        {"output": "b"},
        {"id": True, "output": "b"},
        {"id": "a", "output": None},
        {"id": "a", "outputs": "b"},
        {"id": "a", "outputs": [1]},
        {"id": "a", "output": "b", "task": 1},
        ["a", "b"],
    ],
)
def test_what_is_no_recorded_output_does_not_fit(line: Any) -> None:
    assert faults("recording", line)


# --- what a run writes -----------------------------------------------------------------------------------------------

_UNEVEN_MODEL = """
class Model:
    name = "uneven.v1"

    def generate(self, prompts):
        if any("fail" in prompt for prompt in prompts):
            raise RuntimeError("out of memory")
        return [prompt.rpartition("say: ")[2] for prompt in prompts]
"""


def _check_reports(project: Project) -> Record:
    board = project.board()
    assert [] == faults("leaderboard", board)
    lines = [json.loads(line) for line in (project.path / "reports/ledger.jsonl").read_text("ascii").splitlines()]
    assert [] == [fault for line in lines for fault in faults("ledger", line)]
    assert [["header"], ["run"], ["footer"]] == [list(lines[0]), list(lines[-2]), list(lines[-1])]
    assert board["counts"]["scored"] + board["counts"]["errors"] == len(lines) - 3
    return board


@pytest.mark.parametrize("per_example", [True, False])
def test_the_reports_of_the_shipped_tasks_fit(project: Project, per_example: bool) -> None:
    # A folder for each file: two have the same name, and so may the folders that hold them.
    for number, path in enumerate(TASK_FILES):
        project.write(f"tasks/{number}/{path.name}", path.read_bytes())
    project.run_pytest("tasks", "--lm-adapter=toy", *["--lm-include-per-example"] * per_example)
    rows = _check_reports(project)["tasks"]
    assert [per_example] * len(TASK_FILES) == ["per_example" in row for row in rows]


def test_the_reports_of_a_run_that_fails_in_every_way_fit(project: Project) -> None:
    project.write("model.py", _UNEVEN_MODEL)
    project.small_tasks()
    project.task("tasks/uneven.jsonl", project.record("ill", "fail"), {"id": "bad"}, project.record("well", "fine"))
    options = ("--lm-include-per-example", "--lm-allow-bad-tasks", "--lm-batch-size=1", "--lm-limit=2")
    project.run(*options, "-W", "ignore", "tasks")
    board = _check_reports(project)
    assert {"selection", "bad_records", "gate"} <= board.keys()
    assert {"passed", "failed", "error"} == {record["status"] for record in project.examples().values()}
    recording = [json.dumps(board), *(project.path / "reports/ledger.jsonl").read_text("ascii").splitlines()]
    assert all(faults("spec-record", json.loads(line)) for line in recording)


def test_the_reports_of_a_run_that_was_stopped_fit(project: Project) -> None:
    project.small_tasks()
    project.run("-x", "tasks")
    board = _check_reports(project)
    assert 0 < board["counts"]["missing"]


def test_a_board_that_is_made_without_pytest_fits(tmp_path: Path) -> None:
    board = run_leaderboard(load_tasks(ROOT / "tasks/arithmetic.jsonl"), ToyAdapter())
    for per_example in (False, True):
        write_leaderboard(board, tmp_path / "board.json", include_per_example=per_example)
        assert [] == faults("leaderboard", json.loads((tmp_path / "board.json").read_text("utf-8")))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((), {"surprise": 1}),
        ((), {"complete": False}),
        ((), {"digest": "0" * 63 + "\n"}),
        ((), {"overall_score": 1.5}),
        ((), {"schema": "pytest-lmeval/leaderboard/3"}),
        (("counts",), {"collected": -1}),
        (("counts",), {"lost": 0}),
        (("tasks", 0), {"ci95": [0.5]}),
        (("tasks", 0), {"correct": 0.5}),
        (("tasks", 0), {"surprise": 1}),
        (("tasks", 0, "per_example", 0), {"status": "skipped"}),
        (("tasks", 0, "per_example", 0), {"status": "error"}),
        (("tasks", 0, "per_example", 0), {"score": None}),
        (("tasks", 0, "per_example", 0), {"surprise": 1}),
    ],
)
def test_a_board_that_is_not_one_does_not_fit(place: Place, value: Record) -> None:
    tasks = load_tasks(ROOT / "tasks/arithmetic.jsonl")
    board: Any = json.loads(json.dumps(run_leaderboard(tasks, ToyAdapter()).to_json(per_example=True)))
    assert [] == faults("leaderboard", board)
    target = board
    for step in place:
        target = target[step]
    target.update(value)
    assert [] != faults("leaderboard", board)


@each_row(
    "line",
    [
        {},
        {"header": {}},
        {"footer": {"complete": True}},
        {"header": {"schema": "pytest-lmeval/ledger/1", "timestamp": "", "manifest": {}}, "id": "a"},
        {"id": "a", "output": "b"},
        [],
    ],
)
def test_what_is_no_ledger_line_does_not_fit(line: Any) -> None:
    assert faults("ledger", line)
