"""Runs of pytest and of lmeval, and workers of pytest-xdist in them, as forks of a process that has done the imports.

A fork replaces ``python -m pytest`` or ``python -m pytest_lmeval.cli``: it has the arguments, folder, environment,
streams and import path of that command and ends as the command would. It has imported third-party packages and all
modules of this project: what is imported when is for runs of the real command to test. What a fork does not take over
from the test's process: limits (``resource``), the umask and ignored signals.
The server is this file, run as a script.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import os
import pkgutil
import platform
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

PROJECT = "pytest_lmeval"
# pytest rewrites the assertions of plugins; it warns about a plugin that was imported without that.
PLUGINS = {
    "pytest_jsonreport": ["pytest_jsonreport.plugin"],
    "pytest_metadata": ["pytest_metadata.plugin"],
    "xdist": [f"xdist.{name}" for name in ("dsession", "looponfail", "newhooks", "plugin", "report", "scheduler")],
}
# What is installed and not left out of nearly all runs.
LOADED = {"lmeval", "metadata", "pytest_jsonreport", "xdist", "xdist.looponfail"}
OTHERS = """
    aiohttp asyncio concurrent.futures email.message encodings.ascii execnet faulthandler html importlib.metadata
    importlib.resources jinja2 multiprocessing pdb pydantic pytest_metadata.hooks readline statistics unittest.mock
    urllib.request xml.etree.ElementTree yaml
"""
# A run may put another function in its place.
EXIT = os._exit
# Python reads these at its start, so a run for which they were changed has to start a Python.
READ_AT_START = ("COVERAGE_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON")


class Fork:
    """What is used of a ``subprocess.Popen``.

    ``door`` is the client's end of the server's socket. The process gets ``streams``: stdin, stdout and stderr.
    ``setting`` is the command's ``folder``, ``environment`` and process ``group``: 0 for a new one.
    """

    stdin: IO[Any] | None = None
    stdout: IO[Any] | None = None
    returncode: int | None = None

    def __init__(self, door: socket.socket, command: Sequence[str], streams: list[int], **setting: Any) -> None:
        ours = {"folder": os.getcwd(), "environment": dict(os.environ), "group": os.getpgrp()}
        request = {"command": command, **ours, **setting}
        text = json.dumps(request).encode()
        self._connection, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(door, [b"+"], [theirs.fileno(), door.fileno(), *streams])
        self._connection.sendall(len(text).to_bytes(4) + text)
        self.pid = self._number(None)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the number of the signal that ended the process."""
        if self.returncode is None:
            try:
                self.returncode = self._number(timeout)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("pytest", timeout or 0) from None
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return what :meth:`wait` does if the process has ended, else None."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            os.kill(self.pid, signal.SIGKILL)

    def _number(self, timeout: float | None) -> int:
        self._connection.settimeout(timeout)
        answer = self._connection.recv(4, socket.MSG_WAITALL)
        assert 4 == len(answer), "the server that forks runs of pytest has ended; what it said is on stderr"
        return int.from_bytes(answer, signed=True)


class ForkServer:
    """Starts runs of pytest and lmeval. The server itself is started with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._door, self._theirs = socket.socketpair()
        self._started_with = _read_at_start(os.environ)

    def popen(
        self, start: Callable[..., Any], command: Sequence[str], *, stdout: IO[str], stderr: IO[str], **rest: Any
    ) -> Any:
        """Fork a run of a module with an empty stdin, as ``Pytester.popen`` starts one; ``start`` any other command.

        Instead of a session of its own (``start_new_session``) a fork has a process group of its own.
        """
        is_module = command[0] == sys.executable and command[1] in ("-mpytest", f"-m{PROJECT}.cli")
        if not is_module or not self._can_fork(os.environ):
            return start(command, stdout=stdout, stderr=stderr, **rest)
        group = {"group": 0} if rest.get("start_new_session") else {}
        return self._fork(command, stdout, stderr, folder=os.getcwd(), environment=os.environ, **group)

    def run(
        self, module: str, *arguments: str | Path, folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Fork what :func:`run_command` starts, wait for it and return what it wrote."""
        command = [sys.executable, "-m", module, *map(str, arguments)]
        if not self._can_fork(environment):
            return run_command(module, *arguments, folder=folder, environment=environment)
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            code = self._fork(command, out, err, folder=str(folder), environment=environment).wait()
            texts = [(stream.seek(0), stream.read())[1] for stream in (out, err)]
        return subprocess.CompletedProcess(command, code, *texts)

    def _can_fork(self, environment: Mapping[str, str]) -> bool:
        return self._started_with == _read_at_start(environment)

    def _fork(
        self,
        command: Sequence[str],
        stdout: IO[Any],
        stderr: IO[Any],
        *,
        folder: str,
        environment: Mapping[str, str],
        **setting: Any,
    ) -> Fork:
        self._process = self._process or self._start()
        path = os.pathsep.join(filter(None, [folder, environment.get("PYTHONPATH")]))
        with open(os.devnull) as stdin:
            streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
            surroundings = {"folder": folder, "environment": {**environment, "PYTHONPATH": path}}
            return Fork(self._door, command, streams, **surroundings, **setting)

    def close(self) -> None:
        self._door.close()
        self._theirs.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._theirs.fileno()
        process = subprocess.Popen(
            [sys.executable, __file__, str(number)],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # each run has its own
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the tests
        )
        self._theirs.close()
        return process


