"""Format a conversation as plain text for models without roles.

If the last message is the assistant's, the text has no end marker after it, so that the model continues the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import AdapterError

if TYPE_CHECKING:
    from pytest_lmeval.types import Message

__all__ = ["FORMATTERS", "Formatter", "chatml", "concatenation", "from_tokenizer", "joined", "llama3", "opening"]

Formatter = Callable[[Sequence["Message"]], str]


def concatenation(messages: Sequence[Message]) -> str:
    r"""Join the contents without roles: start an answer on the next line, and any other message after a blank line.

    >>> from pytest_lmeval.types import Message
    >>> talk = [Message("user", "2 + 2?"), Message("assistant", "4"), Message("user", "3 + 3?")]
    >>> concatenation(talk)
    '2 + 2?\n4\n\n3 + 3?'
    """
    text = ""
    before = ""
    for message in messages:
        joint = "" if not text else "\n" if (before, message.role) == ("user", "assistant") else "\n\n"
        text += joint + message.content
        before = message.role
    return text


def opening(messages: Sequence[Message]) -> str:
    """Return the concatenation, followed by a line feed unless the last message is the assistant's."""
    text = concatenation(messages)
    return text if not messages or messages[-1].role == "assistant" else f"{text}\n"


def joined(messages: Sequence[Message]) -> str:
    """Join the contents as eval-framework's ``ConcatFormatter`` does: each answer directly follows its question.

    The function adds a blank line after each system message and each answer, and strips the last message's content.
    """
    *before, last = messages
    text = "".join(message.content + ("" if message.role == "user" else "\n\n") for message in before)
    return text + last.content.strip()


def chatml(messages: Sequence[Message]) -> str:
    """Return the conversation in ChatML, the format of OpenAI's first chat models, ready for the assistant's reply."""
    turns = [f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in messages]
    return _left_open(turns, messages, end="<|im_end|>\n", cue="<|im_start|>assistant\n")


def llama3(messages: Sequence[Message]) -> str:
    """Return the conversation in Llama 3's chat format, with the BOS token, ready for the assistant's reply."""
    turns = [_llama3_header(message.role) + message.content.strip() + "<|eot_id|>" for message in messages]
    return "<|begin_of_text|>" + _left_open(turns, messages, end="<|eot_id|>", cue=_llama3_header("assistant"))


def from_tokenizer(tokenizer: Any) -> Formatter:
    """Return a formatter that applies the tokenizer's chat template.

    The formatter raises an AdapterError that lists the roles if the template rejects a conversation, for example
    because of a system message.
    """

    def formatter(messages: Sequence[Message]) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        unfinished = bool(turns) and turns[-1]["role"] == "assistant"
        try:
            return str(
                tokenizer.apply_chat_template(
                    turns, tokenize=False, add_generation_prompt=not unfinished, continue_final_message=unfinished
                )
            )
        except Exception as error:
            roles = ", ".join(turn["role"] for turn in turns)
            raise AdapterError(f"the chat template refuses a conversation of {roles}: {error}") from error

    return formatter


FORMATTERS: Mapping[str, Formatter] = MappingProxyType(
    {"concatenation": concatenation, "chatml": chatml, "llama3": llama3}
)
"""The formatters that need no tokenizer, by name."""


def _left_open(turns: Sequence[str], messages: Sequence[Message], *, end: str, cue: str) -> str:
    text = "".join(turns)
    if messages and messages[-1].role == "assistant":
        return text.removesuffix(end)
    return text + cue


def _llama3_header(role: str) -> str:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"
