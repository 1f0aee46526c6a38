"""A whole task file, and the file of a data set."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.actions import Action
from pytest_lmeval.formats.declarative.models.base import Block, Key
from pytest_lmeval.formats.declarative.models.parameters import Parameter
from pytest_lmeval.formats.declarative.models.scorers import Scorer
from pytest_lmeval.formats.declarative.models.solver import AnySolver

EntityType = Literal["model", "dataset"]


class DatasetReference(Block):
    """The data set of a task: by its key, or the file itself."""

    key: str | None = Field(
        default=None, min_length=1, description="The key of a data set: of a YAML file beside the task."
    )
    path: str | None = Field(
        default=None, min_length=1, description="A csv, jsonl or parquet file, relative to the task's."
    )
    id_column: str | None = Field(
        default=None, description="The column with the id of each row; else 'id', else its number."
    )
    category_column: str | None = Field(default=None, description="The column that the results are broken down by.")
    fast_subset_size: int | str | None = Field(
        default=None, description="Read, and without effect: --lm-limit chooses how many rows run."
    )


class LocalSource(Block):
    """A file beside the data set's own."""

    type: Literal["local"] = Field(description="The only kind there is: a local file.")
    file_path: str = Field(min_length=1, description="A csv, jsonl or parquet file, relative to this one.")


class DatasetFile(Block):
    """A data set: a file of rows, and what they are."""

    key: Key = Field(description="What tasks call the data set.")
    display_name: str = Field(default="", description="What people call it.")
    description: str = Field(default="", description="What is in it.")
    long_description: str = Field(default="", description="More of that, in Markdown.")
    tags: list[str] = Field(default_factory=list, description="Words to find it by.")
    file_path: str | None = Field(
        default=None, min_length=1, description="A csv, jsonl or parquet file, relative to this one."
    )
    source: LocalSource | None = Field(default=None, description="The same, as an object.")
    id_column: str | None = Field(
        default=None, description="The column with the id of each row; else 'id', else its number."
    )
    category_column: str | None = Field(default=None, description="The column that results are broken down by.")


class Definition(Block):
    """What a task does."""

    type: Literal["declarative_task"] | None = Field(default=None, description="The only kind there is.")
    evaluated_entity_type: EntityType | None = Field(
        default=None, description="What is evaluated: a model or a data set."
    )
    dataset: DatasetReference = Field(description="Where the rows come from.")
    solver: AnySolver | None = Field(default=None, description="How a row is put to the model.")
    scorers: list[Scorer] = Field(min_length=1, description="What the answers are worth.")
    actions: list[Action] = Field(default_factory=list, description="Which rows are left out.")


class DeclarativeFile(Block):
    """A task."""

    key: Key = Field(description="What configs and commands call the task.")
    display_name: str = Field(description="What people call it.")
    description: str = Field(default="", description="What it measures.")
    long_description: str = Field(default="", description="More of that, in Markdown.")
    tags: list[str] = Field(default_factory=list, description="Words for -k.")
    tasks: list[str] = Field(default_factory=list, description="Read, and of no effect: kinds of models.")
    evaluated_entity_type: EntityType | None = Field(
        default=None, description="What is evaluated: a model or a data set."
    )
    config_spec: list[Parameter] = Field(default_factory=list, description="The parameters of the task.")
    definition: Definition = Field(description="What the task does.")

    @property
    def entity(self) -> EntityType:
        """What is evaluated."""
        return self.definition.evaluated_entity_type or self.evaluated_entity_type or "model"
