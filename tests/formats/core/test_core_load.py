"""``core.yaml`` to tasks, one by one; what is wrong with one is named by its place and leaves the others alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.core import CoreTask, load_core
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.registry import Registry

from .bundle import CHOICES, LANGUAGE, SCHEMAS, entry, load_bundle, only_task, write_bundle

THREE = [entry("bees"), entry("cups", "schema", num_fewshot=[1]), entry("facts", "language_modeling")]
DATA = {"bees": CHOICES, "cups": SCHEMAS, "facts": LANGUAGE}


def faults(loaded: LoadedFile) -> list[str]:
    return [error.at("core.yaml") for error in loaded.errors]


def with_bees(folder: Path, records: Any = CHOICES, **fields: Any) -> LoadedFile:
    """Return what is loaded of a sound task and of one with ``fields`` and ``records``."""
    entries = [entry("facts", "language_modeling"), entry("bees") | fields]
    return load_bundle(write_bundle(folder, entries, {"facts": LANGUAGE, "bees": records}))


def test_every_entry_is_a_task_of_the_file(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE, DATA)
    loaded = load_bundle(path)
    assert [] == faults(loaded)
    tasks = [task for task in loaded.tasks if isinstance(task, CoreTask)]
    shown = [(task.name, task.kind, task.random_baseline, len(task.examples)) for task in tasks]
    expected = [("bees", "multiple_choice", 0.25, 4), ("cups", "schema", 0.25, 2)]
    assert [*expected, ("facts", "language_modeling", 0.25, 3)] == shown
    assert {(path, "accuracy", "loglikelihood")} == {(task.path, task.metric, task.needs) for task in tasks}
    assert 3 == len({task.sha256 for task in tasks})


def test_an_example_is_its_record(tmp_path: Path) -> None:
    task = only_task(load_bundle(write_bundle(tmp_path, THREE[:1], DATA)))
    first, second = task.examples[:2]
    assert ("ex-1", "Bees make", ("honey",), "") == (first.id, first.prompt, first.targets, first.category)
    assert ("ex-2", ("wool",), 1) == (second.id, second.targets, second.metadata["gold"])


def test_the_plain_values_of_any_parser_will_do(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    source = TaskSource(path, path.read_bytes(), "core")
    assert "bees" == only_task(load_core(source, {"icl_tasks": THREE[:1]}, Registry())).name


def test_data_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    (tmp_path / "eval_data").mkdir()
    (tmp_path / "bees.jsonl").rename(tmp_path / "eval_data" / "bees.jsonl")
    assert 4 == len(only_task(load_bundle(path)).examples)


def test_categories_are_subjects_where_the_entry_says_so(tmp_path: Path) -> None:
    entries = [entry("facts", "language_modeling", has_categories=True)]
    path = write_bundle(tmp_path, entries, DATA)
    assert ["animals", "plays", "animals"] == [one.category for one in only_task(load_bundle(path)).examples]
    chosen = only_task(load_bundle(path, subjects=("animals",)))
    assert ["ex-1", "ex-3"] == [one.id for one in chosen.examples]
    assert () == load_bundle(path, subjects=("sports",)).tasks


def test_few_shots_do_not_depend_on_what_else_is_run(tmp_path: Path) -> None:
    entries = [entry("facts", "language_modeling", has_categories=True, num_fewshot=2)]
    path = write_bundle(tmp_path, entries, DATA)
    whole, part = only_task(load_bundle(path)), only_task(load_bundle(path, subjects=("animals",)))
    assert [one.prompt for one in whole.examples][::2] == [one.prompt for one in part.examples]
    assert 4 == part.examples[0].prompt.count("\n")
    assert "What do bees" in part.examples[0].prompt.rpartition("\n\n")[2]


def test_the_number_of_few_shots_can_be_overruled(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    assert [0, 2] == [
        only_task(load_bundle(path, num_fewshot=count)).examples[0].prompt.count("\n\n") for count in (0, 2)
    ]


def test_the_hash_tells_data_settings_and_baseline(tmp_path: Path) -> None:
    seen = set()
    plain: dict[str, Any] = {}
    for number, (fields, records, percent) in enumerate(
        [(plain, CHOICES, 25), ({"num_fewshot": 1}, CHOICES, 25), (plain, CHOICES[:2], 25), (plain, CHOICES, 30)]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        csv = f"Eval Task,Random baseline\nbees,{percent}\n"
        seen.add(only_task(load_bundle(write_bundle(folder, [entry("bees") | fields], {"bees": records}, csv))).sha256)
    assert 4 == len(seen)


# What is wrong is named by file, line or label, and field


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"icl_task_type": "multiple_choise"}, ["bad_value bees.icl_task_type", "did you mean 'multiple_choice'?"]),
        ({"num_fewshots": 1}, ["unknown_field bees.num_fewshots", "did you mean 'num_fewshot'?"]),
        ({"num_fewshot": [0, 5]}, ["bad_value bees.num_fewshot", "a list of 2"]),
        ({"num_fewshot": -1}, ["bad_value bees.num_fewshot", "got -1"]),
        ({"num_fewshot": "1"}, ["bad_type bees.num_fewshot", "got a string"]),
        ({"num_fewshot": 4}, ["bad_value bees.num_fewshot", "4; bees.jsonl has 3 other record(s) to draw from"]),
        ({"dataset_uri": "bees.json"}, ["bad_value bees.dataset_uri", "bees.json: no such file", "eval_data"]),
        ({"dataset_uri": "hf://org/bees"}, ["bad_value bees.dataset_uri", "expected a local file"]),
        ({"dataset_uri": ""}, ["bad_type bees.dataset_uri"]),
        ({"continuation_delimiter": 1}, ["bad_type bees.continuation_delimiter"]),
        ({"has_categories": "yes"}, ["bad_type bees.has_categories", "got a string"]),
        ({"has_categories": True}, ["missing_required bees.category", "bees.jsonl:1:"]),
        ({"label": "facts"}, ["bad_value facts.label", "'facts' is already on line 2"]),
        ({"label": "=cmd"}, ["bad_value =cmd.label"]),
        ({"label": 5}, ["bad_type icl_tasks.label"]),
    ],
)
def test_an_entry_with_a_fault_is_named_and_leaves_the_others_alone(
    tmp_path: Path, fields: dict[str, Any], named: list[str]
) -> None:
    loaded = with_bees(tmp_path, **fields)
    first, *_ = faults(loaded)
    assert first.startswith("core.yaml:3: ")
    assert [] == [part for part in named if part not in first], first
    assert ["facts"] == [task.name for task in loaded.tasks]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"gold": 3}, "bad_value bees.gold: bees.jsonl:2: 3; expected 0 to 1"),
        ({"gold": -1}, "bad_value bees.gold: bees.jsonl:2: -1; expected 0 to 1"),
        ({"gold": True}, "bad_type bees.gold: bees.jsonl:2: expected the number of the right option, 0 to 1"),
        ({"choices": ["honey"]}, "bad_value bees.choices: bees.jsonl:2: expected two options or more, got one"),
        ({"choices": []}, "bad_type bees.choices: bees.jsonl:2: "),
        ({"choices": "honey"}, "bad_type bees.choices: bees.jsonl:2: "),
        ({"query": None}, "bad_type bees.query: bees.jsonl:2: expected a string, got null"),
    ],
)
def test_a_bad_record_is_named_and_the_others_stay(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    loaded = with_bees(tmp_path, [CHOICES[0], CHOICES[1] | change, CHOICES[2]])
    (fault,) = faults(loaded)
    assert fault.startswith(f"core.yaml:3: {named}")
    facts, bees = loaded.tasks
    assert (3, ["ex-1", "ex-3"]) == (len(facts.examples), [one.id for one in bees.examples])


@pytest.mark.parametrize("kind", ["schema", "language_modeling"])
def test_data_of_another_type_names_the_field_that_is_missing(tmp_path: Path, kind: str) -> None:
    loaded = with_bees(tmp_path, icl_task_type=kind)
    missing = {"schema": "context_options", "language_modeling": "context"}[kind]
    expected = f"missing_required bees.{missing}: bees.jsonl:1: required; the record has query, choices, gold"
    assert expected in faults(loaded)[0]
    assert "bees.jsonl has no record that can be used" in faults(loaded)[-1]


def test_an_option_without_any_text_is_refused(tmp_path: Path) -> None:
    records = [CHOICES[0] | {"choices": ["", "a", "b"]}, CHOICES[1]]
    (fault,) = faults(with_bees(tmp_path, records, continuation_delimiter=""))
    assert "bees.continuation_delimiter: bees.jsonl:1: an option has no text" in fault


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    with (tmp_path / "bees.jsonl").open("a") as file:
        file.write("{oops\n")
    assert "bad_json bees._line: bees.jsonl:5: " in faults(load_bundle(path))[0]


@pytest.mark.parametrize(
    ("csv", "named"),
    [
        ("", "missing_required random_baseline: no CSV file beside it with the columns 'Eval Task'"),
        ("Task,Baseline\nbees,25\n", "missing_required random_baseline: no CSV file"),
        ("Eval Task,Random baseline\nbeess,25\n", "bees.label: 'bees' has no line in eval_meta_data.csv; did you mean"),
        ("Eval Task,Random baseline\nbees,many\n", "bees.label: eval_meta_data.csv:2: Random baseline is 'many'"),
        ("Eval Task,Random baseline\nbees,100\n", "bees.label: eval_meta_data.csv:2: Random baseline is '100'"),
        ("Eval Task,Random baseline\nbees,nan\n", "bees.label: eval_meta_data.csv:2: Random baseline is 'nan'"),
        ("Eval Task,Random baseline\nbees\n", "random_baseline: eval_meta_data.csv:2: 1 cells; expected 2"),
    ],
)
def test_a_baseline_that_is_not_told_is_named(tmp_path: Path, csv: str, named: str) -> None:
    loaded = load_bundle(write_bundle(tmp_path, THREE[:1], DATA, csv))
    assert named in faults(loaded)[0]
    assert () == loaded.tasks


def test_baselines_may_have_any_name_where_there_is_one_file(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    (tmp_path / "eval_meta_data.csv").rename(tmp_path / "chance.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert 0.25 == only_task(load_bundle(path)).random_baseline
    (tmp_path / "other.csv").write_text("Eval Task,Random baseline\nbees,50\n")
    assert "chance.csv, other.csv all have baselines" in faults(load_bundle(path))[0]


@pytest.mark.parametrize("entries", [[], {}, None, "bees", [5]])
def test_what_is_no_list_of_tasks_is_refused(tmp_path: Path, entries: Any) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    loaded = load_core(TaskSource(path, b"", "core"), {"icl_tasks": entries}, Registry())
    assert () == loaded.tasks
    assert ["bad_type"] == [error.rule for error in loaded.errors]


def test_a_key_beside_the_tasks_is_refused(tmp_path: Path) -> None:
    path = write_bundle(tmp_path, THREE[:1], DATA)
    loaded = load_core(TaskSource(path, b"", "core"), {"icl_tasks": THREE[:1], "model": "x"}, Registry())
    assert ["unknown_field"] == [error.rule for error in loaded.errors]
