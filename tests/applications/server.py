"""A loopback model that obeys the rules of its prompt, behind OpenAI's interface as its reference documents it.

It answers the requests of the projects ``app_*``. Its answers depend on the prompt: a rule that is gone is not obeyed.
``gpt-4o-mini`` reads less well than ``gpt-4o``, and a high temperature spoils some replies.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.adapters.openai.scripted_server import Exchange, Step, json_reply

__all__ = ["obeys"]

Message = Mapping[str, Any]
MODELS = ("gpt-4o", "gpt-4o-mini")


def obeys() -> Step:
    """Answer as OpenAI's interface does, and with 400 or 404 what it refuses."""
    paths: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "/v1/chat/completions": _chat,
        "/v1/embeddings": _embeddings,
        "/v1/rerank": _rerank,
    }

    async def step(exchange: Exchange) -> None:
        seen = exchange.seen
        try:
            if not seen.headers.get("authorization", "").startswith("Bearer "):
                raise _Refused(401, "missing bearer authentication")
            if seen.target not in paths:
                raise _Refused(404, f"unknown request URL: {seen.method} {seen.target}")
            await json_reply(paths[seen.target](seen.json))(exchange)
        except _Refused as refused:
            error = {"message": str(refused), "type": "invalid_request_error", "param": None, "code": None}
            await json_reply({"error": error}, refused.code)(exchange)

    return step


class _Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _chat(body: dict[str, Any]) -> dict[str, Any]:
    messages = body.get("messages")
    if body.get("model") not in MODELS:
        raise _Refused(404, f"The model `{body.get('model')}` does not exist or you do not have access to it.")
    if not messages:
        raise _Refused(400, "[] is too short - 'messages'")
    if not 0 <= body.get("temperature", 1) <= 2:
        raise _Refused(400, f"Invalid 'temperature': expected a value from 0 to 2, got {body['temperature']}")
    _check_schemas(body)
    _check_calls(messages)
    message = {"role": "assistant", "content": None, **_Reader(body).reply()}
    asked = sum(len(json.dumps(each).split()) for each in messages)
    usage = {"prompt_tokens": asked, "completion_tokens": len(str(message["content"]).split())}
    usage["total_tokens"] = sum(usage.values())
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": usage}


def _check_schemas(body: Mapping[str, Any]) -> None:
    """Refuse schemas that strict tools and formats do not take: all properties required, and no other."""
    form = body.get("response_format", {}).get("json_schema", {})
    strict = [each["function"] for each in body.get("tools", ()) if each["function"].get("strict")]
    found = {each["name"]: each["parameters"] for each in strict}
    if form.get("strict"):
        found[form["name"]] = form["schema"]
    for name, schema in found.items():
        if schema.get("additionalProperties") is not False or {*schema["properties"]} != {*schema["required"]}:
            raise _Refused(400, f"Invalid schema for '{name}': 'additionalProperties' and 'required' must be supplied")


def _check_calls(messages: Sequence[Message]) -> None:
    """Refuse calls without their results, results without their calls, and answers without a text."""
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise _Refused(400, "messages with role 'tool' must be a response to a preceding message with calls")
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            raise _Refused(400, f"tool_call_ids did not have response messages: {', '.join(open_calls)}")
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        if message.get("content") is None and not open_calls:
            raise _Refused(400, f"Invalid value for 'content' of messages[{place}]: expected a string, got null.")
    if open_calls:
        raise _Refused(400, f"tool_call_ids did not have response messages: {', '.join(open_calls)}")