def run_command(
    module: str, *arguments: str | Path, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m MODULE ARGUMENTS`` with an empty stdin and return what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    found = environment.items()
    return {name: value for name, value in found if name.startswith(READ_AT_START) and name != "PYTHONPATH"}


# From here on: the server


def main() -> None:
    """Serve until every client has closed its end of the socket; in a fork, be the process that was asked for."""
    if fault := of_another_tree(importlib.util.find_spec(PROJECT)):
        sys.exit(fault)
    search_path = sys.path[1:]
    with socket.socket(fileno=int(sys.argv[1])) as door:
        import_packages()
        remember_what_is_installed()
        remember_names_of_plugins()
        remember_what_is_rewritten()
        prepare_configurations()
        shorten_interruptions()
        platform.platform()  # starts a program, and remembers what it said
        inspect.getmodule(accept.__code__, "no file")  # looks where every module lies, and remembers that
        gc.collect()
        gc.freeze()  # else every fork searches the imported packages for garbage as it ends
        gc.set_threshold(10 * gc.get_threshold()[0], *gc.get_threshold()[1:])  # a tenth of a small run
        os.fsync = lambda fd: None  # no test takes the power away
        asked = accept(door)
    if asked is not None:
        become(search_path, *asked)


def of_another_tree(spec: ModuleSpec | None) -> str:
    """Return what is wrong with the package that would be tested, "" if it is that of the tree of this file."""
    tree = Path(__file__).resolve().parents[1]
    found = Path(spec.origin or "").resolve() if spec else None
    if found is not None and found.is_relative_to(tree):
        return ""
    return (
        f"the tests of {tree} would test {found or 'no package'}: pip install -e {tree} into the environment of "
        f"{sys.executable}"
    )


def accept(door: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for every request. Return it and its descriptors in its fork, and None when there will be no more.

    A request comes over a socket of its own, which is sent with the descriptors: its length in four bytes, then JSON.
    The answers are the process id of the fork and its exit code as ``Popen.returncode`` has it, four bytes each.
    """
    connections: dict[int, socket.socket] = {}
    ended, signalled = socket.socketpair()
    signalled.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(signalled.fileno(), warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([door, ended], [], [])
        if ended in ready:
            ended.recv(4096)
            tell_of_ends(connections)
        if door not in ready:
            continue
        _, descriptors, _, _ = socket.recv_fds(door, 1, 5)
        if not descriptors:
            return None
        connection = socket.socket(fileno=descriptors.pop(0))
        length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
        request = json.loads(connection.recv(length, socket.MSG_WAITALL))
        process = os.fork()
        if process == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for held in (*connections.values(), connection, ended, signalled, door):
                held.close()
            return request, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # whoever asked may be gone
            connection.sendall(process.to_bytes(4))
        connections[process] = connection


def tell_of_ends(connections: dict[int, socket.socket]) -> None:
    """Send the exit codes of the forks that have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            with connections.pop(process) as connection, contextlib.suppress(OSError):
                connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))


