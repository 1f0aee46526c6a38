"""A whole task file, how it puts a row to the model, and the file of a data set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.declarative.actions import Action
from pytest_lmeval.formats.declarative.models.base import FAULTS, Block, Data, Key, Template, TemplateText
from pytest_lmeval.formats.declarative.models.parameters import Parameter
from pytest_lmeval.formats.declarative.models.scorers import Scorer
from pytest_lmeval.formats.tools import check_arguments, check_choice, tools_of
from pytest_lmeval.formats.turning import MAX_ROUNDS


class InputMessage(Block):
    """One message of the conversation that the model is shown."""

    role: Literal["system", "user", "assistant"] = Field(description="Who says it.")
    content: TemplateText = Template(description="What is said, filled for every row.")


class ChatInput(Block):
    """A conversation."""

    type: Literal["chat_completion"] = Field(description="Messages.")
    input_messages: list[InputMessage] = Field(min_length=1, description="The messages, in order.")


class GenericInput(Block):
    """A JSON document, for models that take something of their own."""

    type: Literal["generic"] = Field(description="JSON, written by a template.")
    template: TemplateText = Template(description="JSON, filled for every row; write values as {{ x | tojson }}.")


class PythonPostprocessor(Block):
    """A Python function between the model's output and the scorers."""

    type: Literal["python"] = Field(description="A Python function.")
    postprocess_snippet: str = Field(
        min_length=1, description="Python with a function postprocess(sample, solver_output)."
    )
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class SingleTurnSolver(Block):
    """One request, one answer."""

    type: Literal["single_turn_solver"] = Field(description="One request, one answer.")
    input_builder: Annotated[ChatInput | GenericInput, Field(discriminator="type")] = Field(
        description="What the model is asked."
    )
    postprocessor: PythonPostprocessor | None = Field(default=None, description="What is done with the answer first.")
    max_tokens: int | None = Field(default=None, ge=1, description="The longest answer, in tokens.")
    stop: list[str] = Field(default_factory=list, description="Texts that end the answer.")


class UserTurn(Block):
    """What the user says next."""

    user: TemplateText = Template(min_length=1, description="What the user says, filled for every row.")


class ToolResponse(Block):
    """What a tool answers to a call."""

    arguments: dict[str, Any] | None = Data(default=None, description="The arguments it answers to; any without them.")
    response: Any = Data(description="The answer: text, or JSON.")


class PythonResponses(Block):
    """A Python function that answers for a tool."""

    type: Literal["python"] = Field(description="A Python function.")
    respond_snippet: str = Field(min_length=1, description="Python with a function respond(arguments).")
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds after which the row is an error.")


class SolverTool(Block):
    """A function that the model may call."""

    name: str = Field(min_length=1, description="What the model calls it.")
    description: str = Field(default="", description="What it is for; the model reads it.")
    parameters: dict[str, Any] = Data(default_factory=dict, description="The JSON Schema of its arguments.")
    responses: list[ToolResponse] | PythonResponses | None = Field(
        default=None, description="What it answers: the first response whose arguments are those of the call."
    )

    def function(self) -> dict[str, Any]:
        """Return the tool as it is described to the model."""
        shown = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {name: value for name, value in shown.items() if value}


class SimulatedUser(Block):
    """A user whom a further model plays, from --lm-user or the judge's."""

    persona: TemplateText = Template(min_length=1, description="Who the user is, filled for every row.")
    goal: TemplateText = Template(default="", description="What the user wants, filled for every row.")
    max_turns: int = Field(default=8, ge=1, le=100, description="How many messages the user may say.")


class MultiTurnSolver(Block):
    """A conversation: what the user says is fixed, or said by a model; what the model says in between is its own."""

    type: Literal["multi_turn_solver"] = Field(description="Several requests, with the answers in between.")
    system: TemplateText = Template(default="", description="The system message, filled for every row.")
    turns: list[UserTurn] = Field(default_factory=list, min_length=1, description="What the user says, turn by turn.")
    user: SimulatedUser | None = Field(default=None, description="Who says it, where that is not fixed by turns.")
    tools: list[SolverTool] = Field(default_factory=list, description="What the model may call.")
    tool_choice: str = Field(default="auto", description="auto, none, required, or the name of the tool to call.")
    max_rounds: int = Field(
        default=MAX_ROUNDS, ge=1, le=100, description="How often the model is asked again in a turn, after its calls."
    )
    postprocessor: PythonPostprocessor | None = Field(default=None, description="What is done with the answer first.")
    max_tokens: int | None = Field(default=None, ge=1, description="The longest answer, in tokens.")
    stop: list[str] = Field(default_factory=list, description="Texts that end an answer.")

    @field_validator("tools")
    @classmethod
    def _are_tools(cls, value: list[SolverTool], info: ValidationInfo) -> list[SolverTool]:
        # Before parameters are put in, a placeholder may represent a value of another type.
        if value and info.context is not None:
            _refused(lambda: tools_of([tool.function() for tool in value], "tools"))
            for number, tool in enumerate(value):
                _refused(partial(_check_responses, tool, f"tools[{number}].responses"))
        return value

    @model_validator(mode="after")
    def _has_one_user(self, info: ValidationInfo) -> MultiTurnSolver:
        if bool(self.turns) == (self.user is not None) and info.context is not None:
            detail = "expected turns, what the user says, or user, who says it; not both"
            raise PydanticCustomError(FAULTS, "faults of fields", {"faults": [["turns", "missing_required", detail]]})
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
        detail = f"{refused.field}: {refused.detail}"
        raise PydanticCustomError(FAULTS, "faults of fields", {"faults": [["", refused.rule, detail]]}) from None


AnySolver = Annotated[SingleTurnSolver | MultiTurnSolver, Field(discriminator="type")]


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
