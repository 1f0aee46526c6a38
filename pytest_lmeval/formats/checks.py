"""What is asked of a field, and what the author of a record or a task probably meant.

Every check raises RecordRefused with rule, field and detail. A key of ``extras``, or ``metadata``, that nothing reads
is the author's own and may be anything. One that is nearly a key that is read was hardly meant so: a misspelt
``must_pass`` would let a run pass.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused, UnknownName, nearest, not_one_of
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.pages import page
from pytest_lmeval.types import NOTHING, POLICY_KEYS, Example

if TYPE_CHECKING:
    from pytest_lmeval.registry import Registry

_GUIDE = f"{page('coming-from.md')} has a table of names"
_HARNESS = "a task of lm-evaluation-harness"
_ROW = "a row of a data set"
# By the keys that give a record away, the first that has all of them.
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
"""What is read of every compact record."""
WORDS = frozenset({"difficulty", "passed", "subject"})
"""Words of the schemas, and common ones, that nothing reads: they are no mistake."""
MOST_REPEATS = 1000
_SIMILARITY = 0.8
TURNS = "turns"
_OF_RECORDS: Mapping[str, str] = MappingProxyType({TURNS: "a prompt", CHECKS: "a metric"})
RENAMED: Mapping[str, str] = MappingProxyType({"exact_match": "exact_match_normalized"})
"""The metric names of a compact file that mean another metric of the registry: it ignores case and spacing."""


def misspelt(wanted: str, given: Iterable[str], known: Collection[str], likeness: float = 0.6) -> str:
    """Return ``"; did you mean 'wanted' by 'x'?"`` for the nearest given name that is not known, or an empty text."""
    others = [name for name in given if name not in known]
    near = difflib.get_close_matches(wanted, others, n=1, cutoff=likeness)
    return f"; did you mean {wanted!r} by {near[0]!r}?" if near else ""


def foreign_record(keys: Collection[str]) -> str:
    """Return what a record of another tool is, and where it says how to bring it here; else an empty text."""
    return _foreign(keys, _RECORDS)


def foreign_file(keys: Collection[str]) -> str:
    """Return what a YAML file of another tool is, and where it says how to bring it here; else an empty text."""
    return _foreign(keys, _FILES)


def _foreign(keys: Collection[str], kinds: Iterable[tuple[frozenset[str], str]]) -> str:
    found = next((what for wanted, what in kinds if wanted <= set(keys)), "")
    guides = {
        _HARNESS: f"name it in a file with the key harness: {page('harness-tasks.md')}",
        _ROW: f"name its file in a data file with a prompt: {page('questions.md')}",
    }
    guide = guides.get(found, _GUIDE)
    return found and f"this reads like {found}: {guide}"


def check_keys(holder: Mapping[str, Any], prefix: str, read: Iterable[str]) -> None:
    """Raise RecordRefused for a key of ``holder`` that is nearly one of those that are ``read``."""
    known = frozenset(read)
    for key in holder:
        if wanted := meant(key, known):
            detail = f"nothing reads the key {key!r:.80}; did you mean {wanted!r}?"
            raise RecordRefused("unknown_field", f"{prefix}.{key}", detail)


def unread_keys(examples: Iterable[Example]) -> Iterator[tuple[int, str]]:
    """Yield the line of the first record, and a sentence, for each misspelt key of records whose metadata are free."""

    def read(example: Example) -> frozenset[str]:
        return frozenset((*POLICY_KEYS, "timeout_s") if example.metric == "code_exec" else POLICY_KEYS)

    for line, key, wanted, count in misspelt_keys(examples, read):
        often = f" (in {count} records)" if count > 1 else ""
        yield line, f"nothing reads metadata.{key:.80}{often}; did you mean {wanted!r}?"


def misspelt_keys(
    examples: Iterable[Example], read: Callable[[Example], frozenset[str]]
) -> Iterator[tuple[int, str, str, int]]:
    """Yield ``(first line, key, what was meant, examples)`` for each key that is nearly one that is ``read``."""
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
    """Return the key of ``known`` that ``key`` is nearly, or an empty text."""
    if key in known or key in WORDS:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    # One word more makes another key: cluster_id, threshold_note.
    if any(plain.startswith(f"{each}_") or plain.endswith(f"_{each}") for each in known):
        return ""
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=_SIMILARITY)
    return near[0] if near else ""


_NOTHING: Mapping[str, str] = MappingProxyType({})
_INSTEAD: Mapping[tuple[str, type], str] = {
    ("prompt", list): f"; one text a record; conversations: {page('conversations.md#turns')}",
    ("targets", str): '; write ["..."], a list, even of one text',
}
_OVER_TOKENS = frozenset({"bleu", "bleu_4", "f1", "math_equal", "rouge_1", "rouge_2", "rouge_l"})
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def type_name(value: object) -> str:
    """Return what JSON calls the type of ``value``, with its article."""
    return _TYPE_NAMES.get(type(value), "a number")


def check_fields(
    record: object,
    required: Collection[str],
    optional: Collection[str],
    elsewhere: Mapping[str, str] = _NOTHING,
) -> Mapping[str, Any]:
    """Return ``record`` if it is an object with every required and no unknown field.

    ``elsewhere`` says of fields that people look for here where they belong.
    """
    if not isinstance(record, dict):
        raise RecordRefused("bad_type", "_root", f"expected an object, got {type_name(record)}")
    known = [*required, *optional]
    for name in required:
        if name not in record:
            foreign = foreign_record(record.keys())
            hint = misspelt(name, record, known) or (foreign and f"; {foreign}")
            raise RecordRefused("missing_required", name, f"required: {', '.join(required)}{hint}")
    if not record.keys() <= {*known}:
        check_names(record, known, elsewhere=elsewhere)
    return record


def check_names(
    holder: Mapping[str, Any], known: Collection[str], within: str = "", elsewhere: Mapping[str, str] = _NOTHING
) -> None:
    """Raise RecordRefused for a field of ``holder``, which is at ``within``, that is not ``known``."""
    for name in holder:
        if name not in known:
            hint = f";{elsewhere[name]}" if name in elsewhere else nearest(name, known, "expected one of")
            raise RecordRefused("unknown_field", f"{within}{name}", f"unknown field {name!r}{hint}")


def string(value: object, field: str) -> str:
    """Return a non-empty string."""
    if not isinstance(value, str):
        instead = _INSTEAD.get((field, type(value)), "")
        raise RecordRefused("bad_type", field, f"expected a non-empty string, got {type_name(value)}{instead}")
    if not value:
        raise RecordRefused("bad_type", field, "expected a non-empty string, got an empty one")
    return value


def strings(value: object, field: str) -> tuple[str, ...]:
    """Return a non-empty array of strings as a tuple."""
    if not isinstance(value, list):
        instead = _INSTEAD.get((field, type(value)), "")
        detail = f"expected a non-empty array of strings, got {type_name(value)}{instead}"
        raise RecordRefused("bad_type", field, detail)
    if not value:
        raise RecordRefused("bad_type", field, "expected a non-empty array of strings, got an empty one")
    for index, element in enumerate(value):
        if not isinstance(element, str):
            detail = f"expected strings, got {type_name(element)} {element!r} at index {index}"
            raise RecordRefused("bad_type", field, f'{detail}; write "{element}"' if is_number(element) else detail)
    return tuple(value)


def one_of(value: object, field: str, choices: Collection[str]) -> str:
    """Return a string out of a closed vocabulary."""
    name = string(value, field)
    if name not in choices:
        raise RecordRefused("bad_value", field, not_one_of(name, sorted(choices)))
    # Every line of a file has a text of its own for the same word.
    return intern(name)


def optional_object(record: Mapping[str, Any], field: str, within: str = "") -> Mapping[str, Any]:
    """Return the object under ``field``, or an empty one; ``within`` is the path of ``record`` where it is a part."""
    value = record.get(field, NOTHING)
    if not isinstance(value, dict):
        path = f"{within}.{field}" if within else field
        raise RecordRefused("bad_type", path, f"expected an object, got {type_name(value)}")
    return value


def number_in_range(value: object, field: str, low: float, high: float) -> float:
    """Return a number between ``low`` and ``high``, both allowed."""
    if not is_number(value):
        raise RecordRefused("bad_type", field, f"expected a number in [{low:g}, {high:g}], got {type_name(value)}")
    if not low <= value <= high:
        raise RecordRefused("bad_value", field, f"expected a number in [{low:g}, {high:g}], got {value!r}")
    return float(value)


def gate_fields(holder: Mapping[str, Any], prefix: str) -> None:
    """Check what ``metadata`` or ``extras`` tell the run: threshold, must_pass, cluster, quarantine and repeats."""
    if "threshold" in holder:
        number_in_range(holder["threshold"], f"{prefix}.threshold", 0.0, 1.0)
    if "repeats" in holder or "passes" in holder:
        _repeats(holder, prefix)
    if not isinstance(holder.get("must_pass", False), bool):
        detail = f"expected true or false, got {type_name(holder['must_pass'])}"
        raise RecordRefused("bad_type", f"{prefix}.must_pass", detail)
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
        detail = f"of {holder['repeats']} repeats {holder['passes']} cannot pass"
        raise RecordRefused("bad_value", f"{prefix}.passes", detail)


def _quarantine(value: object, field: str) -> None:
    if not isinstance(value, dict):
        raise RecordRefused("bad_type", field, f"expected {{until, reason}}, got {type_name(value)}")
    for name in ("until", "reason"):
        if name not in value:
            raise RecordRefused("missing_required", f"{field}.{name}", "a quarantine needs until, a date, and reason")
        string(value[name], f"{field}.{name}")
    for name in value:
        if name not in ("until", "reason"):
            raise RecordRefused("unknown_field", f"{field}.{name}", "a quarantine has until and reason, and no more")
    if not _is_date(value["until"]):
        detail = f"expected a date as YYYY-MM-DD, got {value['until']!r:.80}"
        raise RecordRefused("bad_value", f"{field}.until", detail)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def reachable(targets: Sequence[str], metric: str) -> None:
    """Raise RecordRefused for targets by which every answer scores 0, or 1: texts without a character, for a metric."""
    if metric == "substring_contains" and not all(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", "every text contains an empty target; give a text to look for")
    if metric in _OVER_TOKENS and not any(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", f"{metric} gives every answer 0 for an empty target; give a text")


def known_metric(value: Any, field: str, registry: Registry) -> str:
    """Return the word of a file for a metric; raise RecordRefused for one that there is not, and for that of turns."""
    metric = string(value, field)
    if RENAMED.get(metric, metric) not in registry.metrics:
        choices = registry.metrics.keys() - _OF_RECORDS.keys()
        raise RecordRefused("bad_value", field, str(UnknownName("metric", metric, choices)))
    if metric in _OF_RECORDS:
        detail = f"{metric} is the metric of a record that has {metric} instead of {_OF_RECORDS[metric]}"
        raise RecordRefused("bad_value", field, detail)
    return metric


def id_of(fields: Mapping[str, Any], line: int) -> str:
    """Return the id of a record, or one made of its line."""
    value = fields.get("id", f"ex-{line}")
    return str(value) if not isinstance(value, str) and is_whole(value) else string(value, "id")
