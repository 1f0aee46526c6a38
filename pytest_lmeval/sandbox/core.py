"""Call functions of an untrusted program, evaluate expressions in it, run it as a script, and test it."""

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
# No program that a model writes defines more functions.
MOST_NAMES = 10_000
# This text cannot be the name of a function.
CHANGES = "changes to arguments"


class Sandbox:
    """Runs programs at one level of confinement, each in a separate process; threads may share a sandbox.

    Each method that takes a ``program`` runs it once, within ``limits``, and returns a `ProgramRun`, even if the
    program fails. The methods raise `SandboxError` only if the sandbox itself fails. At most ``parallel`` programs run
    at a time; further programs wait. The sandbox raises a memory limit below ``memory_bytes`` to that value. As a
    context manager, the sandbox closes itself.
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
        """The name of the level of confinement."""
        return self.confinement.name

    def call(self, program: str, function: str, calls: Iterable[Sequence[Any]], limits: Limits) -> ProgramRun:
        """Call the program's ``function`` once for each list of JSON-like arguments in ``calls``."""
        requests = [_call(function, list(args)) for args in calls]
        return self._twice(lambda: self._answers(program, requests, limits))

    def evaluate(self, program: str, expressions: Iterable[str], limits: Limits) -> ProgramRun:
        """Evaluate Python expressions in order in the program's namespace."""
        requests = [{"op": "evaluate", "source": source} for source in expressions]
        return self._twice(lambda: self._answers(program, requests, limits))

    def script(self, program: str, limits: Limits, stdin: str = "") -> ProgramRun:
        """Run the program as ``__main__`` to its end, with the text ``stdin`` as its standard input.

        The status is ``pass`` if the program reached its end, or called ``sys.exit()`` with status 0. After a call to
        ``sys.exit()``, the only answer is ``raised`` with the text ``SystemExit: 0``. A secret token marks the report
        of the program's end; a program that finds the token in its process can forge the report.
        """
        return self._twice(lambda: self._script(program, limits, stdin))

    def check(self, program: str, tests: str, entry_point: str, limits: Limits) -> ProgramRun:
        """Run ``check(candidate)`` from the source ``tests`` in a second process; the candidate is ``entry_point``.

        When the tests call the candidate or another of the program's functions, the sandbox forwards the call to the
        program's process. Arguments and values cross between the processes as plain data, as do changes to lists, dicts
        and sets that the tests pass. Exceptions of built-in types are raised again in the tests. The program shares no
        object with the tests, so it cannot find or change their expected values. A program fails if it returns anything
        other than plain data. The status is ``pass`` if the tests ran to their end. The run is ``forgeable`` if the
        program could influence its tests, because they called a function other than the candidate, or because the
        candidate changed its arguments.
        """
        return self._twice(lambda: self._check(program, tests, entry_point, limits))

    def probe(self) -> tuple[str, ...]:
        """Try the actions that the level's layers forbid; return the layers that do not work on this machine."""
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
                if isinstance(error, MissingLayersError):  # a second try does not change the kernel
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
    """Forward calls from the tests to the program, and answers back to the tests, until the tests end.

    Add the names of the called functions to ``relied``, and also `CHANGES` if a call changed its arguments.
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
    """Return the beginning of the description at the end of a message, or ""."""
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
        # Escape lone surrogates, which UTF-8 cannot represent.
        reason=reason.encode("utf-8", "backslashreplace").decode("utf-8"),
        stdout_whole=stdout.total <= stdout.limit,
    )
