"""Provide ``lm.mcp``: connect an example to a Model Context Protocol server through the official SDK.

The SDK runs in the functions' event loop. A run that replays a recording needs neither the SDK nor the server.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from operator import methodcaller
from os.path import isabs
from types import ModuleType, TracebackType
from typing import IO, TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from pytest_lmeval.errors import RecordRefused, UnknownName
from pytest_lmeval.formats.tools import tools_of
from pytest_lmeval.functions.tools import ExampleTools, ToolUse
from pytest_lmeval.numbers import is_number
from pytest_lmeval.records.tool_calls import SERVER, TOOL
from pytest_lmeval.redaction import redact_arguments
from pytest_lmeval.text import error_text, portable_path
from pytest_lmeval.types import ToolCall

if TYPE_CHECKING:
    from pytest_lmeval.functions.loop import Loop

_INSTALL = "pip install 'pytest-lmeval[mcp]'"
_MOST_PAGES = 100
_LAST_WORDS = 2000
_LONGEST = 80
_LOOK_S = 0.25
# The SDK's codes for a request without a reply; all other codes come from replies.
_NO_REPLY = (-32000, -32001, 408)
_SHARING = threading.Lock()


class McpResult(str):
    """The text of a tool's result; ``structured`` is the result as JSON, if the server provides it.

    ``is_error`` is True if the server, or a check of the model's call, rejects the call. The text then gives the
    reason.
    """

    structured: object
    is_error: bool

    def __new__(cls, text: str, structured: object = None, is_error: bool = False) -> McpResult:
        """Return a result with this text."""
        found = super().__new__(cls, text)
        found.structured, found.is_error = structured, is_error
        return found

    @classmethod
    def of(cls, output: Mapping[str, Any]) -> McpResult:
        """Create a result from a step's output."""
        return cls(str(output.get("text", "")), output.get("structured"), output.get("is_error") is True)


class _Fault(Exception):
    """The server returned no result; the message gives the reason."""


class _Rejected(_Fault):
    """The server replied with a protocol error."""


@dataclass(frozen=True)
class _Target:
    """A server, given as a command or an address; ``shown`` describes the server without secrets and folders."""

    shown: str
    command: tuple[str, ...] = ()
    address: str = ""
    env: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The name for messages."""
        return self.shown if len(self.shown) <= _LONGEST else f"{self.shown[: _LONGEST - 3]}..."


class _Connection:
    """A client for one server; its methods run in the functions' event loop.

    ``has_failed`` is True if the connection no longer works, for example because the server died.
    """

    def __init__(self, sdk: ModuleType, target: _Target) -> None:
        self._sdk = sdk
        self._target = target
        # The server appends, so reading the file does not change where it writes.
        self._words: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed at the end
        self._task: asyncio.Task[None] | None = None
        self._session: asyncio.Future[Any] | None = None
        self._has_to_end = asyncio.Event()
        self.has_failed = False

    async def tools(self, timeout: float) -> list[dict[str, object]]:
        """Return the names, descriptions and parameters of the server's tools."""
        found: list[dict[str, object]] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._reply("its list of tools", methodcaller("list_tools", cursor=cursor), timeout)
            found += [
                {
                    "name": tool["name"],
                    "description": tool.get("description") or "",
                    "parameters": tool.get("inputSchema") or {"type": "object"},
                }
                for tool in page["tools"]
            ]
            if not (cursor := page.get("nextCursor")):
                return found
        raise _Fault(f"its list of tools has more than {_MOST_PAGES} pages")

    async def call(self, name: str, arguments: Mapping[str, object], timeout: float) -> dict[str, object]:
        """Return a tool's result as a step's output."""
        try:
            given = await self._reply(f"a call of {name}", methodcaller("call_tool", name, dict(arguments)), timeout)
        except _Rejected as rejected:
            return {"text": str(rejected), "is_error": True}
        texts = []
        for part in given.get("content") or ():
            text = part.get("text", part.get("resource", {}).get("text"))
            if text is None:
                raise _Fault(f"the result of {name} holds a part of the type {part.get('type')!r}; only text is read")
            texts.append(text)
        found: dict[str, object] = {"text": "\n".join(texts)}
        if given.get("structuredContent") is not None:
            found["structured"] = given["structuredContent"]
        return {**found, "is_error": True} if given.get("isError") else found

    async def end(self) -> None:
        """End the session and the server."""
        self._has_to_end.set()
        if self._task is not None and self._session is not None:
            if not self._session.done():
                self._task.cancel()
            await asyncio.wait([self._task])
        self._words.close()

    async def _reply(self, what: str, ask: Callable[[Any], Coroutine[Any, Any, Any]], timeout: float) -> dict[str, Any]:
        """Return the reply to a request; start the server before the first request."""
        if self._session is None:
            self._session = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._serve(self._session))
        try:
            async with asyncio.timeout(timeout):
                reply = await ask(await asyncio.shield(self._session))
        except TimeoutError:
            raise _Fault(f"no reply to {what} within {timeout:g} s{self._last_words()}") from None
        except Exception as error:
            raise self._fault(what, error) from None
        found: dict[str, Any] = reply.model_dump(mode="json", by_alias=True, exclude_none=True)
        return found

    async def _serve(self, session: asyncio.Future[Any]) -> None:
        # The SDK requires that the same task enters and exits its contexts.
        try:
            async with AsyncExitStack() as stack:
                found = await self._connected(stack)
                if not session.done():
                    session.set_result(found)
                await self._has_to_end.wait()
        except Exception as error:
            if not session.done():
                session.set_exception(error)
                session.exception()  # its request may have given up
        finally:
            session.cancel()

    async def _connected(self, stack: AsyncExitStack) -> Any:
        sdk, target = self._sdk, self._target
        if target.command:
            command, *arguments = target.command
            parameters = sdk.StdioServerParameters(command=command, args=arguments, env=dict(target.env) or None)
            transport = sdk.stdio_client(parameters, errlog=self._words)
        else:
            from mcp.client import streamable_http

            # Older versions of the SDK have the second name.
            names = ("streamable_http_client", "streamablehttp_client")
            connect = next(getattr(streamable_http, name) for name in names if hasattr(streamable_http, name))
            transport = connect(target.address)
        if hasattr(sdk, "Client"):  # SDK 2
            return await stack.enter_async_context(sdk.Client(transport))
        streams = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(sdk.ClientSession(streams[0], streams[1]))
        await session.initialize()
        return session

    def _fault(self, what: str, error: BaseException) -> _Fault:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        said = getattr(error, "error", None)
        if is_number(code := getattr(said, "code", None)) and code not in _NO_REPLY:
            return _Rejected(getattr(said, "message", ""))
        self.has_failed = True
        return _Fault(f"{what} failed: {error_text(error)}{self._last_words()}")

    def _last_words(self) -> str:
        """Return the end of the server's output on stderr, as a clause for a message."""
        with suppress(OSError, ValueError):
            size = self._words.seek(0, 2)
            self._words.seek(max(0, size - _LAST_WORDS))
            if said := self._words.read().decode("utf-8", "replace").strip():
                return f"; the server wrote: {said}"
        return ""


