"""The kinds of judge verdicts: each describes the form of the reply, and reads replies in this form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.judging.replies import number_of, object_in, read_label, read_number, reason_in
from pytest_lmeval.judging.rubric import UNREADABLE, Rubric
from pytest_lmeval.types import BestEffort

LABELS_FORM = "Reply with exactly one of these labels, and with nothing else: {{ labels | join(', ') }}"
NUMBER_FORM = "Reply with one number from {{ score_min }} to {{ score_max }}, and with nothing else."
_TEXT: Mapping[str, Any] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind of verdict.

    ``form`` describes the reply to the judge, and ``wanted`` describes the reply in error messages. ``read`` returns
    the verdict in a reply, or None if it cannot be read. ``name`` is the verdict's key in the record of a reply; a
    ``reasoned`` verdict is a verdict paired with its reason. ``options`` are added to the request.
    """

    form: str
    wanted: str
    read: Callable[[str], Any]
    name: str = "label"
    reasoned: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def repair(self) -> str:
        """The message that follows a reply that cannot be read."""
        return UNREADABLE + self.form

    def recorded(self, found: Any) -> Mapping[str, Any]:
        """Return the entries for the verdict ``found``, which may be None, in the record of a reply."""
        if not self.reasoned:
            return {self.name: found}
        return {} if found is None else {self.name: found[0], "reason": found[1]}


def one_of(labels: Sequence[str]) -> Verdict:
    """Return a verdict that accepts only ``labels``."""
    named = ", ".join(labels)
    form = LABELS_FORM.replace("{{ labels | join(', ') }}", named)
    return Verdict(form, f"label out of {named}", partial(read_label, labels=labels))


def number_in(low: float, high: float) -> Verdict:
    """Return a verdict that accepts only numbers from ``low`` to ``high``."""
    form = NUMBER_FORM.replace("{{ score_min }}", f"{low:g}").replace("{{ score_max }}", f"{high:g}")
    return Verdict(form, f"number from {low:g} to {high:g}", partial(read_number, low=low, high=high), "score")


def one_of_with_reason(labels: Sequence[str]) -> Verdict:
    """Return a verdict that accepts only ``labels``, each with a reason."""
    named = ", ".join(labels)
    form = (
        f"First say why, in one to three sentences, then give one of these labels: {named}\n"
        'Reply with one JSON object and with nothing else: {"reason": "...", "label": "one of the labels"}'
    )

    def find(value: object) -> str | None:
        return read_label(value, labels) if isinstance(value, str) else None

    options = response_format("judgment", {"reason": _TEXT, "label": {**_TEXT, "enum": [*labels]}})
    return reasoned("label", form, f"label out of {named}", find, options)


def level_of(rubric: Rubric) -> Verdict:
    """Return a verdict that accepts only the levels of ``rubric``, each with a reason."""

    def find(value: object) -> float | None:
        number = number_of(value)
        return next((level for level in rubric.numbers if level == number), None)

    levels = {"type": "number", "enum": [*rubric.numbers]}
    options = response_format("grade", {"reason": _TEXT, "score": levels})
    return reasoned("score", rubric.form, f"score out of {rubric.named}", find, options)


def reasoned(name: str, form: str, wanted: str, find: Callable[[object], Any], options: Mapping[str, Any]) -> Verdict:
    """Return a verdict with its reason in one JSON object.

    ``find`` reads a JSON value, or returns None.
    """

    def read(reply: str) -> tuple[Any, str] | None:
        given = object_in(reply)
        if given is None or (found := find(given.get(name))) is None or (reason := reason_in(given)) is None:
            return None
        return found, reason

    return Verdict(form, f"JSON object with a reason and a {wanted}", read, name, reasoned=True, options=options)


def response_format(name: str, properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options that ask for a JSON object of ``properties`` if the adapter and the server support that."""
    closed = {"required": [*properties], "additionalProperties": False}
    schema = {"type": "object", "properties": {**properties}, **closed}
    return {
        "response_format": BestEffort(type="json_schema", json_schema={"name": name, "strict": True, "schema": schema})
    }
