"""Where the rows of a task come from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.models.base import Block, Key


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