class _Use(ToolUse):
    """A call to a tool of ``server``; a ``_Fault`` marks the example as an error."""

    server = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if isinstance(error, _Fault):
            # A recording needs no description of this exception.
            self._step.output = None
            self._refuse(f"lm.mcp: {self.server}: {error}")


class _Offer:
    """A server for one example, with ``tools`` in the format of ``lm.ask(tools=...)``.

    With ``shared``, all examples in this process with the same command or address use one server, until the run ends.
    """

    def __init__(
        self, tools: ExampleTools, server: object, env: Mapping[str, str] | None, timeout: float, shared: bool
    ) -> None:
        self.tools: tuple[Mapping[str, object], ...] = ()
        self._of_example = tools
        self._state = tools.state
        self._state.check_is_running("lm.mcp")
        if not is_number(timeout) or timeout <= 0:
            self._state.refuse(f"lm.mcp: timeout: expected a number of seconds above 0, got {timeout!r:.60}")
        self._target = _target(self._state.refuse, server, env)
        self._timeout = float(timeout)
        self._is_shared = shared
        self._connection: _Connection | None = None
        tools.servers.append(self)

    def __repr__(self) -> str:
        return f"<lm.mcp {self._target.shown}: {', '.join(self._names) or 'no tools yet'}>"

    def close(self) -> Future[None]:
        """End the server."""
        if self._connection is not None and not self._is_shared:
            with suppress(RuntimeError):  # the loop is closed
                return self._loop.submit(self._connection.end())
        ended: Future[None] = Future()
        ended.set_result(None)
        return ended

    @property
    def _loop(self) -> Loop:
        return self._of_example.records.loop

    @property
    def _names(self) -> list[str]:
        return [str(tool["name"]) for tool in self.tools]

    def _use(self, kind: str, name: str, arguments: Mapping[str, object] | None) -> ToolUse:
        use = _Use(self._of_example, kind, name, arguments)
        use.server = self._target.label
        return use

    def _opening(self) -> ToolUse:
        return self._use(SERVER, self._target.shown, None)

    def _list(self) -> Future[object]:
        return self._loop.submit(self._connected().tools(self._timeout))

    def _take_list(self, listed: object) -> None:
        """Store the server's tools; raise ScoringError if a tool is invalid, or if its name belongs to another tool."""
        try:
            self.tools = tools_of(listed, "tools")
        except RecordRefused as refused:
            self._state.refuse(f"lm.mcp: {self._target.label}: {refused.field}: {refused.detail}")
        for name in self._names:
            self._of_example.claim(name, self, f"that of lm.mcp({self._target.label!r})")

    def _call(self, tool: str | ToolCall, arguments: Mapping[str, object] | None) -> McpResult | _Calling:
        """Return the call to make, or an error result if the model's call is invalid."""
        if not isinstance(tool, ToolCall):
            if tool not in self._names:
                self._state.refuse(f"server.call: {UnknownName('tool', str(tool), self._names)}")
            return _Calling(self._use(TOOL, tool, arguments or {}), tool, arguments or {})
        if arguments is not None:
            self._state.refuse("server.call: a call of the model already has arguments: pass a name, or only the call")
        values, why = tool.values, ""
        if tool.name not in self._names:
            why = str(UnknownName("tool", tool.name, self._names))
        elif values is None:
            why = "the arguments are not a JSON object"
        if values is None or why:
            # The result informs the model of its mistake.
            output = {"text": why, "is_error": True}
            self._state.step(TOOL, tool.name, tool.arguments if values is None else values, output).ms = 0.0
            return McpResult.of(output)
        return _Calling(self._use(TOOL, tool.name, values), tool.name, values)

    def _send(self, calling: _Calling) -> Future[object]:
        return self._loop.submit(self._connected().call(calling.name, calling.arguments, self._timeout))

    def _connected(self) -> _Connection:
        if self._connection is None:
            try:
                sdk = import_module("mcp")
            except ImportError as error:
                raise _Fault(f"needs mcp, which cannot be imported ({error}): {_INSTALL}") from None
            self._connection = self._shared(sdk) if self._is_shared else _Connection(sdk, self._target)
        return self._connection

    def _shared(self, sdk: ModuleType) -> _Connection:
        """Return the connection that examples share; create it for the first example, or after the server died."""
        with _SHARING:
            found = self._loop.servers.get(self._target)
            if isinstance(found, _Connection) and not found.has_failed:
                return found
            if found is not None:
                self._loop.submit(found.end())
            made = self._loop.servers[self._target] = _Connection(sdk, self._target)
            return made


