"""From one document to its example: the prompt, what is asked for, and what a reader is shown as the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.documents import Documents, Row
from pytest_lmeval.formats.harness.prompts import ContextBuilder, ContextPart, Shots, messages_of, text_of
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.groups import shown
from pytest_lmeval.types import Example, Generate, Message

Pairs = tuple[list[list[str]], list[int | None]]
"""Contexts and continuations, and of each the number of its context; None where it is empty."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the examples of one task; the few-shot examples of one depend on the rows before it.

    ``own`` is what single examples tell the gate, by their places.
    """

    config: Config
    documents: Documents
    builder: ContextBuilder
    shots: Shots
    rows: Sequence[Row]
    decisive: str
    own: Mapping[int, Mapping[str, Any]]

    def make(self, place: int) -> Example:
        """Return the example of the row at ``place``; raise RecordRefused where the task does not fit it."""
        try:
            return self._made(place)
        except ScoringError as error:  # of a function of the task
            raise RecordRefused("bad_value", "_function", str(error)) from None

    def _made(self, place: int) -> Example:
        row = self.rows[place]
        target = self.documents.target(row)
        metadata: dict[str, Any] = {**self.own.get(place, {}), "place": place, "pairs": []}
        if self.config.get("repeats", 1) > 1:
            metadata["repeats"] = 1  # its repeats are of one score: a run with --lm-repeats is refused
        if self.config.output_type == "loglikelihood_rolling":
            metadata["pairs"] = [["", str(target)]]
            return self._example(place, "", (), target, metadata)
        contexts = self.builder.contexts(row, self.shots.of(self.rows, place))
        texts = [*map(text_of, contexts)]
        talks = [*map(self._talk, contexts)] if self.builder.chat != "off" else []
        if self.config.output_type != "generate_until":
            metadata["pairs"], owners = self._pairs(row, texts)
            if talks:
                metadata["talks"] = [
                    [] if owner is None else [[each.role, each.content] for each in talks[owner]] for owner in owners
                ]
        return self._example(place, texts[0], talks[0] if talks else (), target, metadata)

    def _talk(self, parts: Sequence[ContextPart]) -> tuple[Message, ...]:
        return messages_of(parts, self.builder.chat)

    def _example(
        self, place: int, text: str, messages: tuple[Message, ...], target: Any, metadata: dict[str, Any]
    ) -> Example:
        return Example(
            str(place),
            Generate(messages).text if messages else text,
            self._targets(self.rows[place], target),
            shown(self.decisive),
            metadata=metadata,
            line=1,
            messages=messages,
            place=place,
        )

    def _pairs(self, row: Row, texts: Sequence[str]) -> Pairs:
        config = self.config
        if config.output_type == "loglikelihood":
            return [[texts[0], str(self.documents.target(row))]], [0]
        delimiter = config.target_delimiter
        if self.builder.chat != "off":
            prefix = config.get("gen_prefix")
            delimiter = delimiter if prefix and not prefix[-1].isspace() else ""
        choices = self.documents.choices(row)
        if not choices:
            raise RecordRefused("bad_value", "doc_to_choice", "expected an option, got an empty list")
        owners: list[int | None]
        if self.builder.has_inputs:
            ending = f"{delimiter}{self.documents.target(row)}"
            pairs, owners = [[text, ending] for text in texts], [*range(len(texts))]
        else:
            pairs, owners = [[texts[0], delimiter + choice] for choice in choices], [0] * len(choices)
        if any(each.get("metric") == "acc_mutual_info" for each in config.get("metric_list", ())):
            pairs += [["", delimiter + choice] for choice in choices]
            owners += [None] * len(choices)
        return pairs, owners

    def _targets(self, row: Row, target: Any) -> tuple[str, ...]:
        if self.config.has_choices() and isinstance(target, int) and not isinstance(target, bool):
            choices = self.documents.choices(row)
            return (choices[target],) if 0 <= target < len(choices) else (str(target),)
        return tuple(map(str, target)) if isinstance(target, list) else (str(target),)
