"""Read the root of a data file: the templates that turn each row into a record, and fields for all records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, did_you_mean
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.defaults import common_extras, prompt_template
from pytest_lmeval.formats.yaml.claims import ROLES
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.rows import PartsTemplate, RowTemplate, RowValue
from pytest_lmeval.types import Message

_KEYS = (
    *("prompt", "images", "data", "rows", "id", "target", "targets", "metric", "checks"),
    *("post_process", "threshold", "extras"),
)
PROMPT, IMAGES = "prompt", "images"
_ANSWERS = frozenset({"target", "targets", "checks"})
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROLES = ("system", "user", "assistant")


def is_data_file(document: Mapping[str, Any], *, is_named: bool) -> bool:
    """Return True if a document is meant to be a data file.

    ``is_named`` is true if the command line names the file. If the command line does not name the file, a document with
    unknown keys and no targets or checks belongs to another program, such as a training script.
    """
    prompt, rows, scored = (not role.isdisjoint(document) for role in ROLES)
    has_answers = not _ANSWERS.isdisjoint(document)
    is_foreign = any(key not in _KEYS and not did_you_mean(key, _KEYS) for key in document)
    return prompt and rows and (is_named or (scored and (has_answers or not is_foreign)))


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation as a prompt: a role for each message, and a template for its content."""

    roles: Sequence[str]
    contents: Sequence[RowTemplate | PartsTemplate]

    @classmethod
    def of(cls, given: Sequence[Any], field: str) -> ChatPrompt:
        """Return the prompt for a list of messages; raise RecordRefused for the list's first error."""
        if not given:
            raise RecordRefused("bad_type", field, "expected a text or a list of messages, got an empty one")
        roles = [_role(message, f"{field}[{number}]") for number, message in enumerate(given)]
        if roles[-1] != "user" or "system" in roles[1:]:
            detail = "expected a system message at the front, if any, and one of the user at the end"
            raise RecordRefused("bad_value", field, f"{detail}, got {', '.join(roles)}")
        fields = [f"{field}[{number}].content" for number in range(len(given))]
        contents = [message["content"] for message in given]
        return cls(roles, [prompt_template(text, name) for text, name in zip(contents, fields, strict=True)])

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """The templates of all messages."""
        for content in self.contents:
            yield from content.templates

    def messages(self, row: Mapping[str, Any], folder: Path, images: Sequence[object] = ()) -> tuple[Message, ...]:
        """Return the conversation for ``row``; raise RecordRefused as :meth:`RowTemplate.fill` does.

        ``folder`` contains the file with the messages. ``images`` are parts to add to the last message.
        """
        talk: list[Message] = []
        last = len(self.roles) - 1
        for number, (role, content) in enumerate(zip(self.roles, self.contents, strict=True)):
            filled = with_images(content.fill(row), images if number == last else ())
            if isinstance(filled, str):
                talk.append(Message(role, filled))
            else:
                from pytest_lmeval.media.given import message_of

                talk.append(message_of(filled, f"{PROMPT}[{number}].content", folder, role))
        return tuple(talk)


def with_images(prompt: str | Sequence[object], images: Sequence[object]) -> str | list[object]:
    """Return a filled prompt, followed by ``images``."""
    if not images:
        return prompt if isinstance(prompt, str) else [*prompt]
    return [*([prompt] if isinstance(prompt, str) else prompt), *images]


RowPrompt = RowTemplate | PartsTemplate | ChatPrompt
"""A prompt that is filled in from each row."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A record's templates.

    ``checks`` pairs each check with its targets. In a file with checks, ``metric`` is "". ``images`` follow each
    prompt's text.
    """

    prompts: Mapping[str, RowPrompt]
    targets: Sequence[RowTemplate]
    id: RowTemplate | None
    extras: RowValue
    metric: str = ""
    checks: Sequence[tuple[RowValue, Sequence[RowTemplate]]] = ()
    images: RowValue | None = None

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """All templates of the file."""
        for prompt in self.prompts.values():
            yield from prompt.templates
        if self.images is not None:
            yield from self.images.templates
        yield from self.targets
        yield from self.extras.templates
        for rest, targets in self.checks:
            yield from rest.templates
            yield from targets
        if self.id is not None:
            yield self.id


