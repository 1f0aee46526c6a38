"""Call, evaluate, run and test an untrusted program."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.errors import SandboxError, UsageError
from pytest_lmeval.sandbox.forkserver import MissingLayersError
from pytest_lmeval.sandbox.inside.wire import UnfitError
from pytest_lmeval.sandbox.levels import Level
from pytest_lmeval.sandbox.results import Answer, CodeStatus, Limits, ProgramRun
from pytest_lmeval.sandbox.session import Launcher, ProgramEndError, Session
from pytest_lmeval.sandbox.values import tagged

NO_KEYWORDS: Mapping[str, Any] = {"dict": []}
NONE = Answer("none")
LONGEST_TEXT = 600
# A program that a model writes has fewer functions.
MOST_NAMES = 10_000
# Not a valid name of a function.
CHANGES = "changes to arguments"


class Sandbox:
    """Runs programs at one level of confinement, each in its own process; safe to share between threads.

    Every method that takes a ``program`` runs it once, within ``limits``, and always returns a `ProgramRun`. Each of
    these methods raises `SandboxError` if starting a process fails twice in a row. At most ``parallel`` programs run at
    a time; further programs wait for their turn. A limit on memory below ``memory_bytes`` is raised to that value. As a
    context manager, the sandbox closes itself at the end.
    """

    def __init__(self, level: Level, launcher: Launcher, parallel: int = 1, memory_bytes: int = 0) -> None:
        self.confinement = level
        self.parallel = parallel
        self._launcher = launcher
        self._turns = threading.BoundedSemaphore(parallel)
        self._memory_bytes = memory_bytes

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that serve several programs; a later program starts new processes."""
        self._launcher.close()

    @property
    def level(self) -> str:
        """The level's name."""
        return self.confinement.name

    def call(self, program: str, function: str, calls: Iterable[Sequence[Any]], limits: Limits) -> ProgramRun:
        """Call ``function`` of the program once per entry of ``calls``, which are lists of JSON-like arguments."""
        requests = [_call(function, list(args)) for args in calls]
        return self._twice(lambda: self._answers(program, requests, limits))

    def evaluate(self, program: str, expressions: Iterable[str], limits: Limits) -> ProgramRun:
        """Evaluate Python expressions, one after another, in the program's namespace."""
        requests = [{"op": "evaluate", "source": source} for source in expressions]
        return self._twice(lambda: self._answers(program, requests, limits))

    def script(self, program: str, limits: Limits, stdin: str = "") -> ProgramRun:
        """Run the program as ``__main__`` to its end; it can read ``stdin``.

        The status is ``pass`` if the program reached its end. ``sys.exit()`` with the status 0 passes, too, but the
        only answer is then ``raised`` with the text ``SystemExit: 0``. A program that finds the token for this report
        in its own process can forge the report.
        """
        return self._twice(lambda: self._script(program, limits, stdin))

    def check(self, program: str, tests: str, entry_point: str, limits: Limits) -> ProgramRun:
        """Run ``check(candidate)`` of the source ``tests`` in a second process, against the program's ``entry_point``.

        The candidate, and each other function of the program that the tests name, is a call into the program's process.
        Arguments and values cross as plain data, including changes to lists, dicts and sets that were passed;
        exceptions of built-in types are raised again. The program thus shares no object with the tests, and cannot find
        or change what the tests expect. A program that returns anything but plain data fails. The status is ``pass`` if
        the tests ran to their end. The run is ``forgeable`` if the tests called a function of the program besides the
        candidate, or if the candidate changed its arguments. In both cases, the program influences its own tests.
        """
        return self._twice(lambda: self._check(program, tests, entry_point, limits))

    def probe(self) -> tuple[str, ...]:
        """Try the actions that the layers of the level forbid; return the layers that do not work on this machine."""
        try:
            runs = {name: self.call(probe, "f", [[]], Limits()) for name, probe in self.confinement.layers.items()}
        except MissingLayersError as error:
            return tuple(name for name, _ in error.layers)
        return tuple(name for name, run in runs.items() if run.status != "pass" or run.answers[0].value is not True)

    def _twice(self, run: Callable[[], ProgramRun]) -> ProgramRun:
        with self._turns:
            try:
                return run()
            except SandboxError as error:
                if isinstance(error, MissingLayersError):  # trying again does not change the kernel
                    raise
                return run()

    def _session(self, limits: Limits) -> Session:
        if limits.memory_bytes is not None and limits.memory_bytes < self._memory_bytes:
            limits = replace(limits, memory_bytes=self._memory_bytes)
        return Session(self._launcher, limits)

    def _answers(self, program: str, requests: Sequence[Mapping[str, Any]], limits: Limits) -> ProgramRun:
        answers: list[Answer] = []
        with self._session(limits) as session:
            status, reason, _ = _load(session, program)
            try:
                for request in requests if status == "pass" else ():
                    answers.append(_answer(session.ask(request, keep=True)))
            except ProgramEndError as ended:
                status, reason = ended.status, str(ended)
        answers += [NONE] * (len(requests) - len(answers))
        raised = [answer.text for answer in answers if answer.kind == "raised"]
        if status == "pass" and raised:
            status, reason = "error", raised[0]
        return _run(session, status, reason, answers)

    def _script(self, program: str, limits: Limits, stdin: str) -> ProgramRun:
        token = secrets.token_hex(16)
        with self._session(limits) as session:
            try:
                kind, *parts = session.ask({"op": "script", "source": _source(program), "token": token, "stdin": stdin})
            except ProgramEndError as ended:
                status, reason, answer = ended.status, str(ended), NONE
            else:
                status, reason, answer = _ending(kind, parts, token)
        return _run(session, status, reason, [answer])

    def _check(self, program: str, tests: str, entry_point: str, limits: Limits) -> ProgramRun:
        with self._session(limits) as session, self._session(limits) as judge:
            status, reason, names = _load(session, program)
            if status == "pass" and entry_point.partition(".")[0] not in names:
                status, reason = "error", f"the program defines no function {entry_point!r}"
            relied: set[str] = set()
            if status == "pass":
                question = {"op": "tests", "source": _source(tests), "entry_point": entry_point, "names": names}
                status, reason = _judge(session, judge, question, relied)
        return replace(_run(session, status, reason, ()), forgeable=bool(relied - {entry_point}))


