"""The sandbox: what can be asked of a program that nobody trusts."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.errors import SandboxError, UsageError
from pytest_lmeval.sandbox.inside.wire import UnfitError
from pytest_lmeval.sandbox.levels import LEVELS, Level
from pytest_lmeval.sandbox.results import Answer, CodeStatus, Limits, Run
from pytest_lmeval.sandbox.session import ProgramEndError, Session
from pytest_lmeval.sandbox.values import tagged

__all__ = ["Sandbox", "open_sandbox"]

NO_KEYWORDS: Mapping[str, Any] = {"dict": []}
NONE = Answer("none")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs programs at one level of confinement, each in a process of its own; safe to share between threads.

    Every method runs ``program`` once, within ``limits``, and returns a `Run` whatever the program does. Each raises
    `SandboxError` if there could be no process at all, twice in a row.
    """

    confinement: Level

    @property
    def level(self) -> str:
        """The level's name."""
        return self.confinement.name

    def call(self, program: str, function: str, calls: Iterable[Sequence[Any]], limits: Limits) -> Run:
        """Call ``function`` of the program once per entry of ``calls``, which are lists of JSON-like arguments."""
        requests = [_call(function, {"args": list(args)}) for args in calls]
        return _twice(lambda: self._answers(program, requests, limits))

    def evaluate(self, program: str, expressions: Iterable[str], limits: Limits) -> Run:
        """Evaluate Python expressions, one after another, in the namespace of the program."""
        requests = [{"op": "evaluate", "source": source} for source in expressions]
        return _twice(lambda: self._answers(program, requests, limits))

    def script(self, program: str, limits: Limits) -> Run:
        """Run the program as ``__main__``, with an empty stdin, to its very end.

        The status is ``pass`` if it got there. ``sys.exit()`` with the status 0 is an end, too, but then the one
        answer is ``raised`` with the text ``SystemExit: 0``. A program that searches its own process for the token
        that reports the end can report one that it did not reach.
        """
        return _twice(lambda: self._script(program, limits))

    def check(self, program: str, tests: str, entry_point: str, limits: Limits) -> Run:
        """Run ``check(candidate)`` of the source ``tests`` in a second process, against the program's ``entry_point``.

        The candidate that the tests see, and each other function of the program that they name, is a call into the
        process of the program. Arguments and values cross as plain data, changes to lists, dicts and sets that were
        passed included; exceptions of Python's own types are raised again. So the program shares no object with the
        tests, and can't find or change what they expect. The price: a program that returns something else, like an
        object of a class of its own, fails. The status is ``pass`` if the tests ran to their end. The run is
        ``forgeable`` if the tests called another function of the program than the candidate, because what they then
        make of the candidate's values is up to the program.
        """
        return _twice(lambda: self._check(program, tests, entry_point, limits))

    def probe(self) -> tuple[str, ...]:
        """Return the names of the level's layers that do not hold on this machine, by trying what they forbid."""
        return tuple(layer.name for layer in self.confinement.layers if not self._holds(layer.probe))

    def _holds(self, probe: str) -> bool:
        run = self.call(probe, "f", [[]], Limits())
        return run.status == "pass" and run.answers[0].value is True

    def _answers(self, program: str, requests: Sequence[Mapping[str, Any]], limits: Limits) -> Run:
        answers: list[Answer] = []
        with Session(self.confinement, limits) as session:
            status, reason, _ = _load(session, program)
            try:
                for request in requests if status == "pass" else ():
                    answers.append(_answer(session.ask(request)))
            except ProgramEndError as ended:
                status, reason = ended.status, str(ended)
        answers += [NONE] * (len(requests) - len(answers))
        if status == "pass":
            status, reason = _worst(answers)
        return _run(session, status, reason, answers)

    def _script(self, program: str, limits: Limits) -> Run:
        token = secrets.token_hex(16)
        with Session(self.confinement, limits) as session:
            try:
                kind, *parts = session.ask({"op": "script", "source": _source(program), "token": token})
            except ProgramEndError as ended:
                status, reason, answer = ended.status, str(ended), NONE
            else:
                status, reason, answer = _ending(kind, parts, token)
        return _run(session, status, reason, [answer])

    def _check(self, program: str, tests: str, entry_point: str, limits: Limits) -> Run:
        with Session(self.confinement, limits) as session, Session(self.confinement, limits) as judge:
            status, reason, names = _load(session, program)
            if status == "pass" and entry_point not in names:
                status, reason = "error", f"the program defines no function {entry_point!r}"
            called: set[str] = set()
            if status == "pass":
                question = {"op": "tests", "source": _source(tests), "entry_point": entry_point, "names": names}
                status, reason = _judge(session, judge, question, called)
        return replace(_run(session, status, reason, ()), forgeable=bool(called - {entry_point}))