@dataclass(frozen=True)
class _Calling:
    use: ToolUse
    name: str
    arguments: Mapping[str, object]


class McpServer(_Offer):
    """A server for an ``async def`` function, which ends with the example or, if it is shared, with the run."""

    async def opened(self, made: object) -> McpServer:
        """Start or find the server, and return it."""
        self._state.unused.mark_used(made)
        with self._opening() as use:
            if use.is_live:
                use.result = await asyncio.wrap_future(self._list())
        self._take_list(use.result)
        return self

    async def call(self, tool: str | ToolCall, arguments: Mapping[str, object] | None = None) -> McpResult:
        """Call a tool, either by name or by a tool call from the model; record the call, and return the result.

        If the server rejects the call, or the model's call is invalid, the result's ``is_error`` is True, and its text
        explains the error to the model. If the server returns no result, this raises ScoringError and marks the example
        as an error.
        """
        found = self._call(tool, arguments)
        if isinstance(found, McpResult):
            return found
        with found.use as use:
            if use.is_live:
                use.result = await asyncio.wrap_future(self._send(found))
        return McpResult.of(use.result)


class BlockingMcpServer(_Offer):
    """A server for a ``def`` function; see :class:`McpServer`."""

    def opened(self) -> BlockingMcpServer:
        """Start or find the server, and return it."""
        with self._opening() as use:
            if use.is_live:
                use.result = self._waited(self._list())
        self._take_list(use.result)
        return self

    def call(self, tool: str | ToolCall, arguments: Mapping[str, object] | None = None) -> McpResult:
        """Return a tool's result; see :meth:`McpServer.call`."""
        found = self._call(tool, arguments)
        if isinstance(found, McpResult):
            return found
        with found.use as use:
            if use.is_live:
                use.result = self._waited(self._send(found))
        return McpResult.of(use.result)

    def _waited(self, future: Future[object]) -> object:
        while not wait([future], timeout=_LOOK_S).done:
            if self._loop.is_closing:
                raise _Fault("the run ended before the server replied")
        return future.result()


def _target(refuse: Callable[[str], NoReturn], server: object, env: Mapping[str, str] | None) -> _Target:
    """Return the server that the arguments of ``lm.mcp`` describe."""
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        if env:
            refuse("lm.mcp: env: only a command has an environment")
        parts = urlsplit(server)
        return _Target(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", address=server)
    try:
        given: Any = shlex.split(server) if isinstance(server, str) else server
        command = tuple(os.fspath(part) for part in given)
    except (TypeError, ValueError) as error:
        refuse(f"lm.mcp: expected a command, a list of its parts, or an http address, got {server!r:.80} ({error})")
    if not command or not all(isinstance(part, str) and part for part in command[:1]):
        refuse(f"lm.mcp: expected a command, a list of its parts, or an http address, got {server!r:.80}")
    # Use a name that is the same on every machine, because recordings contain it.
    shown = ["python" if part == sys.executable else portable_path(part) if isabs(part) else part for part in command]
    variables = tuple(sorted((env or {}).items()))
    return _Target(" ".join(shlex.join(redact_arguments(shown)).split()), command, env=variables)
