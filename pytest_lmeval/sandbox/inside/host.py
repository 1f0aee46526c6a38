"""Run a program in this process, and answer one request at a time with values.

A program can find any object in this process through frames or the garbage collector, so no expected value and no
verdict may enter the process. The only secret in the process is the token that reports the end of a script
(`Host.script`).
"""

from __future__ import annotations

import atexit
import builtins
import sys
from io import TextIOWrapper
from os import O_CREAT, O_EXCL, O_RDWR, SEEK_SET, _exit, close, dup2, fdopen, getpid, lseek, unlink, write
from os import open as open_file
from types import CodeType, ModuleType

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

# Python's default is 1000, but programs for benchmarks may recurse once per element of their input.
RECURSION = 20_000
LONGEST_TEXT = 500
MODULE = "program"
STDIN = "stdin"
ENDS_OF_LOOPS = ("StopAsyncIteration", "StopIteration")


def serve(request: int, result: int, missing: tuple[str, str] | None) -> NoReturn:
    """Answer requests until the pipe closes; if a layer is ``missing``, report that and exit."""
    if missing:
        wire.reply(result, "missing", *missing)
        _exit(1)
    wire.reply(result, "ready")
    sys.argv = ["program.py"]
    sys.path.insert(0, "")
    sys.setrecursionlimit(RECURSION)
    # The limit on CPU time also ends long conversions.
    sys.set_int_max_str_digits(0)
    sys.dont_write_bytecode = True
    # An interpreter started with `-S` lacks these names.
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    Host(request, result).run()


class Host:
    """One program and its namespace."""

    def __init__(self, request: int, result: int) -> None:
        self.request = request
        self.result = result
        self.namespace: dict[str, Any] = {}
        self.streams = (sys.stdout, sys.stderr)
        self.excepthook = sys.excepthook
        self.builtins = frozenset(vars(builtins))

    def run(self) -> NoReturn:
        """Answer requests until the pipe closes."""
        pid = getpid()
        while True:
            try:
                message = wire.receive(self.request)
            except EOFError:
                _exit(0)
            answer = self._answer(message)
            self._flush()
            # If the program forked, two processes return here, but only the original process may answer.
            if getpid() != pid:
                _exit(0)
            self._reply(answer)

    def _answer(self, message: Mapping[str, Any]) -> tuple[Any, ...]:
        message = dict(message)
        operation: Callable[..., tuple[Any, ...]] = getattr(self, message.pop("op"))
        try:
            return operation(**message)
        except BaseException as error:
            return ("raised", *_describe(error))

    def _reply(self, answer: tuple[Any, ...]) -> None:
        try:
            wire.reply(self.result, *answer)
        except BaseException as error:
            # A large value may cause a MemoryError or RecursionError.
            wire.reply(self.result, "unfit", _describe(error)[1])

    def _flush(self) -> None:
        for stream in self.streams:
            try:
                stream.flush()
            except BaseException:
                # The program closed or replaced the stream; only the program's own output is lost.
                continue

    def load(self, source: str) -> tuple[Any, ...]:
        """Execute the program as a module that is not ``__main__``; return the names of its callables."""
        code = _compile(source)
        if isinstance(code, str):
            return "syntax", code
        self.namespace = _module(MODULE).__dict__
        exec(code, self.namespace)
        names = [name for name, value in list(self.namespace.items()) if callable(value) and not name.startswith("__")]
        return "loaded", names

    def call(self, name: str, args: list[Any], kwargs: Any) -> tuple[Any, ...]:
        """Call a function; return its value, and the positional arguments if the call changed them."""
        owner, _, method = name.partition(".")
        if owner not in self.namespace:
            return "raised", "NameError", f"NameError: the program defines no {owner!r}"
        positional = wire.unpack(args)
        before = wire.encode(positional)
        function = getattr(self.namespace[owner](), method) if method else self.namespace[owner]
        value = function(*positional, **wire.unpack(kwargs))
        return "value", value, _changed(positional, before)

    def evaluate(self, source: str) -> tuple[Any, ...]:
        """Evaluate one expression in the program's namespace, and return its value."""
        return "value", eval(compile(source, "<target>", "eval", dont_inherit=True), self.namespace), None

    def script(self, source: str, token: str, stdin: str) -> tuple[Any, ...]:
        """Run the program as ``__main__`` to its end, including its threads and exit handlers."""
        code = _compile(source)
        if isinstance(code, str):
            return "syntax", code
        if stdin:
            _feed(stdin)
        failure = self._run_main(code)
        _finish()
        return ("ended", token, *failure)

    def _run_main(self, code: CodeType) -> tuple[str, str]:
        try:
            exec(code, _module("__main__").__dict__)
        except SystemExit as error:
            return _describe(error) if error.code not in (None, 0) else ("SystemExit", "SystemExit: 0")
        except BaseException as error:
            trace = error.__traceback__
            # Drop this frame, so that the traceback begins in the program.
            own = error.with_traceback(trace.tb_next if trace else None)
            self.excepthook(type(own), own, own.__traceback__)
            return _describe(error)
        return "", ""

    def tests(self, source: str, entry_point: str, names: list[str]) -> tuple[Any, ...]:
        """Run ``check(candidate)`` here; proxies forward calls to the program's process."""
        # A program's function called `abs`, for example, must not replace the built-in in the tests.
        lent = {name for name in names if name.isidentifier() and name not in self.builtins and name[:2] != "__"}
        proxies = {name: Proxy(name, self.request, self.result) for name in lent | {entry_point}}
        module = _module("tests").__dict__
        module.update(proxies)
        exec(compile(source, "<tests>", "exec", dont_inherit=True), module)
        module["check"](proxies[entry_point])
        return ("passed",)


