"""Check the fields of a record or task, and suggest corrections for misspelt names.

Every check raises RecordRefused with a rule, a field and a detail. An unknown key of ``extras`` must not resemble a
known key, because with a misspelt ``must_pass``, a run that should fail would pass.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_lmeval.errors import RecordRefused, ScoringError, UnknownName, nearest, not_one_of
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.pages import page
from pytest_lmeval.types import NOTHING, POLICY_KEYS, Example, Message, Metric

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry

_GUIDE = f"{page('coming-from.md')} has a table of names"
_HARNESS = "a task of lm-evaluation-harness"
_ROW = "a row of a data set"
# The first entry whose keys are all in a record names the record's origin.
_RECORDS = (
    (frozenset({"input", "ideal"}), "a sample of OpenAI's evals"),
    (frozenset({"input", "target"}), "a sample of inspect_ai"),
    (frozenset({"instruction", "output"}), "a record to train on"),
    (frozenset({"messages"}), "a conversation"),
    (frozenset({"question", "answer"}), _ROW),
)
_FILES = (
    (frozenset({"doc_to_text"}), _HARNESS),
    (frozenset({"dataset_path", "task"}), _HARNESS),
    (frozenset({"providers"}), "a configuration of promptfoo"),
    (frozenset({"prompts", "tests"}), "a configuration of promptfoo"),
)
OF_COMPACT = (*POLICY_KEYS, "category", "post_process")
"""Keys of ``extras`` that the package reads in every compact record."""
WORDS = frozenset({"difficulty", "passed", "subject"})
"""Common keys that the package ignores; they resemble known keys but are not mistakes."""
MOST_REPEATS = 1000
_SIMILARITY = 0.8
TURNS = "turns"
_OF_RECORDS: Mapping[str, str] = MappingProxyType({TURNS: "a prompt", CHECKS: "a metric"})
RENAMED: Mapping[str, str] = MappingProxyType({"exact_match": "exact_match_normalized"})
"""Metric names in compact files that select a different registered metric, which ignores case and spacing."""
READ_EXTRAS = frozenset({"csv_columns", "csv_separator", "has_csv", "json_exact", "json_schema"})
"""Metrics that take rules, such as a JSON schema, from the extras."""


def misspelt(wanted: str, given: Iterable[str], known: Collection[str], likeness: float = 0.6) -> str:
    """Return ``"; did you mean 'wanted' by 'x'?"`` for the nearest unknown name in ``given``, or ""."""
    others = [name for name in given if name not in known]
    near = difflib.get_close_matches(wanted, others, n=1, cutoff=likeness)
    return f"; did you mean {wanted!r} by {near[0]!r}?" if near else ""


def foreign(keys: Collection[str], kinds: Iterable[tuple[frozenset[str], str]] = _FILES) -> str:
    """Return a sentence that names the tool whose files have ``keys`` and links to a guide, or "" for unknown keys."""
    found = next((what for wanted, what in kinds if wanted <= set(keys)), "")
    guides = {
        _HARNESS: f"name it in a file with the key harness: {page('harness-tasks.md')}",
        _ROW: f"name its file in a data file with a prompt: {page('questions.md')}",
    }
    guide = guides.get(found, _GUIDE)
    return found and f"this reads like {found}: {guide}"


def check_keys(holder: Mapping[str, Any], prefix: str, read: Iterable[str]) -> None:
    """Raise RecordRefused if a key of ``holder`` looks like a misspelling of a key in ``read``."""
    known = frozenset(read)
    for key in holder:
        if wanted := meant(key, known):
            detail = f"nothing reads the key {key!r:.80}; did you mean {wanted!r}?"
            raise RecordRefused("unknown_field", f"{prefix}.{key}", detail)


def unread_keys(examples: Iterable[Example]) -> Iterator[tuple[int, str]]:
    """Yield ``(first line, sentence)`` for each metadata key of spec records that is probably misspelt."""

    def read(example: Example) -> frozenset[str]:
        return frozenset((*POLICY_KEYS, "timeout_s") if example.metric == "code_exec" else POLICY_KEYS)

    for line, key, wanted, count in misspelt_keys(examples, read):
        often = f" (in {count} records)" if count > 1 else ""
        yield line, f"nothing reads metadata.{key:.80}{often}; did you mean {wanted!r}?"


def misspelt_keys(
    examples: Iterable[Example], read: Callable[[Example], frozenset[str]]
) -> Iterator[tuple[int, str, str, int]]:
    """Yield ``(first line, key, probable key, number of examples)`` for each key that resembles one in ``read``."""
    first: dict[tuple[str, str], int] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for example in examples:
        for key in example.metadata:
            if wanted := meant(key, read(example)):
                first.setdefault((key, wanted), example.line)
                counts[key, wanted] += 1
    yield from ((line, *pair, counts[pair]) for pair, line in first.items())


@lru_cache(maxsize=4096)
def meant(key: str, known: Collection[str]) -> str:
    """Return the key in ``known`` that ``key`` probably misspells, or ""."""
    if key in known or key in WORDS:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    # A known name plus a word is a different key: cluster_id, threshold_note.
    if any(plain.startswith(f"{each}_") or plain.endswith(f"_{each}") for each in known):
        return ""
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=_SIMILARITY)
    return near[0] if near else ""


_NOTHING: Mapping[str, str] = MappingProxyType({})
_INSTEAD: Mapping[tuple[str, type], str] = {
    ("prompt", list): f"; one text per record; conversations: {page('conversations.md#turns')}",
    ("targets", str): '; write ["..."], a list, even of one text',
}
_OVER_TOKENS = frozenset({"bleu", "bleu_4", "f1", "math_equal", "rouge_1", "rouge_2", "rouge_l"})
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def type_name(value: object) -> str:
    """Return the JSON type name of ``value``, with an article."""
    return _TYPE_NAMES.get(type(value), "a number")


def check_fields(
    record: object, required: Collection[str], optional: Collection[str], elsewhere: Mapping[str, str] = _NOTHING
) -> Mapping[str, Any]:
    """Return ``record`` if it is an object with every required field and no unknown field.

    ``elsewhere`` maps fields that belong elsewhere to hints.
    """
    if not isinstance(record, dict):
        raise RecordRefused("bad_type", "_root", f"expected an object, got {type_name(record)}")
    known = [*required, *optional]
    for name in required:
        if name not in record:
            origin = foreign(record.keys(), _RECORDS)
            hint = misspelt(name, record, known) or (origin and f"; {origin}")
            raise RecordRefused("missing_required", name, f"required: {', '.join(required)}{hint}")
    if not record.keys() <= {*known}:
        check_names(record, known, elsewhere=elsewhere)
    return record


def check_names(
    holder: Mapping[str, Any], known: Collection[str], within: str = "", elsewhere: Mapping[str, str] = _NOTHING
) -> None:
    """Raise RecordRefused for a field of ``holder`` that is not in ``known``.

    ``within`` is the path of ``holder``.
    """
    for name in holder:
        if name not in known:
            hint = f";{elsewhere[name]}" if name in elsewhere else nearest(name, known, "expected one of")
            raise RecordRefused("unknown_field", f"{within}{name}", f"unknown field {name!r}{hint}")


def string(value: object, field: str) -> str:
    """Return ``value`` if it is a non-empty string."""
    if not isinstance(value, str):
        instead = _INSTEAD.get((field, type(value)), "")
        raise RecordRefused("bad_type", field, f"expected a non-empty string, got {type_name(value)}{instead}")
    if not value:
        raise RecordRefused("bad_type", field, "expected a non-empty string, got an empty one")
    return value


def has_media(value: object) -> TypeGuard[list[object]]:
    """Return True for a list of text and media, such as ``["What is this?", {"image": "cat.png"}]``."""
    return isinstance(value, list) and any(isinstance(part, dict) and "role" not in part for part in value)


def prompt_of(value: object, folder: Path | None, field: str = "prompt") -> tuple[str, tuple[Message, ...]]:
    """Return a prompt as text and as messages: one user message for a list of text and media, none for a string.

    ``folder`` is the folder of the prompt's file, or None for the working folder.
    """
    if has_media(value):
        from pytest_lmeval.media.given import message_of

        message = message_of(value, field, folder)
        return message.content, (message,)
    return string(value, field), ()


def strings(value: object, field: str) -> tuple[str, ...]:
    """Return ``value`` as a tuple if it is a non-empty array of strings."""
    elements = filled_list(value, field, "array of strings")
    for index, element in enumerate(elements):
        if not isinstance(element, str):
            detail = f"expected strings, got {type_name(element)} {element!r} at index {index}"
            raise RecordRefused("bad_type", field, f'{detail}; write "{element}"' if is_number(element) else detail)
    return tuple(elements)


def filled_list(value: object, field: str, wanted: str, hint: str = "") -> list[Any]:
    """Return ``value`` if it is a non-empty list; an error says that ``wanted`` was expected, and adds ``hint``."""
    if not isinstance(value, list) or not value:
        got = "an empty one" if value == [] else type_name(value)
        instead = hint or _INSTEAD.get((field, type(value)), "")
        raise RecordRefused("bad_type", field, f"expected a non-empty {wanted}, got {got}{instead}")
    return value


def text(value: object, field: str) -> str:
    """Return ``value`` if it is a string, empty or not."""
    if not isinstance(value, str):
        raise RecordRefused("bad_type", field, f"expected a string, got {type_name(value)}")
    return value


def boolean(value: object, field: str) -> bool:
    """Return ``value`` if it is true or false."""
    if not isinstance(value, bool):
        raise RecordRefused("bad_type", field, f"expected true or false, got {type_name(value)}")
    return value


def one_of(value: object, field: str, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of the strings in ``choices``."""
    name = string(value, field)
    if name not in choices:
        raise RecordRefused("bad_value", field, not_one_of(name, sorted(choices)))
    # Equal names in a file's records share one string object.
    return intern(name)