def become(search_path: list[str], request: dict[str, Any], descriptors: list[int]) -> None:
    """Make this process what the command is at its start, and run what the command runs."""
    door, *streams = descriptors
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with contextlib.suppress(PermissionError):  # whoever asked is in another session than the server
        os.setpgid(0, request["group"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    added = [os.path.abspath(path) for path in os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.path[:] = dict.fromkeys(added + search_path)
    sys.orig_argv = request["command"]
    _, flag, *arguments = sys.orig_argv
    if flag.startswith("-m"):
        become_module(door, *filter(None, [flag[2:], *arguments]))
    else:
        become_worker(door, sys.orig_argv[-1])


def become_module(door: int, module: str, *arguments: str) -> None:
    sys.path.insert(0, os.getcwd())
    sys.argv = ["-m", *arguments]
    if any(argument.startswith("-n") and argument != "-n0" for argument in arguments):
        fork_workers(socket.socket(fileno=door))
    else:
        os.close(door)
    leave(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


def become_worker(door: int, code: str) -> None:
    os.close(door)
    sys.path.insert(0, "")
    sys.argv = ["-c"]
    sys.modules["__main__"] = ModuleType("__main__")
    leave(lambda: exec(code, sys.modules["__main__"].__dict__))


def leave(run: Callable[[], object]) -> None:
    """Call ``run`` and end the process as Python does, but for taking every module apart: a third of a small run."""
    code: Any = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls, to wait for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    EXIT((code or 0) & 0xFF)


def fork_workers(door: socket.socket) -> None:
    """Let execnet fork what it would start with the command for a local worker."""
    from execnet import gateway_base, gateway_io
    from xdist import workermanage

    workermanage._sys_path = list(sys.path)  # what it found when it was imported goes to the workers
    ordinary = [sys.executable, "-u", "-c", gateway_io.popen_bootstrapline]
    started_with = _read_at_start(os.environ)

    class Master(gateway_io.Popen2IOMaster):
        def __init__(self, args: list[str], execmodel: Any) -> None:
            if args != ordinary or started_with != _read_at_start(os.environ):
                super().__init__(args, execmodel)
                return
            (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
            self.popen = Fork(door, args, [their_in, their_out, 2])
            os.close(their_in)
            os.close(their_out)
            gateway_base.Popen2IO.__init__(self, os.fdopen(our_out, "wb"), os.fdopen(our_in, "rb"), execmodel)

    vars(gateway_io)["Popen2IOMaster"] = Master


def import_packages() -> None:
    rewriting = hook_up_rewriting([*PLUGINS, PROJECT])
    for name in [*(module for modules in PLUGINS.values() for module in modules), *OTHERS.split(), PROJECT]:
        importlib.import_module(name)
    # Where they are needed only now and then, modules import others inside functions: here, all are there.
    for module in pkgutil.walk_packages(sys.modules[PROJECT].__path__, f"{PROJECT}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    sys.meta_path.remove(rewriting)


def remember_what_is_installed() -> None:
    """Read what packages say of themselves once: every start of pytest reads it of all, a fifth of a small run."""
    from importlib.metadata import Distribution, PathDistribution, distributions

    for name in ("entry_points", "files", "metadata", "_normalized_name"):
        holder = PathDistribution if name in vars(PathDistribution) else Distribution
        read = vars(holder)[name].fget
        known = {str(getattr(package, "_path", "")): read(package) for package in distributions()}

        def remembered(package: Any, known: dict[str, Any] = known, read: Callable[[Any], Any] = read) -> Any:
            found = known.get(str(getattr(package, "_path", "")))
            return read(package) if found is None else found

        setattr(holder, name, property(remembered))


def remember_names_of_plugins() -> None:
    """Find the hooks and fixtures in modules once: every start of pytest looks at all names in all of its plugins."""
    from _pytest import fixtures
    from pluggy import _manager as hooks

    def is_fixture(found: object) -> bool:
        with contextlib.suppress(Exception):
            found = inspect.unwrap(cast(Any, found), stop=lambda each: type(each) is fixtures.FixtureFunctionDefinition)
        return type(found) is fixtures.FixtureFunctionDefinition

    modules = [module for module in sys.modules.values() if type(module) is ModuleType]
    plugins = [module for module in modules if any(map(is_hook, vars(module)))]
    known_hooks = {module: list(filter(is_hook, dir(module))) for module in plugins}
    classes = {each for module in plugins for each in vars(module).values() if isinstance(each, type)}
    known_fixtures = {
        holder: [name for name in dir(holder) if is_fixture(inspect.getattr_static(holder, name, None))]
        for holder in [*plugins, *classes]
    }
    vars(hooks)["dir"] = partial(names_in, known_hooks)
    vars(fixtures)["dir"] = partial(names_in, known_fixtures)


def prepare_configurations() -> None:
    """Register pytest's own plugins and those it finds installed once: most of what pytest does in a small run."""
    from _pytest import config

    get_config = config.get_config
    installed = {point.name for point in importlib.metadata.entry_points(group="pytest11")}
    prepared: dict[tuple[bool, bool], Any] = {}
    for with_cache, with_installed in itertools.product((True, False), repeat=2):
        found = get_config([] if with_cache else ["-pno:cacheprovider"])
        if with_installed:
            for name in installed - LOADED:
                found.pluginmanager.set_blocked(name)
            found.pluginmanager.load_setuptools_entrypoints("pytest11")
        prepared[with_cache, with_installed] = found

    def hand_out(args: Any = None, plugins: Any = None, *, prog: str | None = None) -> Any:
        given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *(args or ())]
        chosen = names_of_plugins(given)
        blocked = {name.removeprefix("no:") for name in chosen}
        # A blocked plugin adds no option, and a second run in one process is its own.
        if not prepared or blocked & {*config.default_plugins} - {"cacheprovider"} or "PYTEST_DEBUG" in os.environ:
            return get_config(args, plugins, prog=prog)
        loads = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and "--disable-plugin-autoload" not in given
        others = {name for name in chosen if not name.startswith("no:")}
        as_prepared = loads and not others and blocked & installed == installed - LOADED
        found = prepared["cacheprovider" not in blocked, as_prepared]
        prepared.clear()
        found.invocation_params = config.Config.InvocationParams(args=args or (), plugins=plugins, dir=Path.cwd())
        found._parser.prog = prog or os.path.basename(sys.argv[0])
        found.pluginmanager.consider_preparse(found.invocation_params.args, exclude_only=True)
        return found

    vars(config)["get_config"] = hand_out


def remember_what_is_rewritten() -> None:
    """Find once which modules of installed plugins pytest rewrites: it looks through the files of their packages."""
    from _pytest.assertion import rewrite
    from _pytest.config import Config, get_config

    hook = rewrite.AssertionRewritingHook(get_config())
    search = Config._mark_plugins_for_rewrite
    search(get_config(), hook, disable_autoload=False)
    found = hook._must_rewrite

    def mark(self: Config, hook: rewrite.AssertionRewritingHook, disable_autoload: bool) -> None:
        search(self, hook, disable_autoload=True)
        if not disable_autoload:
            hook.mark_rewrite(*found)

    Config._mark_plugins_for_rewrite = mark  # type: ignore[method-assign]  # for the forks of this process alone


def names_of_plugins(arguments: Sequence[str]) -> list[str]:
    """Return what the options ``-p`` name, as pytest looks for them before it knows its options."""
    following = itertools.chain(arguments[1:], [""])
    pairs = zip(arguments, following, strict=True)
    return [(after if text == "-p" else text[2:]).strip() for text, after in pairs if text.startswith("-p")]


def shorten_interruptions() -> None:
    """Have pytest format of an interruption the line that it prints: else it parses all files that it came through."""
    from _pytest.terminal import TerminalReporter

    with_source = TerminalReporter.pytest_keyboard_interrupt

    def without_source(self: Any, excinfo: Any) -> None:
        if self.config.option.fulltrace:
            with_source(self, excinfo)
        else:
            self._keyboardinterrupt_memo = excinfo.getrepr(style="native", chain=False)

    # For the forks of this process alone.
    TerminalReporter.pytest_keyboard_interrupt = without_source  # type: ignore[method-assign]


def is_hook(name: str) -> bool:
    return name.startswith("pytest_")


def names_in(known: Mapping[Any, list[str]], holder: Any) -> list[str]:
    """Return what ``dir`` does, of what is known without what nobody looks for."""
    owner = holder if type(holder) is ModuleType else type(holder)
    return known[owner] if owner in known else dir(holder)


def hook_up_rewriting(packages: list[str]) -> Any:
    """Let pytest rewrite the assertions of these packages as they are imported; return what does."""
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    hook = install_importhook(get_config())
    hook.mark_rewrite(*packages)
    return hook


if __name__ == "__main__":
    main()