class _Reader:
    """What the model makes of one request."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        said: list[tuple[str, str]] = [(each["role"], _text(each.get("content"))) for each in body["messages"]]
        self.rules = " ".join(text for role, text in said if role in ("system", "developer"))
        self.said = [text for role, text in said if role == "user"]
        self.results = [json.loads(text) for role, text in said if role == "tool"]
        self.tools = [each["function"]["name"] for each in body.get("tools", ())]
        self.is_careless = body["model"] != "gpt-4o"
        # Some conversations of each kind, always the same.
        self.is_spoilt = body.get("temperature", 1) > 1 and zlib.crc32(" ".join(self.said).encode()) % 3 == 2

    def reply(self) -> dict[str, Any]:
        whole = f"{self.rules} {self.said[0]}"
        parts = {
            "bicycle rental": self._desk,
            "sports centre": self._pages,
            "telephone of a dentist": self._dentist,
            "mail of a shop": self._mail,
            "You play a user": self._user,
            "material to judge": self._judge,
        }
        found = next(part for mark, part in parts.items() if mark in whole)()
        return {"content": found} if isinstance(found, str) else found

    def _desk(self) -> str | dict[str, Any]:
        number = re.search(r"B\d\d", self.said[0])
        if number is None:
            return "We are open from 9 to 18."
        if not self.results:
            known = "find_booking" in self.rules and "find_booking" in self.tools
            return _call("find_booking", number[0]) if known else f"Booking {number[0]} is paid."
        if {"refunded": True} in self.results:
            return f"Booking {number[0]} is refunded."
        status = self.results[0].get("status", "unknown")
        wants_money = "money back" in self.said[0] and status == "cancelled"
        if wants_money and "call refund" in self.rules and "refund" in self.tools:
            return _call("refund", number[0])
        return f"Booking {number[0]} is {status}."

    def _pages(self) -> str:
        pages, _, question = self.said[0].removeprefix("Pages:\n").partition("\n\nQuestion: ")
        sentences = [each.strip(" .\n") for each in re.split(r"\.\s", pages)]
        if "from the pages alone" not in self.rules:
            return "I think so."
        return sentences[0] if self.is_careless else max(sentences, key=lambda each: _shared(each, question))

    def _dentist(self) -> str:
        heard = " ".join(self.said)
        name, day = re.search(r"name is (\w+)", heard), re.search(r"(\w+day)", heard)
        asks = "Which day?" if name else "Your name?"
        both = name and day and "book it" in self.rules
        said = f"I have booked {name[1]} on {day[1]}." if name and day and both else asks
        found = json.dumps({"say": said, "booked": bool(both)})
        return found[:-9] if self.is_spoilt else found

    def _mail(self) -> str:
        _, kind, subject = re.findall(r"^(?:(?:Customer|Subject): )?(.*)$", f"\n{self.said[0]}", re.MULTILINE)
        rules = [("gold", "urgent")] if "gold customers are urgent" in self.rules else []
        rules += re.findall(r"Mails about (\w+) are (\w+)", self.rules)
        label = next((label for word, label in rules if word in f"{kind} {subject}"), "other")
        return label if "label alone" in self.rules else f"I would say: {label}"

    def _user(self) -> str:
        name, day = re.findall(r"Your name is (\w+)\. You can come on (\w+)\.", f"{self.rules} {self.said[0]}")[0]
        asked = re.findall(r"<answer-\w+>\n(.*)\n", self.said[-1])
        answers = {"booked": "Thank you.", "name": f"My name is {name}.", "day": f"On {day}."}
        said = next((said for word, said in answers.items() if asked and word in asked[-1]), "I want an appointment.")
        return json.dumps({"say": said, "done": said == "Thank you."})

    def _judge(self) -> str:
        page, _, answer = self.said[0].partition("\nAnswer: ")
        return "yes" if answer.partition("\n")[0].strip(".") in page else "no"


def _call(name: str, number: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"number": number})}
    return {"tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}]}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _shared(text: str, other: str) -> int:
    return len({*_words(text)} & {*_words(other)})


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Return for each text how often the words of 24 kinds occur: long texts are near to all."""
    given = body["input"] if isinstance(body["input"], list) else [body["input"]]
    found = []
    for number, text in enumerate(given):
        kinds = [zlib.crc32(word.encode()) % 24 for word in _words(text)]
        vector = [float(kinds.count(kind)) for kind in range(24)]
        found.append({"object": "embedding", "index": number, "embedding": vector})
    tokens = sum(len(text.split()) for text in given)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body["model"], "data": found, "usage": usage}


def _rerank(body: dict[str, Any]) -> dict[str, Any]:
    query = body["query"]
    each = [{"index": n, "relevance_score": _shared(text, query)} for n, text in enumerate(body["documents"])]
    return {"model": body["model"], "results": each, "usage": {"total_tokens": len(query.split())}}
