"""Store unknown fields of messages and tool calls as JSON text.

The JSON text is an object with up to four parts. ``message`` holds fields of the message, and ``calls`` holds the
fields of each call, in order; adapters send both parts to the server. ``kept`` holds fields of an answer that only an
application's client receives. ``usage`` holds the server's details about tokens. In an answer's fields, null is a
placeholder for the answer's thoughts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.compact_json import compact_encoder

if TYPE_CHECKING:
    from pytest_lmeval.types import Message

CALLS, ALWAYS, NEVER = THOUGHTS_BACK = ("calls", "always", "never")
"""The choices of answers whose thoughts go back to the server: answers with tool calls, all answers, or none."""
AS_THOUGHTS = ("reasoning_content", "reasoning")
"""The answer fields that servers use for thoughts, most frequent first."""
BLOCKS = "thinking_blocks"
"""The field with the signed thoughts of Anthropic models."""
OF_MESSAGES = frozenset({f"messages[].{BLOCKS}", "messages[].tool_calls[].caller"})
"""The fields that exist in Anthropic's Messages interface."""
_OF_THOUGHTS = frozenset({*AS_THOUGHTS, BLOCKS, "reasoning_details"})
# A message's id differs in every run, and no server needs it.
_OF_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "id"})
_OF_CALL = frozenset({"id", "type", "function", "index"})
_OF_FUNCTION = frozenset({"name", "arguments"})
_BEGINNINGS = ('{"calls":', '{"kept":', '{"message":', '{"usage":')
Fields = dict[str, object]


class Extra(NamedTuple):
    """The parts of the text that :func:`packed` returns."""

    message: Fields
    calls: Sequence[Fields]
    kept: Fields
    usage: Fields

    @classmethod
    def of(cls, text: str) -> Extra:
        """Parse text from :func:`packed`; for "", return empty parts."""
        found = json.loads(text) if text else {}
        return cls(found.get("message", {}), found.get("calls", []), found.get("kept", {}), found.get("usage", {}))


def packed(
    message: Mapping[str, object],
    calls: Sequence[Mapping[str, object]] = (),
    kept: Fields | None = None,
    usage: Fields | None = None,
) -> str:
    """Return the parts as JSON text, or "" if all parts are empty."""
    parts = {"message": message, "calls": calls if any(calls) else (), "kept": kept, "usage": usage}
    found = {name: part for name, part in parts.items() if part}
    return _encode(found) if found else ""


def is_packed(value: object) -> bool:
    """Return True for text from :func:`packed`, in which redaction must mask only long secrets."""
    return isinstance(value, str) and value.startswith(_BEGINNINGS)


