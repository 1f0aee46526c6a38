"""A real Chromium, spoken to in its DevTools protocol: open a page, press keys, read what it shows."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FACES", "NARROW", "Browser", "find_chromium", "running_browser"]

NARROW = (390, 800)
FACES = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--mute-audio",
    "--remote-debugging-port=0",
)
_PATIENCE_S = 120.0
_KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowDown": (40, ""), "ArrowUp": (38, "")}


def find_chromium() -> str | None:
    """Return the program that ``LMEVAL_TEST_CHROMIUM`` names, else a Chromium on the path; None if there is none."""
    named = os.environ.get("LMEVAL_TEST_CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. Everything it logs, asks for or throws is kept in ``events``."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self.events = connection.events
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        return self._connection.call(method, parameters)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file afresh, at the given ``#/...`` fragment, and wait until its script has run."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait_for("document.readyState === 'complete' && document.querySelector('h1') !== null")

    def go(self, fragment: str) -> None:
        """Follow a fragment within the page, and wait until it is shown."""
        self.js(f"location.hash = {json.dumps(fragment)}")
        self.settle()

    def js(self, expression: str) -> Any:
        """Return the value of an expression; an exception in it is an AssertionError."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _PATIENCE_S
        while not self.js(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.01)

    def settle(self) -> None:
        """Wait until events that were queued have been dealt with, and the result was drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")

    def press(self, *keys: str) -> None:
        """Press keys one after the other: letters, or names such as ``Escape``."""
        for key in keys:
            code, text = _KEYS.get(key, (ord(key.upper()) if key.isalnum() and len(key) == 1 else 0, key))
            event: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def texts(self, selector: str) -> list[str]:
        """Return the text of every element that a CSS selector finds."""
        texts: list[str] = self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")
        return texts

    def text(self, selector: str) -> str:
        """Return the text of the only element that a CSS selector finds."""
        (text,) = self.texts(selector)
        return text

    def dark(self, dark: bool) -> None:
        """Let the reader prefer a dark page, or not."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def size(self, width: int, height: int) -> None:
        """Give the window a size in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


class _Connection:
    """The socket to one tab, served by an event loop in a thread of its own."""

    def __init__(self, address: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="devtools", daemon=True)
        self._thread.start()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._do(self._connect(address))

    def call(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._do(self._call(method, parameters))
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        self._do(self._disconnect())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)

    async def _connect(self, address: str) -> None:
        import aiohttp

        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(address, max_msg_size=0)
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            data = json.loads(message.data)
            if "id" in data:
                self._waiting.pop(data["id"]).set_result(data)
            else:
                self.events.append(data)

    async def _call(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting[self._number] = answer
        await self._socket.send_json({"id": self._number, "method": method, "params": dict(parameters)})
        return await answer

    async def _disconnect(self) -> None:
        await self._socket.close()
        await self._reader
        await self._session.close()


@contextlib.contextmanager
def running_browser(program: str) -> Iterator[Browser]:
    """Start Chromium with an empty profile, yield its first tab, and end it with all of its processes."""
    # It makes sockets in its folders. Their paths have to be short; that of a folder for tests may be long.
    with tempfile.TemporaryDirectory(prefix="lmeval-", dir="/tmp", ignore_cleanup_errors=True) as profile:
        yield from _browser(program, Path(profile))


def _browser(program: str, profile: Path) -> Iterator[Browser]:
    process = subprocess.Popen(
        [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        env={**os.environ, "TMPDIR": str(profile)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        connection = _Connection(_address_of_tab(profile, process.poll))
        yield Browser(connection)
        connection.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _address_of_tab(profile: Path, ended: Callable[[], int | None]) -> str:
    import urllib.request

    port_file = profile / "DevToolsActivePort"
    end = time.monotonic() + _PATIENCE_S
    while not (port_file.exists() and "\n" in port_file.read_text()):
        assert ended() is None, f"Chromium ended with {ended()}"
        assert time.monotonic() < end, "Chromium did not open its port"
        time.sleep(0.02)
    port = port_file.read_text().partition("\n")[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
        tabs = json.load(answer)
    address: str = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
    return address