def _source(program: str) -> str:
    return program.removeprefix("\ufeff")


def _call(function: str, args: list[Any]) -> dict[str, Any]:
    try:
        return {"op": "call", "name": function, "args": tagged(args), "kwargs": NO_KEYWORDS}
    except UnfitError as error:
        raise UsageError(f"an argument of {function!r} cannot be passed to the sandbox: {error}") from error


def _load(session: Session, program: str) -> tuple[CodeStatus, str, list[str]]:
    try:
        kind, *parts = session.ask({"op": "load", "source": _source(program)})
    except ProgramEndError as ended:
        return ended.status, str(ended), []
    if kind == "loaded" and len(parts) == 1 and isinstance(parts[0], list):
        return "pass", "", [name for name in parts[0][:MOST_NAMES] if isinstance(name, str)]
    return ("syntax_error" if kind == "syntax" else "error"), _text(parts), []


def _answer(message: Sequence[Any]) -> Answer:
    kind, *parts = message
    if kind == "value" and len(parts) == 2:
        return Answer("value", parts[0])
    return Answer("raised" if kind == "raised" else "unfit", text=_text(parts))


def _ending(kind: str, parts: list[Any], token: str) -> tuple[CodeStatus, str, Answer]:
    if kind == "syntax":
        return "syntax_error", _text(parts), Answer("raised", text=_text(parts))
    if kind != "ended" or len(parts) != 3 or parts[0] != token:
        return "error", "the program wrote to the result pipe itself", NONE
    text = _text(parts)
    if text in ("", "SystemExit: 0"):
        return "pass", "", Answer("raised", text=text) if text else Answer("value")
    return "error", text, Answer("raised", text=text)


def _judge(session: Session, judge: Session, question: Mapping[str, Any], relied: set[str]) -> tuple[CodeStatus, str]:
    """Pass calls from the tests to the program and values back, until the tests end.

    Add to ``relied`` the names that the tests called, and `CHANGES` if a call changed their data.
    """
    try:
        message = judge.ask(question)
        while message[0] == "call" and len(message) == 4:
            _, name, args, kwargs = message
            answer = session.ask({"op": "call", "name": name, "args": args, "kwargs": kwargs})
            relied |= {str(name)} | ({CHANGES} if answer[0] == "value" and answer[-1] is not None else set())
            message = judge.ask(answer)
    except ProgramEndError as ended:
        return ended.status, str(ended)
    if message == ["passed"]:
        return "pass", ""
    failed = message[0] == "raised" and message[1:2] == ["AssertionError"]
    return ("assertion_fail" if failed else "error"), _text(message[1:])


def _text(parts: Sequence[Any]) -> str:
    """Return the beginning of a message's description, which is its last part."""
    return parts[-1][:LONGEST_TEXT] if parts and isinstance(parts[-1], str) else ""


def _run(session: Session, status: CodeStatus, reason: str, answers: Sequence[Answer]) -> ProgramRun:
    if session.denies and reason.startswith("PermissionError:"):
        reason += " (the sandbox denies it)"
    stdout, stderr = session.pipes.stdout, session.pipes.stderr
    return ProgramRun(
        status=status,
        answers=tuple(answers),
        stdout=stdout.text,
        stderr=stderr.text,
        # A lone surrogate could not be written as UTF-8.
        reason=reason.encode("utf-8", "backslashreplace").decode("utf-8"),
        stdout_whole=stdout.total <= stdout.limit,
    )