def checked(value: object) -> str:
    """Return ``value``, a mapping or its JSON text, as :func:`packed` writes it; raise ValueError for other values."""
    if not value:
        return ""
    try:
        found: Any = json.loads(value) if isinstance(value, str) else value
        calls = found.get("calls", [])
        parts = [part for name, part in found.items() if name != "calls"]
        within = [call.get("function", {}) for call in calls]
        if found.keys() <= {*Extra._fields} and all(isinstance(part, dict) for part in (*parts, *calls, *within)):
            return _encode(found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise ValueError(f"extra {value!r:.80}; expected an object with message, calls, kept or usage, or its JSON")


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose value is not None."""
    return {name: value for name, value in fields.items() if value is not None}


def unknown(fields: Mapping[str, object], known: Collection[str]) -> Fields:
    """Return the fields that are neither ``known`` nor empty."""
    return {name: value for name, value in fields.items() if name not in known and not _is_empty(value)}


def _is_empty(value: object) -> bool:
    return not value or (isinstance(value, dict) and all(map(_is_empty, value.values())))


def of_message(message: Mapping[str, object]) -> str:
    """Pack the unknown fields of a message from a chat interface."""
    return packed(unknown(message, _OF_MESSAGE), of_calls(message.get("tool_calls")))


def of_calls(calls: object) -> list[Fields]:
    """Return the unknown fields of each tool call of a message from a chat interface."""
    return [of_call(call) for call in calls] if isinstance(calls, list | tuple) else []


def of_call(call: object) -> Fields:
    """Return the unknown fields of a tool call and of its function."""
    if not isinstance(call, Mapping):
        return {}
    function = call.get("function")
    within = unknown(function, _OF_FUNCTION) if isinstance(function, Mapping) else {}
    return {**unknown(call, _OF_CALL), **({"function": within} if within else {})}


def of_answer(fields: Fields, calls: Sequence[Fields], usage: Fields, thoughts_back: str) -> str:
    """Pack an answer's unknown fields; ``thoughts_back`` and ``calls`` decide which fields go back to the server.

    They go back if the answer has calls, or if ``thoughts_back`` is ``always``. If it is ``never``, fields with
    thoughts do not go back.
    """
    goes_back = bool(calls) or thoughts_back == ALWAYS
    left = _OF_THOUGHTS if thoughts_back == NEVER else ()
    back = {name: value for name, value in fields.items() if goes_back and name not in left}
    kept = {name: value for name, value in fields.items() if name not in back}
    # A client always receives the thoughts under this name.
    kept = {} if kept == {AS_THOUGHTS[0]: None} else kept
    return packed(back, calls, kept, usage)


def going_back(text: str, thoughts: str) -> str:
    """Pack the answer fields that go back to the server."""
    extra = Extra.of(text)
    return packed(_filled(extra.message, thoughts), extra.calls)


def for_client(text: str, thoughts: str) -> str:
    """Pack the answer fields that an application's client receives and may send back."""
    extra = Extra.of(text)
    return packed(_filled({**extra.kept, **extra.message}, thoughts), extra.calls)


def _filled(fields: Fields, thoughts: str) -> Fields:
    return {name: _with_thoughts(value, thoughts) for name, value in fields.items()}


def _with_thoughts(value: Any, thoughts: str) -> Any:
    if isinstance(value, list):
        return [{**each, "thinking": thoughts} if _lacks_text(each) else each for each in value]
    return thoughts if value is None else value


def _lacks_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("thinking", "") is None


def added(message: dict[str, Any], text: str) -> dict[str, Any]:
    """Add the fields in a packed ``text`` to a message for a chat interface."""
    extra = Extra.of(text)
    found = {**message, **extra.message}
    if (calls := found.get("tool_calls")) and extra.calls:
        pairs = zip(calls, [*extra.calls, *[{}] * len(calls)], strict=False)
        found["tool_calls"] = [_with_fields(*pair) for pair in pairs]
    if found.get("refusal") and found["refusal"] == found["content"]:
        found["content"] = None
    return found


def _with_fields(call: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, **more, "function": {**call["function"], **more.get("function", {})}}


def joined(one: str, calls: int, other: str) -> str:
    """Merge the packed fields of two messages; the first message has ``calls`` tool calls."""
    if not (one and other):
        return other if not one and not calls else one or packed({}, [*[{}] * calls, *Extra.of(other).calls])
    first, second = Extra.of(one), Extra.of(other)
    return packed(
        {**first.message, **second.message}, [*first.calls, *[{}] * (calls - len(first.calls)), *second.calls]
    )


def only(text: str, names: Collection[str]) -> tuple[str, set[str]]:
    """Keep only fields with these ``names``, such as ``messages[].NAME``; also return the names of dropped fields."""
    extra, left_out = Extra.of(text), set[str]()

    def taken(fields: Fields, place: str) -> Fields:
        left_out.update(f"{place}.{name}" for name in fields if f"{place}.{name}" not in names)
        return {name: value for name, value in fields.items() if f"{place}.{name}" in names}

    calls = [taken(call, "messages[].tool_calls[]") for call in extra.calls]
    return packed(taken(extra.message, "messages[]"), calls), left_out


def lacks_thoughts(talk: Sequence[Message]) -> bool:
    """Return True if the last messages answer a tool call without its signed thoughts, which a server may require."""
    since = list(takewhile(lambda message: message.role != "assistant", reversed(talk)))
    answer = talk[: len(talk) - len(since)][-1:]
    has_thoughts = any(BLOCKS in Extra.of(message.extra).message for message in answer)
    return any(message.role == "tool" for message in since) and not has_thoughts


def accumulate(held: Fields, piece: Mapping[str, object]) -> None:
    """Add the fields of a streamed piece to ``held``: concatenate strings and lists, and merge objects."""
    for name, value in piece.items():
        before = held.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            accumulate(before, value)
        elif (isinstance(before, list) and isinstance(value, list)) or (
            # Some servers repeat the text in every piece.
            isinstance(before, str) and isinstance(value, str) and before != value
        ):
            held[name] = before + value  # type: ignore[operator]  # both are strings, or both are lists
        else:
            held[name] = value


_encode = compact_encoder(allow_nan=True, sort_keys=True)