def optional_object(record: Mapping[str, Any], field: str, within: str = "") -> Mapping[str, Any]:
    """Return the object under ``field``, or an empty object.

    ``within`` is the path of ``record``, or "" for the root.
    """
    value = record.get(field, NOTHING)
    if not isinstance(value, dict):
        path = f"{within}.{field}" if within else field
        raise RecordRefused("bad_type", path, f"expected an object, got {type_name(value)}")
    return value


def number_in_range(value: object, field: str, low: float, high: float) -> float:
    """Return ``value`` as a float if it is a number from ``low`` to ``high``."""
    if not is_number(value):
        raise RecordRefused("bad_type", field, f"expected a number in [{low:g}, {high:g}], got {type_name(value)}")
    if not low <= value <= high:
        raise RecordRefused("bad_value", field, f"expected a number in [{low:g}, {high:g}], got {value!r}")
    return float(value)


def gate_fields(holder: Mapping[str, Any], prefix: str) -> None:
    """Check the keys of ``metadata`` or ``extras`` that the run reads, such as threshold, must_pass and cluster."""
    if "threshold" in holder:
        number_in_range(holder["threshold"], f"{prefix}.threshold", 0.0, 1.0)
    if "repeats" in holder or "passes" in holder:
        _repeats(holder, prefix)
    boolean(holder.get("must_pass", False), f"{prefix}.must_pass")
    if "cluster" in holder:
        string(holder["cluster"], f"{prefix}.cluster")
    if "quarantine" in holder:
        _quarantine(holder["quarantine"], f"{prefix}.quarantine")


