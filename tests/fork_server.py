"""Runs pytest in forks of a process that has imported the third-party packages already.

``tests/inner_runs.py`` starts it as a script, once per pytest process, and asks for one run at a time. A fork replaces
``python -m pytest``: it has the arguments, folder, environment, streams and import path of that command, ends as that
command would, and has not imported anything of this project.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys
import time
from typing import Any

PROJECT = "pytest_lmeval"
# pytest rewrites the assertions of plugins; it warns about a plugin that was imported without that.
PLUGINS = {
    "pytest_jsonreport": ["pytest_jsonreport.plugin"],
    "pytest_metadata": ["pytest_metadata.plugin"],
    "xdist": [f"xdist.{name}" for name in ("dsession", "looponfail", "newhooks", "plugin", "report", "scheduler")],
}
OTHERS = """
    aiohttp asyncio concurrent.futures email.message execnet html importlib.metadata importlib.resources jinja2
    multiprocessing pydantic statistics unittest.mock urllib.request xml.etree.ElementTree yaml
"""


def main() -> None:
    """Serve until the client closes its end; in a fork, run pytest."""
    search_path = sys.path[1:]
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        import_packages()
        if sys.dont_write_bytecode:
            compile_project()
        run = accept_run(connection)
    if run is not None:
        become_pytest(run, search_path)


def accept_run(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for every run that is asked for. Return the run in its fork, and None when no more are wanted.

    A request is the length of a JSON object and, with these four bytes, the descriptors of stdout and stderr; then the
    object. The answers are the fork's process id and its exit code as ``Popen.returncode`` has it, four bytes each.
    """
    while True:
        length, streams, _, _ = socket.recv_fds(connection, 4, 2)
        if not length:
            return None
        request = connection.recv(int.from_bytes(length), socket.MSG_WAITALL)
        process = os.fork()
        if process == 0:
            return {**json.loads(request), "streams": streams}
        for stream in streams:
            os.close(stream)
        connection.sendall(process.to_bytes(4))
        connection.sendall(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]).to_bytes(4, signed=True))


def become_pytest(run: dict[str, Any], search_path: list[str]) -> None:
    """Make this process what ``python -m pytest`` is at its start, and run pytest."""
    for number, stream in enumerate(run["streams"], start=1):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(run["folder"])
    os.environ.clear()
    os.environ.update(run["environment"])
    time.tzset()
    added = [os.path.abspath(path) for path in os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.path[:] = [run["folder"], *dict.fromkeys(added + search_path)]
    sys.argv = ["-m", *run["arguments"]]
    sys.orig_argv = [sys.executable, "-mpytest", *run["arguments"]]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


def import_packages() -> None:
    hook_up_rewriting(list(PLUGINS))
    for name in [*(module for modules in PLUGINS.values() for module in modules), *OTHERS.split()]:
        importlib.import_module(name)
    del sys.meta_path[0]


def compile_project() -> None:
    """Write the byte code of this project, which no run here would write, in a fork that imports it for that."""
    process = os.fork()
    if process:
        os.waitpid(process, 0)
        return
    try:
        sys.dont_write_bytecode = False
        hook_up_rewriting([PROJECT])
        package = importlib.import_module(PROJECT)
        for module in pkgutil.walk_packages(package.__path__, f"{PROJECT}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    finally:
        os._exit(0)


def hook_up_rewriting(packages: list[str]) -> None:
    """Let pytest rewrite the assertions of these packages as they are imported."""
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    install_importhook(get_config()).mark_rewrite(*packages)


if __name__ == "__main__":
    main()
