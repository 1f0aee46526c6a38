"""What the root of a data file says: the templates that make a record of each row, and what all records share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.errors import RecordRefused, did_you_mean
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.chat_prompts import ChatPrompt
from pytest_lmeval.formats.checks import known_metric
from pytest_lmeval.formats.defaults import common_extras
from pytest_lmeval.formats.yaml.claims import ROLES
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.rows import RowTemplate, RowValue

_KEYS = (
    *("prompt", "data", "rows", "id", "target", "targets", "metric", "checks"),
    *("post_process", "threshold", "extras"),
)
PROMPT = "prompt"
_ANSWERS = frozenset({"target", "targets", "checks"})
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def is_data_file(document: Mapping[str, Any], *, is_named: bool) -> bool:
    """Tell whether a document is a data file, with faults or without; ``is_named`` is whether the command names it.

    One that is not named, has no targets and has other keys belongs to another program, such as a training.
    """
    prompt, rows, scored = (not role.isdisjoint(document) for role in ROLES)
    has_answers = not _ANSWERS.isdisjoint(document)
    return prompt and rows and (is_named or (scored and (has_answers or not any(map(_is_foreign, document)))))


def _is_foreign(key: str) -> bool:
    return key not in _KEYS and not did_you_mean(key, _KEYS)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a row is made into; ``metric`` is "" beside checks.

    ``checks`` are all but the targets of each check, and those.
    """

    prompts: Mapping[str, RowTemplate | ChatPrompt]
    targets: Sequence[RowTemplate]
    id: RowTemplate | None
    extras: RowValue
    metric: str = ""
    checks: Sequence[tuple[RowValue, Sequence[RowTemplate]]] = ()

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """All templates."""
        for prompt in self.prompts.values():
            yield from prompt.contents if isinstance(prompt, ChatPrompt) else (prompt,)
        yield from self.targets
        yield from self.extras.templates
        for rest, targets in self.checks:
            yield from rest.templates
            yield from targets
        if self.id is not None:
            yield self.id


def shape_of(document: Mapping[str, Any], registry: Registry) -> Shape:
    """Return what a data file says, but for its rows; raise RecordRefused for the first thing wrong."""
    checks.check_names(document, _KEYS)
    if "data" in document and "rows" in document:
        raise RecordRefused("bad_value", "rows", "there is 'data', too: a data file has one of both")
    if document.keys().isdisjoint(("metric", CHECKS)):
        detail = "a data file needs the metric that its answers are scored by, or checks"
        raise RecordRefused("missing_required", "metric", detail)
    id = _template(document["id"], "id") if "id" in document else None
    extras = RowValue.of(common_extras(document, registry), "extras")
    shape = Shape(_prompts(document["prompt"]), (), id, extras)
    if CHECKS in document:
        return replace(shape, checks=_checks(document))
    metric = known_metric(document["metric"], "metric", registry)
    return replace(shape, targets=_targets(document), metric=metric)


def _checks(document: Mapping[str, Any]) -> list[tuple[RowValue, Sequence[RowTemplate]]]:
    for name in ("metric", "target", "targets"):
        if name in document:
            raise RecordRefused(
                "unknown_field", name, f"a data file with checks has no {name} of its own: each check has"
            )
    given = document[CHECKS]
    if not isinstance(given, list) or not all(isinstance(check, dict) for check in given):
        raise RecordRefused("bad_type", CHECKS, f"expected a list of mappings, got {given!r:.80}")
    apart: list[tuple[RowValue, Sequence[RowTemplate]]] = []
    for number, check in enumerate(given):
        rest = {name: value for name, value in check.items() if name not in ("target", "targets")}
        apart.append((RowValue.of(rest, f"{CHECKS}[{number}]"), _targets(check, f"{CHECKS}[{number}].")))
    return apart


def _prompts(given: Any) -> Mapping[str, RowTemplate | ChatPrompt]:
    if not isinstance(given, dict):
        return {"": _prompt(given, PROMPT)}
    if not given:
        raise RecordRefused("bad_type", PROMPT, "expected a text, or a mapping of names to texts, got an empty one")
    for name in given:
        if not _NAME.fullmatch(name):
            detail = f"a prompt's name is made of letters, digits, '.', '_' and '-', got {name!r:.60}"
            raise RecordRefused("bad_value", f"{PROMPT}.{name}", detail)
    return {name: _prompt(each, f"{PROMPT}.{name}") for name, each in given.items()}


def _prompt(given: Any, name: str) -> RowTemplate | ChatPrompt:
    return ChatPrompt.of(given, name) if isinstance(given, list) else _template(given, name)


def _targets(holder: Mapping[str, Any], prefix: str = "") -> list[RowTemplate]:
    if "target" in holder and "targets" in holder:
        detail = "there is 'target', too: one of both says what is right"
        raise RecordRefused("bad_value", f"{prefix}targets", detail)
    if "target" in holder:
        return [_template(holder["target"], f"{prefix}target")]
    given = holder.get("targets", [])
    if not isinstance(given, list) or (not given and "targets" in holder):
        got = "an empty one" if given == [] else checks.type_name(given)
        raise RecordRefused("bad_type", f"{prefix}targets", f"expected a non-empty list of texts, got {got}")
    return [_template(text, f"{prefix}targets[{number}]") for number, text in enumerate(given)]


def _template(given: Any, name: str) -> RowTemplate:
    if is_number(given):
        raise RecordRefused("bad_type", name, f'expected a text, got a number {given}; write "{given}"')
    return RowTemplate.of(checks.string(given, name), name)
