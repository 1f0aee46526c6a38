"""How a row is put to the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.models.base import Block, Template, TemplateText


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