def _compile(source: str) -> CodeType | str:
    try:
        return compile(source, "<program>", "exec", dont_inherit=True)
    except Exception as error:
        # NUL bytes, lone surrogates and deep nesting raise exceptions other than SyntaxError.
        return _describe(error)[1]


def _feed(text: str) -> None:
    """Make ``text`` this process's stdin; use a file, because a pipe cannot hold a long string."""
    file = open_file(STDIN, O_RDWR | O_CREAT | O_EXCL, 0o600)
    unlink(STDIN)
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[write(file, data) :]
    lseek(file, 0, SEEK_SET)
    dup2(file, 0)
    close(file)
    sys.stdin = TextIOWrapper(fdopen(0, "rb", closefd=False), encoding="utf-8")


def _module(name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def _changed(args: list[Any], before: str) -> list[Any] | None:
    try:
        return None if wire.encode(args) == before else args
    except wire.UnfitError:
        return None


def _finish() -> None:
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        # Python also ignores these exceptions when it exits.
        return


def _describe(error: BaseException) -> tuple[str, str]:
    """Return the name of an exception's type, and a description with the name and the exception's text."""
    name = type.__dict__["__name__"].__get__(type(error))
    try:
        text = str.__str__(str(error))
    except BaseException:
        text = ""
    return name, f"{name}: {text}"[:LONGEST_TEXT] if text else name


class CandidateError(Exception):
    """The program raised an exception that the tests cannot raise again, or returned a value that is not plain data."""


class Proxy:
    """Represents one of the program's functions in the tests; the parent forwards calls to the program's process."""

    def __init__(self, name: str, request: int, result: int) -> None:
        self.__name__ = self.__qualname__ = name
        self._pipes = request, result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return or raise what the program's function returned or raised, and change the arguments as it did."""
        request, result = self._pipes
        wire.reply(result, "call", self.__name__, list(args), kwargs)
        kind, *parts = wire.receive(request)
        if kind != "value":
            raise _exception(kind, *parts)
        value, after = wire.unpack(parts)
        for arg, now in zip(args, after or (), strict=False):
            _repeat(arg, now)
        return value


def _exception(kind: str, name: str, text: str = "") -> Exception:
    if kind != "raised":
        return CandidateError(name)
    builtin = getattr(builtins, name, None)
    # An exception that ends loops could end a loop in the tests, and skip the remaining checks.
    if isinstance(builtin, type) and issubclass(builtin, Exception) and name not in ENDS_OF_LOOPS:
        # Use __new__, because some exceptions need arguments other than one string.
        made = builtin.__new__(builtin)
        made.args = (text.removeprefix(f"{name}: "),)
        return made
    return CandidateError(text)


def _repeat(arg: Any, now: Any) -> None:
    if isinstance(arg, list):
        arg[:] = now
    elif isinstance(arg, (dict, set)):
        arg.clear()
        arg.update(now)
