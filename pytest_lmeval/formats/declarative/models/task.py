"""Models of a task file, its solvers, and a data set file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.declarative.actions import Action
from pytest_lmeval.formats.declarative.models.base import (
    Block,
    Content,
    Data,
    FilledContent,
    Key,
    Template,
    TemplateText,
    field_error,
)
from pytest_lmeval.formats.declarative.models.parameters import Parameter
from pytest_lmeval.formats.declarative.models.scorers import Scorer
from pytest_lmeval.formats.tools import check_arguments, check_choice, tools_of
from pytest_lmeval.formats.turning import MAX_ROUNDS


class InputMessage(Block):
    """One message of the conversation in the prompt."""

    role: Literal["system", "user", "assistant"] = Field(description="The role of its author.")
    content: Content = Template(description="Its text, or a list of texts and media, filled for every row.")


class ChatInput(Block):
    """A conversation."""

    type: Literal["chat_completion"] = Field(description="Messages.")
    input_messages: list[InputMessage] = Field(min_length=1, description="The messages, in order.")


class GenericInput(Block):
    """A JSON document, for models with their own input format."""

    type: Literal["generic"] = Field(description="JSON, written by a template.")
    template: TemplateText = Template(description="JSON, filled for every row; write values as {{ x | tojson }}.")


class PythonPostprocessor(Block):
    """A Python function that processes the model's output before the scorers."""

    type: Literal["python"] = Field(description="A Python function.")
    postprocess_snippet: str = Field(
        min_length=1, description="Python with a function postprocess(sample, solver_output)."
    )
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class SingleTurnSolver(Block):
    """One request, one answer."""

    type: Literal["single_turn_solver"] = Field(description="One request, one answer.")
    input_builder: Annotated[ChatInput | GenericInput, Field(discriminator="type")] = Field(
        description="The prompt of the model."
    )
    postprocessor: PythonPostprocessor | None = Field(default=None, description="Processes the answer before scoring.")
    max_tokens: int | None = Field(default=None, ge=1, description="The longest answer, in tokens.")
    stop: list[str] = Field(default_factory=list, description="Texts that end the answer.")


class UserTurn(Block):
    """The user's next message."""

    user: FilledContent = Template(description="The user's message: a text, or a list of texts and media.")


class ToolResponse(Block):
    """A tool's answer to a call."""

    arguments: dict[str, Any] | None = Data(
        default=None, description="The arguments to which it answers; any by default."
    )
    response: Any = Data(description="The answer: text, or JSON.")


class PythonResponses(Block):
    """A Python function that answers calls to a tool."""

    type: Literal["python"] = Field(description="A Python function.")
    respond_snippet: str = Field(min_length=1, description="Python with a function respond(arguments).")
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class SolverTool(Block):
    """A function that the model may call."""

    name: str = Field(min_length=1, description="Its name for the model.")
    description: str = Field(default="", description="Its purpose; the model reads it.")
    parameters: dict[str, Any] = Data(default_factory=dict, description="The JSON Schema of its arguments.")
    responses: list[ToolResponse] | PythonResponses | None = Field(
        default=None, description="Its answers: the first response whose arguments are those of the call."
    )

    def function(self) -> dict[str, Any]:
        """Return the tool's description for the model."""
        shown = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {name: value for name, value in shown.items() if value}


class SimulatedUser(Block):
    """A user that another model plays: the model that --lm-user names, or else the judge."""

    persona: TemplateText = Template(min_length=1, description="The user's character, filled for every row.")
    goal: TemplateText = Template(default="", description="The user's goal, filled for every row.")
    max_turns: int = Field(default=8, ge=1, le=100, description="The most messages of the user.")


class MultiTurnSolver(Block):
    """A conversation in which the user's messages are fixed, or written by a model that plays the user."""

    type: Literal["multi_turn_solver"] = Field(description="Several requests, with the answers in between.")
    system: TemplateText = Template(default="", description="The system message, filled for every row.")
    turns: list[UserTurn] = Field(default_factory=list, min_length=1, description="The user's messages, in order.")
    user: SimulatedUser | None = Field(default=None, description="A simulated user, instead of turns.")
    tools: list[SolverTool] = Field(default_factory=list, description="The tools that the model may call.")
    tool_choice: str = Field(default="auto", description="auto, none, required, or the name of the tool to call.")
    max_rounds: int = Field(
        default=MAX_ROUNDS, ge=1, le=100, description="The most further requests in a turn after calls of the model."
    )
    postprocessor: PythonPostprocessor | None = Field(default=None, description="Processes the answer before scoring.")
    max_tokens: int | None = Field(default=None, ge=1, description="The longest answer, in tokens.")
    stop: list[str] = Field(default_factory=list, description="Texts that end an answer.")

    @field_validator("tools")
    @classmethod
    def _are_tools(cls, value: list[SolverTool], info: ValidationInfo) -> list[SolverTool]:
        # Without a context, parameters are not filled in yet, and a placeholder may represent a value of any type.
        if value and info.context is not None:
            _refused(lambda: tools_of([tool.function() for tool in value], "tools"))
            for number, tool in enumerate(value):
                _refused(partial(_check_responses, tool, f"tools[{number}].responses"))
        return value

    @model_validator(mode="after")
    def _has_one_user(self, info: ValidationInfo) -> MultiTurnSolver:
        if bool(self.turns) == (self.user is not None) and info.context is not None:
            raise field_error("missing_required", "expected either turns or user, a simulated one", "turns")
        return self

    @field_validator("tool_choice")
    @classmethod
    def _is_choice(cls, value: str, info: ValidationInfo) -> str:
        if info.context is not None:
            tools = [tool.function() for tool in info.data.get("tools", ())]
            _refused(lambda: check_choice({"tool_choice": value}, "solver", tools))
        return value