def shape_of(document: Mapping[str, Any], registry: Registry) -> Shape:
    """Return a data file's shape; raise RecordRefused for the first error."""
    checks.check_names(document, _KEYS)
    if "data" in document and "rows" in document:
        raise RecordRefused("bad_value", "rows", "both 'data' and 'rows' are set: use one")
    if document.keys().isdisjoint(("metric", CHECKS)):
        raise RecordRefused("missing_required", "metric", "a data file needs a metric, or checks, to score answers")
    id = _template(document["id"], "id") if "id" in document else None
    extras = RowValue.of(common_extras(document, registry), "extras")
    shape = Shape(_prompts(document["prompt"]), (), id, extras, images=_images(document))
    if CHECKS in document:
        return replace(shape, checks=_checks(document))
    metric = checks.known_metric(document["metric"], "metric", registry)
    return replace(shape, targets=_targets(document), metric=metric)


def _checks(document: Mapping[str, Any]) -> list[tuple[RowValue, Sequence[RowTemplate]]]:
    for name in ("metric", "target", "targets"):
        if name in document:
            detail = f"a data file with checks has no {name}: write it in each check"
            raise RecordRefused("unknown_field", name, detail)
    given = document[CHECKS]
    if not isinstance(given, list) or not all(isinstance(check, dict) for check in given):
        raise RecordRefused("bad_type", CHECKS, f"expected a list of mappings, got {given!r:.80}")
    apart: list[tuple[RowValue, Sequence[RowTemplate]]] = []
    for number, check in enumerate(given):
        rest = {name: value for name, value in check.items() if name not in ("target", "targets")}
        apart.append((RowValue.of(rest, f"{CHECKS}[{number}]"), _targets(check, f"{CHECKS}[{number}].")))
    return apart


def _images(document: Mapping[str, object]) -> RowValue | None:
    if IMAGES not in document:
        return None
    given = document[IMAGES]
    named = given if isinstance(given, list) else [given]
    if not named or not all(isinstance(each, str) and each for each in named):
        raise RecordRefused(
            "bad_type", IMAGES, f'expected a list of paths, such as ["{{{{ path }}}}"], got {given!r:.80}'
        )
    return RowValue.of(named, IMAGES)


def images_of(shape: Shape, row: Mapping[str, object]) -> list[object]:
    """Return a row's images as parts of its prompt; a template may produce one image or a list of images."""
    filled = [] if shape.images is None else shape.images.fill(row)
    listed = [one for each in filled for one in (each if isinstance(each, list) else [each])]
    return [{"image": each} for each in listed]


def _prompts(given: Any) -> Mapping[str, RowPrompt]:
    if not isinstance(given, dict):
        return {"": _prompt(given, PROMPT)}
    if not given:
        raise RecordRefused("bad_type", PROMPT, "expected a text, or a mapping of names to texts, got an empty one")
    for name in given:
        if not _NAME.fullmatch(name):
            detail = f"a prompt's name consists of letters, digits, '.', '_' and '-', got {name!r:.60}"
            raise RecordRefused("bad_value", f"{PROMPT}.{name}", detail)
    return {name: _prompt(each, f"{PROMPT}.{name}") for name, each in given.items()}


def _prompt(given: Any, name: str) -> RowPrompt:
    if not isinstance(given, list):
        return _template(given, name)
    return PartsTemplate.of(given, name) if checks.has_media(given) else ChatPrompt.of(given, name)


def _targets(holder: Mapping[str, Any], prefix: str = "") -> list[RowTemplate]:
    if "target" in holder and "targets" in holder:
        raise RecordRefused("bad_value", f"{prefix}targets", "both 'target' and 'targets' are set: use one")
    if "target" in holder:
        return [_template(holder["target"], f"{prefix}target")]
    if "targets" not in holder:
        return []
    given = checks.filled_list(holder["targets"], f"{prefix}targets", "list of texts")
    return [_template(text, f"{prefix}targets[{number}]") for number, text in enumerate(given)]


def _template(given: Any, name: str) -> RowTemplate:
    if is_number(given):
        raise RecordRefused("bad_type", name, f'expected a text, got a number {given}; write "{given}"')
    return RowTemplate.of(checks.string(given, name), name)


def _role(message: Any, field: str) -> str:
    if not isinstance(message, dict) or message.keys() != {"role", "content"}:
        raise RecordRefused("bad_type", field, f"expected a mapping of role and content, got {message!r:.80}")
    return checks.one_of(message["role"], f"{field}.role", _ROLES)