def open_sandbox(level: str = "process") -> Sandbox:
    """Return a sandbox of the named level; raise `UsageError` if there is none of that name."""
    if level not in LEVELS:
        raise UsageError(f"unknown sandbox level {level!r} (choices: {', '.join(sorted(LEVELS))})")
    if os.name != "posix":
        raise UsageError(f"sandbox level {level!r} needs a POSIX system, not {os.name!r}")
    return Sandbox(LEVELS[level])


def _twice(run: Callable[[], Run]) -> Run:
    try:
        return run()
    except SandboxError:
        return run()


def _source(program: str) -> str:
    return program.removeprefix("\ufeff")


def _call(function: str, args: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"op": "call", "name": function, "args": tagged(args["args"]), "kwargs": NO_KEYWORDS}
    except UnfitError as error:
        raise UsageError(f"an argument of {function!r} cannot be passed to the sandbox: {error}") from error


def _load(session: Session, program: str) -> tuple[CodeStatus, str, list[str]]:
    try:
        kind, *parts = session.ask({"op": "load", "source": _source(program)})
    except ProgramEndError as ended:
        return ended.status, str(ended), []
    if kind == "loaded" and len(parts) == 1 and isinstance(parts[0], list):
        return "pass", "", [name for name in parts[0] if isinstance(name, str)]
    return ("syntax_error" if kind == "syntax" else "error"), _text(parts), []


def _answer(message: Sequence[Any]) -> Answer:
    kind, *parts = message
    if kind == "value" and len(parts) == 2:
        return Answer("value", parts[0])
    return Answer("raised" if kind == "raised" else "unfit", text=_text(parts))


def _worst(answers: Sequence[Answer]) -> tuple[CodeStatus, str]:
    first = next((answer for answer in answers if answer.kind == "raised"), None)
    return ("error", first.text) if first else ("pass", "")


def _ending(kind: str, parts: list[Any], token: str) -> tuple[CodeStatus, str, Answer]:
    if kind == "syntax":
        return "syntax_error", _text(parts), Answer("raised", text=_text(parts))
    if kind != "ended" or len(parts) != 3 or parts[0] != token:
        return "error", "the program wrote to the result pipe itself", NONE
    text = _text(parts)
    if text in ("", "SystemExit: 0"):
        return "pass", "", Answer("raised", text=text) if text else Answer("value")
    return "error", text, Answer("raised", text=text)


def _judge(session: Session, judge: Session, question: Mapping[str, Any], called: set[str]) -> tuple[CodeStatus, str]:
    """Carry calls from the tests to the program and values back, until the tests are done; note what is ``called``."""
    try:
        message = judge.ask(question)
        while message[0] == "call" and len(message) == 4:
            _, name, args, kwargs = message
            called.add(str(name))
            message = judge.ask(session.ask({"op": "call", "name": name, "args": args, "kwargs": kwargs}))
    except ProgramEndError as ended:
        return ended.status, str(ended)
    if message == ["passed"]:
        return "pass", ""
    failed = message[0] == "raised" and message[1:2] == ["AssertionError"]
    return ("assertion_fail" if failed else "error"), _text(message[1:])


def _text(parts: Sequence[Any]) -> str:
    """Return the description in a message, which is its last part."""
    return parts[-1] if parts and isinstance(parts[-1], str) else ""


def _run(session: Session, status: CodeStatus, reason: str, answers: Sequence[Answer]) -> Run:
    stdout, stderr = session.pipes.stdout, session.pipes.stderr
    return Run(
        status=status,
        answers=tuple(answers),
        stdout=stdout.text,
        stderr=stderr.text,
        # A lone surrogate in a message would break whoever writes it out as UTF-8.
        reason=reason.encode("utf-8", "backslashreplace").decode("utf-8"),
        stdout_whole=stdout.total <= stdout.limit,
    )
