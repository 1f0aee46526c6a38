"""A prompt of a data file that is a conversation: messages whose contents are templates over the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.templates.rows import RowTemplate
from pytest_lmeval.types import Message

_FIELDS = ("role", "content")
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """The roles of the messages, and a template for the content of each."""

    roles: Sequence[str]
    contents: Sequence[RowTemplate]

    @classmethod
    def of(cls, given: Sequence[Any], field: str) -> ChatPrompt:
        """Return the prompt of a list of messages; raise RecordRefused for the first thing wrong with it."""
        if not given:
            raise RecordRefused("bad_type", field, "expected a text or a list of messages, got an empty one")
        roles = [_role(message, f"{field}[{number}]") for number, message in enumerate(given)]
        if roles[-1] != "user" or "system" in roles[1:]:
            detail = "expected a system message at the front, if any, and one of the user at the end"
            raise RecordRefused("bad_value", field, f"{detail}, got {', '.join(roles)}")
        fields = [f"{field}[{number}].content" for number in range(len(given))]
        contents = [checks.string(message["content"], name) for message, name in zip(given, fields, strict=True)]
        return cls(roles, [RowTemplate.of(text, name) for text, name in zip(contents, fields, strict=True)])

    def messages(self, row: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the conversation for ``row``; raise RecordRefused as :meth:`RowTemplate.fill` does."""
        filled = zip(self.roles, self.contents, strict=True)
        return tuple(Message(role, content.fill(row)) for role, content in filled)


def _role(message: Any, field: str) -> str:
    if not isinstance(message, dict) or set(message) != set(_FIELDS):
        raise RecordRefused("bad_type", field, f"expected a mapping of role and content, got {message!r:.80}")
    return checks.one_of(message["role"], f"{field}.role", _ROLES)
