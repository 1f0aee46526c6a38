"""Parameters: their values, where they come from, and what is said of those that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.declarative.task import DeclarativeTask
from tests.formats.declarative.making import EQUALS, document, faults, read, score

CHOICE = {"type": "categorical", "key": "which", "allowed_values": ["a", "human"]}


def _config(name: str = "", tasks: Any = None, **values: Any) -> dict[str, Any]:
    return {"name": name, "values": values, "tasks": tasks or {}}


def _task(*parameters: dict[str, Any], truth: str = "{{ sample.<< config.which >> }}") -> dict[str, Any]:
    return document([{**EQUALS, "ground_truth": truth}], root={"config_spec": list(parameters)})


def test_a_task_runs_once_for_every_config_that_is_its_own(tmp_path: Path) -> None:
    task = _task(CHOICE)
    configs = (
        _config("first", which="a"),
        _config("", tasks={"small": {"which": "human"}}, which="b"),
        _config("other", tasks={"elsewhere": {"which": "a"}}, language="en"),
    )
    loaded = read(tmp_path, task, configs=configs)
    assert [("small@first", ("1",)), ("small", ("good",))] == [
        (task.name, task.examples[0].targets) for task in loaded.tasks
    ]
    assert 2 == len({task.sha256 for task in loaded.tasks})


def test_without_a_config_the_defaults_hold(tmp_path: Path) -> None:
    (task,) = read(tmp_path, _task({**CHOICE, "default": "human"}), configs=(_config("x", language="en"),)).tasks
    assert isinstance(task, DeclarativeTask)
    assert ("small", ("good",)) == (task.name, task.examples[0].targets)
    assert "passed" == score(task, "good", "bad")[0].status


def test_values_that_are_missing_are_listed(tmp_path: Path) -> None:
    task = _task(CHOICE, {"type": "int", "key": "n"}, {"type": "string", "key": "s", "nullable": True})
    assert [
        "missing_required config_spec: no value for which (a, human), n (int); give them with --lm-config FILE"
    ] == faults(tmp_path, task)
    assert ["missing_required config_spec: config x: no value for n (int); give them with --lm-config FILE"] == faults(
        tmp_path, task, configs=(_config("x", which="a"),)
    )


def test_what_else_is_wrong_shows_without_values(tmp_path: Path) -> None:
    found = faults(tmp_path, document([{"type": "f11"}], root={"config_spec": [CHOICE]}))
    assert ["missing_required config_spec", "bad_value definition.scorers[0].type"] == [
        fault.partition(":")[0] for fault in found
    ]


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        ({"type": "int"}, 1.5, "expected a whole number, got 1.5"),
        ({"type": "int"}, True, "expected a whole number, got True"),
        ({"type": "int", "min": 1, "max": 3}, 4, "expected at least 1 and at most 3, got 4"),
        ({"type": "float", "min": 0}, -0.5, "expected at least 0, got -0.5"),
        ({"type": "float"}, "1", "expected a number, got '1'"),
        ({"type": "boolean"}, "no", "expected true or false, got 'no'; only true and false are booleans"),
        ({"type": "string"}, 3, "expected text, got 3"),
        ({"type": "categorical", "allowed_values": ["first", "last"]}, "fist", "not one of first, last; did you mean"),
        ({"type": "list"}, "a", "expected a list of texts"),
        ({"type": "list"}, [[1]], "expected a list of texts"),
        ({"type": "dataset"}, "", "expected the key of a data set"),
        ({"type": "dataset_column"}, 1, "expected the name of a column"),
        ({"type": "dataset_column"}, "zz", "the data set has no column 'zz'; there is q, a, n, human"),
        ({"type": "model"}, None, "no value for x (model)"),
    ],
)
def test_a_value_that_does_not_fit_names_parameter_and_config(
    tmp_path: Path, parameter: dict[str, Any], value: Any, problem: str
) -> None:
    task = document(root={"config_spec": [{"key": "x", **parameter}]})
    (fault,) = faults(
        tmp_path, task, configs=(_config("cfg", x=value, y=1), _config("y")) if value else (_config(x=value),)
    )
    assert problem in fault
    assert "config_spec" in fault


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ([{"type": "intt", "key": "x"}], "config_spec[0].type: 'intt' is not one of int, float"),
        ([{"type": "int", "key": "a b"}], "config_spec[0].key: String should match pattern"),
        ([{"type": "int", "key": "x", "default": "1"}], "config_spec[0].default: expected a whole number, got '1'"),
        ([{"type": "int", "key": "x"}, {"type": "int", "key": "x"}], "config_spec[1].key: a second parameter 'x'"),
        ([{"type": "int", "key": "name"}], "config_spec[0].key: 'name' is reserved for configs"),
        (
            [{"type": "categorical", "key": "x"}],
            "config_spec[0].allowed_values: the field 'allowed_values' is required",
        ),
        (
            [{"type": "int", "key": "x", "nullable": "no"}],
            "config_spec[0].nullable: expected true or false; no is text",
        ),
        ("none", "config_spec: expected a list, got a string 'none'"),
    ],
)
def test_a_parameter_that_is_none_is_a_fault(tmp_path: Path, spec: Any, problem: str) -> None:
    (fault,) = faults(tmp_path, document(root={"config_spec": spec}))
    assert problem in fault


def test_a_value_for_no_parameter_of_the_task_is_told_of(tmp_path: Path) -> None:
    task = _task({**CHOICE, "default": "a"})
    (fault,) = faults(tmp_path, task, configs=(_config("c", tasks={"small": {"zzz": 1}}),))
    assert "config c: the task has no parameter 'zzz'; it has which" in fault


def test_a_parameter_that_stands_alone_keeps_its_type(tmp_path: Path) -> None:
    spec: list[dict[str, Any]] = [
        {"type": "int", "key": "most", "default": 7},
        {"type": "list", "key": "ends", "default": ["."]},
    ]
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "chat_completion",
            "input_messages": [{"role": "user", "content": "<< config.most >>"}],
        },
        "max_tokens": "<< config.most >>",
        "stop": "<< config.ends >>",
    }
    (task,) = read(tmp_path, document(root={"config_spec": spec}, solver=solver)).tasks
    (request,) = task.requests(task.examples[0], task.examples[0].messages)
    assert (7, (".",), "7") == (request.max_tokens, request.stop, request.text)  # type: ignore[union-attr]
    found = faults(
        tmp_path,
        document(root={"config_spec": [{**spec[1], "key": "most"}, {**spec[0], "key": "ends"}]}, solver=solver),
    )
    assert ["definition.solver.max_tokens", "definition.solver.stop"] == sorted(
        each.split()[1].rstrip(":") for each in found
    )
