"""Provide ``lm.user``, which lets a model simulate a user who talks to the application."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.persona import DONE, MAX_TURNS, NO_USER, Persona
from pytest_lmeval.functions.asker import Asking
from pytest_lmeval.functions.judging import dialogue
from pytest_lmeval.judging import question as judged
from pytest_lmeval.types import Generate

if TYPE_CHECKING:
    from pytest_lmeval.functions.lm import BlockingLm, Lm, LmBase

Ended = Literal["done", "max_turns", ""]
_NO_REPLY = "the loop body did not call user.reply(...) for the user's message"


class _SimulatedUser:
    """A simulated user; when the conversation is over, ``ended`` is ``done`` or ``max_turns``."""

    def __init__(self, lm: LmBase, persona: Persona) -> None:
        self.ended: Ended = ""
        self._lm = lm
        self._state = state = lm._running
        self._asker = lm._services.user
        self._persona = persona
        self._talk: list[tuple[str, str]] = []
        self._last: str | None = None
        state.check_is_running("lm.user")
        try:
            persona.check()
        except RecordRefused as refused:
            self._state.refuse(f"lm.user: {refused.field}: {refused.detail}")
        if self._asker is None:
            self._state.refuse(f"lm.user: {NO_USER}")

    def reply(self, text: str) -> None:
        """Send the application's reply to the user's message; call this once per message."""
        self._state.check_is_running("user.reply(...)")
        if not isinstance(text, str):
            self._state.refuse(f"user.reply: expected the application's answer as text, got {text!r:.80}")
        if self._last is None or self.ended:
            self._state.refuse("user.reply: the user waits for no reply: call it once for each message")
        self._talk.append((self._last, str(text)))
        self._last, self._state.unanswered = None, ""

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation so far, as messages with ``role`` (``user`` or ``assistant``) and ``content``."""
        said = [
            {"role": role, "content": content}
            for pair in self._talk
            for role, content in zip(("user", "assistant"), pair, strict=True)
        ]
        return said if self._last is None else [*said, {"role": "user", "content": self._last}]

    def _next(self) -> Asking[str | None]:
        if self.ended:
            return None
        if self._last is not None:
            self._state.refuse(_NO_REPLY)
        if len(self._talk) == self._persona.max_turns:
            self.ended = MAX_TURNS
            return None
        state, asker = self._state, self._asker
        assert asker is not None
        request = partial(Generate, task=state.task, id=state.id, repeat=state.repeat)
        question = self._persona.question("lm.user", self._talk, request)
        found, unread, _ = yield from dialogue(state, "user", "lm.user", asker, question)
        if unread:
            state.refuse(f"lm.user: {unread.replace(judged.UNREAD, 'the reply of the user is no', 1)}")
        said: str = found[0]
        self._last = said or None
        if found[1]:
            self.ended = DONE
            return None
        self._state.unanswered = _NO_REPLY
        return said


class User(_SimulatedUser):
    """A simulated user for the loop ``async for said in user`` of an ``async def`` function."""

    _lm: Lm

    def __iter__(self) -> NoReturn:
        raise TypeError("lm.user in an async def function: write async for said in user")

    def __aiter__(self) -> User:
        return self

    async def __anext__(self) -> str:
        said = await self._lm._awaited(None, self._next())
        if said is None:
            raise StopAsyncIteration
        return said


class BlockingUser(_SimulatedUser):
    """A simulated user for the loop ``for said in user`` of a ``def`` function."""

    _lm: BlockingLm

    def __iter__(self) -> BlockingUser:
        return self

    def __next__(self) -> str:
        said = self._lm._waited(self._next())
        if said is None:
            raise StopIteration
        return said
