"""The file of parameter values: one mapping, or one for each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.configs import read_configs


def _read(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return read_configs(path)


def test_a_mapping_is_one_config_without_a_name(tmp_path: Path) -> None:
    assert ({"name": "", "values": {"a": 1, "b": ["x"]}, "tasks": {}},) == _read(tmp_path, "a: 1\nb: [x]")


def test_a_list_is_one_config_each_named_or_numbered(tmp_path: Path) -> None:
    first, second = _read(tmp_path, "- {name: warm, t: 0.7}\n- t: 0\n  tasks: {sums: {t: 1}}")
    assert {"name": "warm", "values": {"t": 0.7}, "tasks": {}} == first
    assert {"name": "2", "values": {"t": 0}, "tasks": {"sums": {"t": 1}}} == second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", r"config.yaml:2: column 1: the key 'a' is already on line 1"),
        ("[]", r"an empty list"),
        ("- 1", r"config 1: expected a mapping"),
        ("- {name: a}\n- {name: a}", r"two configs are called 'a'"),
        ("name: 'a b'", r"name: expected text of letters"),
        ("name: [a]", r"name: expected text of letters"),
        ("tasks: [a]", r"tasks: expected a mapping from the key of a task"),
        ("tasks: {a: 1}", r"tasks: expected a mapping from the key of a task"),
        ("a: !include x.py", r"nothing can be included here"),
    ],
)
def test_a_file_of_another_shape_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _read(tmp_path, text)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_configs(tmp_path / "none.yaml")
