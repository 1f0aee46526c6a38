"""A conversation between the model under test and a simulated user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.persona import DONE, MAX_TURNS, Persona
from pytest_lmeval.formats.turning import Script, by_turn, messages_of
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.question import UNREAD, dialogue
from pytest_lmeval.task import Aside
from pytest_lmeval.types import Exchange, Generate, Message


@dataclass(frozen=True, slots=True)
class PlayedScript:
    """Asks for the user's messages turn by turn; ``tools`` answers the calls."""

    persona: Persona
    tools: Script

    def opening(self, first: Generate) -> Aside:
        """Return the request for the user's first message; the example contributes its system message only."""
        system = [message for message in messages_of(first) if message.role == "system"]
        return self._aside(first, system, ())

    def __call__(self, exchanges: Sequence[Exchange]) -> Generate | Aside | None:
        """Return the request after ``exchanges``, to the model or the user; None at the end."""
        turns, talk, last = by_turn(exchanges), self.tools.talk(exchanges), exchanges[-1].request
        if self.tools.goes_on(turns[-1]):
            return replace(last, prompt=tuple(talk))
        if len(turns) == self.persona.max_turns:
            return None
        return self._aside(last, talk, [(_said(turn[0]), turn[-1].response.text) for turn in turns])

    def ended(self, turns: int) -> str:
        """Return how a conversation of ``turns`` turns ended."""
        return MAX_TURNS if turns == self.persona.max_turns else DONE

    def _aside(self, last: Generate, talk: Sequence[Message], pairs: Sequence[tuple[str, str]]) -> Aside:
        request = partial(Generate, task=last.task, id=last.id, repeat=last.repeat)
        question = self.persona.question("user", pairs, request)
        steps = dialogue(question)

        def take(reply: str) -> Generate | Aside | None:
            try:
                return Aside(question.request(steps.send(reply)), take)
            except StopIteration as end:
                found, unread = end.value
            if unread:
                raise ScoringError(unread.replace(UNREAD, "the reply of the user is no", 1))
            text, done = found
            return None if done else replace(last, prompt=(*talk, Message("user", text)))

        return Aside(question.request(next(steps)), take)


def _said(exchange: Exchange) -> str:
    return next(message.content for message in reversed(messages_of(exchange.request)) if message.role == "user")
