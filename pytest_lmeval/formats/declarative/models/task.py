"""A whole task file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.models.actions import Action
from pytest_lmeval.formats.declarative.models.base import Block, Key
from pytest_lmeval.formats.declarative.models.dataset import DatasetReference
from pytest_lmeval.formats.declarative.models.parameters import Parameter
from pytest_lmeval.formats.declarative.models.scorers import Scorer
from pytest_lmeval.formats.declarative.models.solver import AnySolver

EntityType = Literal["model", "dataset"]


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