def _check_responses(tool: SolverTool, field: str) -> None:
    for number, entry in enumerate(tool.responses if isinstance(tool.responses, list) else ()):
        check_arguments(entry.arguments or {}, f"{field}[{number}]", tool.function())


def _refused(check: Callable[[], Any]) -> None:
    try:
        check()
    except RecordRefused as refused:
        raise field_error(refused.rule, f"{refused.field}: {refused.detail}") from None


AnySolver = Annotated[SingleTurnSolver | MultiTurnSolver, Field(discriminator="type")]


EntityType = Literal["model", "dataset"]


class DatasetReference(Block):
    """A task's data set, identified by its key or its file."""

    key: str | None = Field(
        default=None, min_length=1, description="The key of a data set, described by a YAML file beside the task."
    )
    path: str | None = Field(
        default=None, min_length=1, description="A csv, jsonl or parquet file, relative to the task's."
    )
    id_column: str | None = Field(
        default=None, description="The column with the id of each row; by default 'id', or else the row's number."
    )
    category_column: str | None = Field(default=None, description="The column whose values group the results.")
    fast_subset_size: int | str | None = Field(
        default=None, description="Ignored: --lm-limit sets the number of rows that run."
    )


class LocalSource(Block):
    """A local file with a data set's rows."""

    type: Literal["local"] = Field(description="The only kind: a local file.")
    file_path: str = Field(min_length=1, description="A csv, jsonl or parquet file, relative to this one.")


class DatasetFile(Block):
    """A data set: a file of rows, and its description."""

    key: Key = Field(description="The key by which tasks refer to it.")
    display_name: str = Field(default="", description="Its display name.")
    description: str = Field(default="", description="Its content.")
    long_description: str = Field(default="", description="A longer description, in Markdown.")
    tags: list[str] = Field(default_factory=list, description="Words to find it by.")
    file_path: str | None = Field(
        default=None, min_length=1, description="A csv, jsonl or parquet file, relative to this one."
    )
    source: LocalSource | None = Field(default=None, description="The same, as an object.")
    id_column: str | None = Field(
        default=None, description="The column with the id of each row; by default 'id', or else the row's number."
    )
    category_column: str | None = Field(default=None, description="The column whose values group the results.")


class Definition(Block):
    """A task's parts."""

    type: Literal["declarative_task"] | None = Field(default=None, description="The only kind.")
    evaluated_entity_type: EntityType | None = Field(
        default=None, description="The object of evaluation: a model or a data set."
    )
    dataset: DatasetReference = Field(description="The source of the rows.")
    solver: AnySolver | None = Field(default=None, description="Makes the prompts of the rows.")
    scorers: list[Scorer] = Field(min_length=1, description="Score the answers.")
    actions: list[Action] = Field(default_factory=list, description="Rules that exclude rows.")


class DeclarativeFile(Block):
    """A task."""

    key: Key = Field(description="The name of the task in configs and commands.")
    display_name: str = Field(description="Its display name.")
    description: str = Field(default="", description="The ability it measures.")
    long_description: str = Field(default="", description="A longer description, in Markdown.")
    tags: list[str] = Field(default_factory=list, description="Words for -k.")
    tasks: list[str] = Field(default_factory=list, description="Ignored: kinds of models.")
    evaluated_entity_type: EntityType | None = Field(
        default=None, description="The object of evaluation: a model or a data set."
    )
    config_spec: list[Parameter] = Field(default_factory=list, description="The parameters of the task.")
    definition: Definition = Field(description="The parts of the task.")

    @property
    def entity(self) -> EntityType:
        """The object of evaluation: a model or a data set."""
        return self.definition.evaluated_entity_type or self.evaluated_entity_type or "model"
