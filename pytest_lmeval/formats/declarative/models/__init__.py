"""The shape of a declarative task, as pydantic models: what is read is checked by them, and their schema ships."""

from __future__ import annotations

from pytest_lmeval.formats.declarative.models.base import FAULTS, ReadContext
from pytest_lmeval.formats.declarative.models.dataset import DatasetFile
from pytest_lmeval.formats.declarative.models.task import DeclarativeFile

__all__ = ["FAULTS", "DatasetFile", "DeclarativeFile", "ReadContext"]
