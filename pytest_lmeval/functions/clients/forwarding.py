"""Read a request to forward to the adapter's server, and write the server's reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_lmeval.adapters.http.forward import reply_in
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.functions.clients.baggage import HEADER, without_tokens
from pytest_lmeval.functions.clients.interfaces import is_of_azure
from pytest_lmeval.redaction import is_secret_name
from pytest_lmeval.types import Completion

if TYPE_CHECKING:
    from aiohttp import web

# Headers that belong to one connection or to the sender, that the sender recreates, or that are partly forwarded.
_DROPPED = frozenset(
    {"authorization", "proxy-authorization", "proxy-authenticate", "cookie", "set-cookie", "x-api-key", "api-key"}
    | {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
    | {"host", "content-length", "accept-encoding", "user-agent", "forwarded", "via", "origin", "referer", HEADER}
)
_LONGEST_TARGET = 8000


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request to forward; ``target`` is the path and query relative to the server's address."""

    method: str
    path: str
    target: str
    content: bytes
    headers: Mapping[str, str]


async def read_forwarded(request: web.Request, path: str) -> Forwarded:
    """Read a request for the server; raise ValueError if it cannot be forwarded.

    Omit the ``api-version`` that Azure's clients add to the query.
    """
    query = request.raw_path.partition("?")[2]
    if is_of_azure(request):
        query = "&".join(part for part in query.split("&") if not part.startswith("api-version="))
    target = f"{path}?{query}" if query else path
    if len(target) > _LONGEST_TARGET or not target.isascii() or not target.isprintable():
        raise ValueError(f"a path and query of at most {_LONGEST_TARGET:,} printable characters can be forwarded")
    return Forwarded(request.method, path, target, await request.read(), _headers(request))


def _headers(request: web.Request) -> dict[str, str]:
    """Return the headers to forward, without keys, cookies and connection headers."""
    of_connection = {each.strip().lower() for each in request.headers.get("Connection", "").split(",")}
    kept = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in _DROPPED | of_connection
        and not name.lower().startswith(("proxy-", "x-forwarded-"))
        and not is_secret_name(name)
    }
    if baggage := without_tokens(request.headers.getall(HEADER, ())):
        kept[HEADER] = baggage
    return kept


def reply_to(answer: Completion) -> web.Response:
    """Return the server's reply; raise AdapterError if the answer is not a server's reply, as in some recordings."""
    from aiohttp import web

    try:
        status, kind, body = reply_in(answer.text)
    except ValueError as error:
        raise AdapterError(f"the answer is not a server's reply: {error}") from None
    return web.Response(status=status, body=body, headers={"Content-Type": kind} if kind else {})