def _repeats(holder: Mapping[str, Any], prefix: str) -> None:
    for name in ("repeats", "passes"):
        if name in holder:
            count = number_in_range(holder[name], f"{prefix}.{name}", 1, MOST_REPEATS)
            if not count.is_integer() or isinstance(holder[name], float):
                raise RecordRefused("bad_value", f"{prefix}.{name}", f"expected a whole number, got {holder[name]!r}")
    if holder.get("passes", 1) > holder.get("repeats", MOST_REPEATS):
        detail = f"{holder['passes']} of {holder['repeats']} repeats cannot pass"
        raise RecordRefused("bad_value", f"{prefix}.passes", detail)


def _quarantine(value: object, field: str) -> None:
    if not isinstance(value, dict):
        raise RecordRefused("bad_type", field, f"expected {{until, reason}}, got {type_name(value)}")
    for name in ("until", "reason"):
        if name not in value:
            raise RecordRefused("missing_required", f"{field}.{name}", "a quarantine needs until, a date, and reason")
        string(value[name], f"{field}.{name}")
    check_names(value, ("until", "reason"), f"{field}.")
    try:
        is_date = date.fromisoformat(value["until"]).isoformat() == value["until"]
    except ValueError:
        is_date = False
    if not is_date:
        raise RecordRefused("bad_value", f"{field}.until", f"expected a date YYYY-MM-DD, got {value['until']!r:.80}")


