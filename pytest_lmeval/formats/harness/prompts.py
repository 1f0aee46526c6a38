"""The context of one row: description, few-shot examples, the question; as text, or as the messages of a chat."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.types import Message

SEED = 1234


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One message, and the ``delimiter`` that follows it in plain text."""

    role: str
    text: str
    delimiter: str = ""


class Shots:
    """Draws the few-shot examples of each row, one row after another: what is drawn depends on all earlier rows."""

    def __init__(self, sampler: str, pool: Sequence[Row], count: int, drops_itself: bool) -> None:
        self._sampler, self._pool, self._count, self._drops_itself = sampler, [*pool], count, drops_itself
        self._random = random.Random(SEED)
        self._drawn: list[Sequence[Row]] = []
        self._rows: Sequence[Row] = ()

    def of(self, rows: Sequence[Row], place: int) -> Sequence[Row]:
        """Return the examples of the row at ``place``; those of all rows up to it are drawn."""
        while len(self._drawn) <= place:
            self._drawn.append(self._draw(rows[len(self._drawn)]))
        return self._drawn[place]

    def _draw(self, row: Row) -> Sequence[Row]:
        if self._count == 0:
            return ()
        others = [each for each in self._pool if each != row] if self._drops_itself else self._pool
        if self._sampler == "first_n":
            chosen: Sequence[Row] = others[: self._count]
        elif not self._drops_itself:
            chosen = self._sample(self._pool, self._count)
        else:
            # One more is drawn than is needed, for the row itself may be among them.
            chosen = [each for each in self._sample(self._pool, self._count + 1) if each != row][: self._count]
            if len(chosen) < self._count:
                chosen = self._sample(others, self._count)
        if len(chosen) < self._count:
            raise RecordRefused("bad_value", "num_fewshot", f"{self._count}; there are {len(others)} to draw from")
        return chosen

    def _sample(self, pool: Sequence[Row], count: int) -> Sequence[Row]:
        if count > len(pool):
            raise RecordRefused("bad_value", "num_fewshot", f"{self._count}; there are {len(pool)} to draw from")
        return self._random.sample(pool, count)


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """Builds contexts; ``chat`` is ``off``, ``multiturn`` or ``single``, ``system`` an instruction ahead of all."""

    config: Config
    documents: Documents
    system: str = ""
    chat: str = "off"
    has_inputs: bool = False

    def contexts(self, row: Row, shots: Sequence[Row]) -> list[list[ContextPart]]:
        """Return the parts of each context: one, or one for each choice where the choices are the inputs."""
        documents, config = self.documents, self.config
        description = documents.field(row, config.get("description", "")) or ""
        first = joined(self.system, description, config.fewshot_delimiter)
        parts = [ContextPart("system", first)] if first else []
        for shot in shots:
            parts += self._shot(shot)
        prefix = documents.field(row, config.get("gen_prefix"))
        if self.has_inputs:
            return [[*parts, *_turn(each, None, prefix, "", "")] for each in documents.choices(row)]
        question = _text(documents.text(row), "doc_to_text")
        return [[*parts, *_turn(question, None, prefix, config.target_delimiter, "")]]

    def _shot(self, shot: Row) -> Iterator[ContextPart]:
        settings, documents = self.config.shots, self.documents
        question = documents.text(shot, settings["doc_to_text"])
        answer = documents.target(shot, settings["doc_to_target"])
        choices = documents.choices(shot, settings["doc_to_choice"]) if settings["doc_to_choice"] is not None else None
        if self.has_inputs:
            question, choices = (choices or [])[question], None
        if choices and isinstance(answer, int):
            answer = choices[answer]
        elif isinstance(answer, list):
            answer = answer[0]
        prefix = documents.field(shot, settings["gen_prefix"])
        delimiters = settings["target_delimiter"], settings["fewshot_delimiter"]
        return _turn(_text(question, "doc_to_text"), _text(answer, "doc_to_target"), prefix, *delimiters)


def text_of(parts: Sequence[ContextPart]) -> str:
    """Return a context as plain text."""
    return "".join(part.text + part.delimiter for part in parts)


def messages_of(parts: Sequence[ContextPart], chat: str) -> tuple[Message, ...]:
    """Return a context as messages; of ``single`` all turns but a beginning of the answer are one."""
    if chat == "single":
        parts = _single(parts)
    return tuple(Message(part.role, part.text) for part in parts)


def _single(parts: Sequence[ContextPart]) -> list[ContextPart]:
    before = [part for part in parts[:1] if part.role == "system"]
    after = [part for part in parts[-1:] if part.role == "assistant"]
    turns = [*parts[len(before) : len(parts) - len(after)]]
    turns[-1] = replace(turns[-1], delimiter="")
    return [*before, ContextPart("user", text_of(turns)), *after]


def _turn(question: str, answer: str | None, prefix: str | None, delimiter: str, end: str) -> Iterator[ContextPart]:
    has_answer = answer is not None and answer != ""
    follows = has_answer and not prefix
    between = bool(prefix) and bool(question) and not (question[-1].isspace() or str(prefix)[0].isspace())
    yield ContextPart("user", question, delimiter if follows or between else "")
    if answer is not None and has_answer:
        yield ContextPart("assistant", joined(prefix, answer, " "), end)
    elif prefix:
        yield ContextPart("assistant", prefix)


def joined(first: str | None, second: str | None, delimiter: str) -> str:
    """Return both texts, with ``delimiter`` between them unless one is empty or a blank is at the seam."""
    if not first or not second:
        return first or second or ""
    return first + ("" if first[-1].isspace() or second[0].isspace() else delimiter) + second


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise RecordRefused("bad_type", key, f"expected text, got {value!r:.80}")
    return value
