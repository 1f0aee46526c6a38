"""The substitute of ``datasets``: a type, and ways to change rows."""

from __future__ import annotations

from typing import Any, NoReturn

from pytest_lmeval.formats.harness.dataset import RowSet

__all__ = ["Dataset", "DatasetDict"]

Dataset = RowSet
DatasetDict = dict


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"datasets.{name} is not available to functions of task files; Dataset and DatasetDict are")


def concatenate_datasets(parts: list[Any], **_: Any) -> RowSet:
    """Return the rows of all parts, one after another."""
    return RowSet([row for part in parts for row in part])