def reachable(targets: Sequence[str], metric: str) -> None:
    """Raise RecordRefused for empty targets that would give every answer the same score."""
    if metric == "substring_contains" and not all(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", "every text contains an empty target; give a text to look for")
    if metric in _OVER_TOKENS and not any(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", f"{metric} gives every answer 0 for an empty target; give a text")


def known_metric(value: Any, field: str, registry: Registry) -> str:
    """Return ``value`` if it names a metric other than ``turns`` and ``checks``; raise RecordRefused otherwise."""
    metric = string(value, field)
    if RENAMED.get(metric, metric) not in registry.metrics:
        choices = registry.metrics.keys() - _OF_RECORDS.keys()
        raise RecordRefused("bad_value", field, str(UnknownName("metric", metric, choices)))
    if metric in _OF_RECORDS:
        detail = f"{metric} is the metric of a record that has {metric} instead of {_OF_RECORDS[metric]}"
        raise RecordRefused("bad_value", field, detail)
    return metric


def id_of(fields: Mapping[str, Any], line: int) -> str:
    """Return a record's id; the default is ``ex-`` followed by the line number."""
    value = fields.get("id", f"ex-{line}")
    return str(value) if not isinstance(value, str) and is_whole(value) else string(value, "id")


def category_of(extras: Mapping[str, Any]) -> str:
    """Return the category in a record's extras, or ""."""
    return string(extras["category"], "extras.category") if "category" in extras else ""


def extras_of(fields: Mapping[str, Any], metric: Metric) -> Mapping[str, Any]:
    """Return a record's extras; raise RecordRefused for a misspelt key or an invalid value."""
    extras = optional_object(fields, "extras")
    gate_fields(extras, "extras")
    check_keys(extras, "extras", (*OF_COMPACT, *metric.extras))
    return extras


def check_metric(metric: Metric, word: str, targets: Sequence[str], extras: Mapping[str, Any], place: str) -> None:
    """Raise RecordRefused if ``metric`` cannot use these targets and extras.

    ``word`` is the metric's name in the file.
    """
    if metric.check is not None:
        metric.check(targets, extras)
    if boolean(extras.get("not", False), f"{place}.not") and not (metric.binary or metric.asks_judge):
        detail = f"{word} is graded: only a right-or-wrong metric, or rubric, can be negated"
        raise RecordRefused("bad_value", f"{place}.not", detail)


def check_scoring(metric: Metric, word: str, targets: Sequence[str], extras: Mapping[str, Any]) -> None:
    """Raise RecordRefused if ``metric`` cannot score a record or a check with these targets and extras."""
    if word == "code_exec":
        from pytest_lmeval.metrics.parts.code_plan import plan_extras, timeout_of

        timeout_of(extras, "extras")
        plan_extras(extras, targets)
    check_metric(metric, word, targets, extras, "extras")
    if word in READ_EXTRAS:
        try:
            metric.function("", targets, extras)
        except ScoringError as error:  # a package that the metric needs is not installed
            raise RecordRefused("bad_value", "metric", str(error)) from None
    reachable(targets, word)
