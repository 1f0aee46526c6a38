"""Make the example for a document: its few-shot examples, its prompt as text or chat, and its continuations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.formats.harness.measures import is_choice
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.groups import shown
from pytest_lmeval.types import Example, Generate, Message

SEED = 1234
_MOST_MADE = 10_000
_Pairs = tuple[list[list[str]], list[int | None]]
"""Pairs of context and continuation, and the number of each pair's context, or None for an empty context."""
_Part = tuple[Message, str]
"""A message, and the delimiter that follows it in plain text."""


class Shots:
    """Draws the few-shot examples row by row, since a draw depends on all earlier draws."""

    def __init__(self, sampler: str, pool: Sequence[Row], count: int, drops_itself: bool) -> None:
        self._sampler, self._pool, self._count, self._drops_itself = sampler, [*pool], count, drops_itself
        self._random = random.Random(SEED)
        self.made: dict[int, list[_Part]] = {}  # by the id() of a row; empty for tasks with functions
        self._drawn: list[Sequence[Row]] = []

    def of(self, rows: Sequence[Row], place: int) -> Sequence[Row]:
        """Return the few-shot examples for the row at ``place``; draw the examples of all earlier rows first."""
        while len(self._drawn) <= place:
            self._drawn.append(self._draw(rows[len(self._drawn)]) if self._count else ())
        return self._drawn[place]

    def _draw(self, row: Row) -> Sequence[Row]:
        others = [each for each in self._pool if each != row] if self._drops_itself else self._pool
        if self._sampler == "first_n":
            chosen: Sequence[Row] = others[: self._count]
        elif not self._drops_itself:
            chosen = self._sample(self._pool, self._count)
        else:
            # Draw one example more than needed: the row itself may be among the drawn examples.
            chosen = [each for each in self._sample(self._pool, self._count + 1) if each != row][: self._count]
        return chosen if len(chosen) == self._count else self._sample(others, self._count)

    def _sample(self, pool: Sequence[Row], count: int) -> Sequence[Row]:
        if count > len(pool):
            raise RecordRefused("bad_value", "num_fewshot", f"{self._count}; there are {len(pool)} to draw from")
        return self._random.sample(pool, count)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes one task's examples; few-shot examples depend on the rows before the example.

    ``chat`` is ``off``, ``multiturn`` or ``single``. ``system`` is an instruction that precedes everything else. If
    ``has_inputs`` is true, the choices are the inputs. ``own`` maps positions to gate fields of individual examples,
    and ``missed`` maps positions to targets that are not choices.
    """

    config: Config
    documents: Documents
    shots: Shots
    rows: Sequence[Row]
    decisive: str
    own: Mapping[int, Mapping[str, Any]]
    system: str = ""
    chat: str = "off"
    has_inputs: bool = False
    missed: dict[int, Any] = field(default_factory=dict)

    def make(self, place: int) -> Example:
        """Return the example for the row at ``place``; raise RecordRefused if the task cannot use the row."""
        try:
            return self._made(place)
        except ScoringError as error:  # raised by a function of the task
            raise RecordRefused("bad_value", "_function", str(error)) from None

    def _made(self, place: int) -> Example:
        row, kind = self.rows[place], self.config.output_type
        target = self.documents.target(row)
        metadata: dict[str, Any] = {**self.own.get(place, {}), "place": place, "pairs": []}
        if self.config.get("repeats", 1) > 1:
            metadata["repeats"] = 1  # the task's repeats give one score, so a run refuses --lm-repeats
        text = ""
        messages: tuple[Message, ...] = ()
        if kind == "loglikelihood_rolling":
            metadata["pairs"] = [["", str(target)]]
        else:
            contexts = self._contexts(row, self.shots.of(self.rows, place))
            talks = [_messages_of(parts, self.chat) for parts in contexts] if self.chat != "off" else []
            text, messages = _text_of(contexts[0]), talks[0] if talks else ()
            if kind != "generate_until":
                metadata["pairs"], owners = self._pairs(place, target, [*map(_text_of, contexts)])
                if talks:
                    pairs = [[[each.role, each.content] for each in talk] for talk in talks]
                    metadata["talks"] = [[] if owner is None else pairs[owner] for owner in owners]
        if self.config.get("doc_to_image") is not None:
            from pytest_lmeval.formats.harness.images import with_images

            messages = with_images(messages, self.documents.images(row), self.config.file.parent)
        return Example(
            str(place),
            Generate(messages).text if messages else text,
            self._targets(row, target),
            shown(self.decisive),
            metadata=metadata,
            line=1,
            messages=messages,
            place=place,
        )

    def _targets(self, row: Row, target: Any) -> tuple[str, ...]:
        if self.config.has_choices and isinstance(target, int) and not isinstance(target, bool):
            choices = self.documents.choices(row)
            return (choices[target],) if 0 <= target < len(choices) else (str(target),)
        return tuple(map(str, target)) if isinstance(target, list) else (str(target),)

    def _pairs(self, place: int, target: Any, texts: Sequence[str]) -> _Pairs:
        row, config = self.rows[place], self.config
        if config.output_type == "loglikelihood":
            return [[texts[0], str(target)]], [0]
        delimiter = config.get("target_delimiter")
        if self.chat != "off":
            prefix = config.get("gen_prefix")
            delimiter = delimiter if prefix and not prefix[-1].isspace() else ""
        choices = self.documents.choices(row)
        if not choices:
            raise RecordRefused("bad_value", "doc_to_choice", "expected an option, got an empty list")
        answer = self.documents.text(row) if self.has_inputs else target
        if not is_choice(answer, choices) and config.get("process_results") is None:
            self.missed[place] = answer
        owners: list[int | None]
        if self.has_inputs:
            pairs, owners = [[text, f"{delimiter}{target}"] for text in texts], [*range(len(texts))]
        else:
            pairs, owners = [[texts[0], delimiter + choice] for choice in choices], [0] * len(choices)
        if any(each.get("metric") == "acc_mutual_info" for each in config.get("metric_list", ())):
            pairs += [["", delimiter + choice] for choice in choices]
            owners += [None] * len(choices)
        return pairs, owners

    def _contexts(self, row: Row, shots: Sequence[Row]) -> list[list[_Part]]:
        """Return the parts of the context, or of one context per choice if the choices are the inputs."""
        documents, config = self.documents, self.config
        first = _joined(self.system, documents.field(row, config.get("description")), config.get("fewshot_delimiter"))
        parts = [(Message("system", first), "")] if first else []
        for shot in shots:
            parts += self.shots.made.get(id(shot)) or self._shot(shot)
        prefix = documents.field(row, config.get("gen_prefix"))
        if self.has_inputs:
            return [[*parts, *_turn(each, "", prefix, "", "")] for each in documents.choices(row)]
        question = _as_text(documents.text(row), "doc_to_text")
        return [[*parts, *_turn(question, "", prefix, config.get("target_delimiter"), "")]]

    def _shot(self, shot: Row) -> list[_Part]:
        documents, settings = self.documents, self.config.shots
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
        parts = [*_turn(_as_text(question, "doc_to_text"), _as_text(answer, "doc_to_target"), prefix, *delimiters)]
        known = {} if len(self.shots.made) > _MOST_MADE or self.config.functions else self.shots.made
        return known.setdefault(id(shot), parts)


def _text_of(parts: Sequence[_Part]) -> str:
    return "".join(message.content + delimiter for message, delimiter in parts)


def _messages_of(parts: Sequence[_Part], chat: str) -> tuple[Message, ...]:
    """Return a context as messages.

    If ``chat`` is ``single``, join all turns, except the beginning of the answer, into one user message.
    """
    messages = [message for message, _ in parts]
    if chat == "single":
        start = int(messages[0].role == "system")
        end = len(parts) - (messages[-1].role == "assistant")
        text = _text_of(parts[start : end - 1]) + messages[end - 1].content
        messages[start:end] = [Message("user", text)]
    return tuple(messages)


def _turn(question: str, answer: str, prefix: str, delimiter: str, end: str) -> Iterator[_Part]:
    """Yield a question and its answer; for an empty answer, yield the prefix that the model continues."""
    between = prefix and question and not (question[-1].isspace() or prefix[0].isspace())
    yield Message("user", question), delimiter if between or (answer and not prefix) else ""
    if answer or prefix:
        yield Message("assistant", _joined(prefix, answer, " ")), end if answer else ""


def _joined(first: str, second: str, delimiter: str) -> str:
    """Return both strings, joined by ``delimiter`` unless one is empty or whitespace already separates them."""
    if not first or not second:
        return first or second
    return first + ("" if first[-1].isspace() or second[0].isspace() else delimiter) + second


def _as_text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise RecordRefused("bad_type", key, f"expected text, got {value!r:.80}")
    return value
