"""Forward an application's requests unchanged to the adapter's server, and store the replies as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.adapters.http.reply import Document, may_pass
from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.numbers import is_count
from pytest_lmeval.types import Completion, Generate

if TYPE_CHECKING:
    from pytest_lmeval.adapters.http.options import ServerOptions
    from pytest_lmeval.adapters.http.secret import ApiKey
    from pytest_lmeval.adapters.http.transport import Reply

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Forward(Generate):
    """A request to forward; its hash covers the method, the target and the body.

    ``target`` is the path and query below the adapter's base URL, ``content`` is the unchanged body, and ``headers``
    are the headers to forward.
    """

    method: str = field(default="", compare=False)
    target: str = field(default="", compare=False)
    content: bytes = field(default=b"", compare=False)
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


class HttpReply(NamedTuple):
    """A server's reply; ``kind`` is the reply's content type."""

    status: int
    kind: str
    body: bytes


def forward(method: str, target: str, content: bytes, headers: Mapping[str, str], **of: Any) -> Forward:
    """Create a request to forward; ``of`` contains the request's task, id and repeat."""
    found = _loaded(content)
    options: dict[str, object] = {"http": f"{method} {target}"}
    # A request without a temperature, such as for an embedding, has one right answer, so the cache may keep that
    # answer.
    options["temperature"] = found.get("temperature", 0) if isinstance(found, dict) else 0
    prompt = next(iter(_decoded(content).values())) if found is None else _canonical(found)
    return Forward(prompt, **of, options=options, method=method, target=target, content=content, headers=headers)


def model_in(content: bytes) -> str:
    """Return the model that a request's body names, or ""."""
    found = _loaded(content)
    model = found.get("model") if isinstance(found, dict) else None
    return model if isinstance(model, str) else ""


def completion_of(reply: Reply, request: Forward, options: ServerOptions, key: ApiKey) -> Completion:
    """Convert a reply with a 2xx status into the answer to ``request``; raise AdapterError for an error object.

    ``options`` contain the model's prices; a GET request costs nothing.
    """
    found = _loaded(reply.body) if _is_json(reply.kind) else None
    usage = found.get("usage") if isinstance(found, dict) else None
    if isinstance(found, dict) and (error := found.get("error")):
        kind = TransientError if may_pass(error) else AdapterError
        raise Document(found, reply.where, reply.body, key).error("error object", kind=kind)
    usage = usage if isinstance(usage, dict) else {}
    prompt_tokens, completion_tokens = _tokens(usage)
    cost = 0.0 if request.method == "GET" else options.cost(prompt_tokens, completion_tokens or 0, usage)
    return Completion(
        text=kept(HttpReply(reply.status, reply.kind, reply.body)),
        latency_ms=reply.latency_ms,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=cost,
    )


def kept(reply: HttpReply) -> str:
    """Convert a reply into JSON text, with the body as JSON, as text, or in base64."""
    found = _loaded(reply.body) if _is_json(reply.kind) else None
    fields: dict[str, object] = {"status": reply.status, "type": reply.kind}
    fields |= _decoded(reply.body) if found is None else {"body": found}
    # Without "<", the text contains no tag that could begin thoughts.
    return _encode(fields).replace("<", "\\u003c")


def reply_in(text: str) -> HttpReply:
    """Convert ``text`` from :func:`kept` back into the reply; raise ValueError for any other text."""
    try:
        fields = json.loads(text)
        status, kind = int(fields["status"]), str(fields["type"])
        if "body" in fields:
            return HttpReply(status, kind, _encode(fields["body"]).encode("ascii"))
        body = fields["text"].encode("utf-8") if "text" in fields else base64.b64decode(fields["base64"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no reply of a server: {error}") from None
    return HttpReply(status, kind, body)


def _is_json(kind: str) -> bool:
    return kind == _JSON or kind.endswith("+json")


def _loaded(body: bytes) -> Any:
    """Parse a body as JSON; return None if the body is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _decoded(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _tokens(usage: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the token counts of the prompt and the answer; a server may report only the total."""
    known = {name: value for name, value in usage.items() if is_count(value)}
    completion = known.get("completion_tokens", known.get("output_tokens"))
    prompt = known.get("prompt_tokens", known.get("input_tokens"))
    if prompt is None and "total_tokens" in known:
        prompt = max(0, known["total_tokens"] - (completion or 0))
    return prompt, completion


_encode = compact_encoder(allow_nan=True)
_canonical = compact_encoder(allow_nan=True, sort_keys=True)
