"""A task's filters, which turn the responses to a document into results to score."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, nearest
from pytest_lmeval.formats.harness.config import FunctionRef
from pytest_lmeval.formats.harness.documents import Row
from pytest_lmeval.metrics.parts.patterns import Pattern, compiled, without

Filter = Callable[[Any, Row], Any]
"""A filter takes the responses to a document and the document's row, and returns the next filter's input."""
NUMBER = r"#### (\-?[0-9\.\,]+)"
_REGISTERED = re.compile(
    r"^[ \t]*@[\w.]*register_filter\(\s*[\"']([^\"']+)[\"']\s*\)\s*\n(?:[ \t]*@.*\n)*[ \t]*class\s+(\w+)", re.MULTILINE
)


def pipelines(
    given: Sequence[Any] | None, call: Callable[..., Any], functions: Sequence[FunctionRef] = ()
) -> dict[str, list[Filter]]:
    """Return each pipeline's filters by name; the default pipeline takes the first response.

    ``call`` runs one of the task's own ``functions``, whose modules may register filters.
    """
    if given is None:
        return {"none": [_FILTERS["take_first"]]}
    if not given:
        raise RecordRefused("missing_required", "filter_list", "expected a name and its list filter")
    found: dict[str, list[Filter]] = {}
    for each in given:
        if not isinstance(each, dict) or not isinstance(each.get("filter"), list) or "name" not in each:
            raise RecordRefused("bad_value", "filter_list", f"expected name and a list filter, got {each!r:.80}")
        if (name := str(each["name"])) in found:
            raise RecordRefused("bad_value", "filter_list", f"duplicate pipeline {name!r}")
        found[name] = [_filter(step, call, functions) for step in each["filter"]]
    return found


def _filter(step: Any, call: Callable[..., Any], functions: Sequence[FunctionRef]) -> Filter:
    if not isinstance(step, dict) or "function" not in step:
        raise RecordRefused("bad_value", "filter_list", f"expected a function, got {step!r:.80}")
    name, options = step["function"], {key: value for key, value in step.items() if key != "function"}
    own = options.get("filter_fn")
    if name == "custom" and isinstance(own, FunctionRef):
        return partial(_own, own, partial(call, own))
    if name == "custom":
        raise RecordRefused("bad_value", "filter_list", f"custom: expected filter_fn, a !function, got {own!r:.80}")
    if not isinstance(name, FunctionRef) and str(name) not in _FILTERS:
        name = _registered(str(name), functions)
    if isinstance(name, FunctionRef):
        return partial(_own, name, lambda given, rows: call(name, **options).apply(given, rows))
    try:
        signature(_FILTERS[name]).bind_partial(**options)
        compiled(options.get("regex_pattern", ""))
        without(options.get("regexes_to_ignore"), "")
    except (TypeError, ValueError) as error:
        raise RecordRefused("bad_value", "filter_list", f"the filter {name}: {error}") from None
    return partial(_FILTERS[name], **options) if options else _FILTERS[name]


def _registered(name: str, functions: Sequence[FunctionRef]) -> FunctionRef:
    """Return the class that a module of ``functions``, or one in its folder, registers as the filter ``name``."""
    files = [ref.file for ref in functions if ref.file.is_file()]
    found: dict[str, FunctionRef] = {}
    for place in (files, sorted({each for file in files for each in file.parent.glob("*.py")})):
        for file in () if name in found else place:
            for named, kind in _REGISTERED.findall(file.read_text("utf-8", "replace")):
                ref = FunctionRef(file.parent, file.stem, kind)
                if named == name and found.setdefault(name, ref) != ref:
                    detail = f"{found[name]} and {ref} both register the filter {name!r}"
                    raise RecordRefused("bad_value", "filter_list", detail)
                found.setdefault(named, ref)
    if name not in found:
        hint = nearest(name, [*_FILTERS, "custom", *found], "expected one of")
        raise RecordRefused("not_supported", "filter_list", f"unknown filter {name!r:.80}{hint}")
    return found[name]


def own_filters(found: Mapping[str, Sequence[Filter]]) -> list[FunctionRef]:
    """Return the task's functions and classes that its pipelines call."""
    steps = [step for steps in found.values() for step in steps if isinstance(step, partial)]
    return [step.args[0] for step in steps if step.func is _own]


def _own(ref: FunctionRef, function: Callable[..., Any], given: Any, row: Row) -> Any:
    """Call one of the task's filters with a list of one document's responses, and return that document's result."""
    found = [*function([given], [dict(row)])]
    if len(found) != 1:
        raise ScoringError(f"{ref} returned {len(found)} lists of responses for one document")
    return found[0]


def _each(change: Callable[..., Any]) -> Filter:
    @wraps(change)  # for the filter's option names
    def every(given: Any, row: Row, **options: Any) -> Any:
        return [change(response, **options) for response in given]

    return every


def _regex(
    given: Any, row: Row, regex_pattern: str = NUMBER, group_select: int = 0, fallback: Any = "[invalid]"
) -> Any:
    found = found_in(compiled(regex_pattern), given, group_select)
    return [fallback if each is None else each for each in found]


def found_in(pattern: Pattern, responses: Sequence[Any], group: int) -> list[str | None]:
    """Return match number ``group`` in each response, or None; of several groups, take the first that is not empty."""
    texts = [response if isinstance(response, str) else "" for response in responses]
    return [_chosen(found[group]) if found else None for found in pattern.findall(texts)]


def _chosen(match: Any) -> str | None:
    chosen = match if isinstance(match, str) else next(filter(None, match), None)
    return None if chosen is None else chosen.strip()


def _multi_choice(  # noqa: PLR0913  # the filter's options, by their names in task files
    given: Any,
    row: Row,
    regex_pattern: str = NUMBER,
    group_select: int = 0,
    fallback: Any = "[invalid]",
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    regexes_to_ignore: Sequence[str] | None = None,
) -> Any:
    def cleaned(text: str) -> str:
        text = without(regexes_to_ignore, text)
        text = text.lower() if ignore_case else text
        return "".join(c for c in text if unicodedata.category(c)[0] != "P") if ignore_punctuation else text

    letters = {chr(65 + number): f"({chr(65 + number)})" for number in range(len(row["choices"]))}
    by_text = dict(zip((cleaned(choice.strip()) for choice in row["choices"]), letters.values(), strict=True))
    # Try the longest option first, because an option may begin with another option.
    texts = compiled("|".join(sorted(map(re.escape, by_text), key=len, reverse=True)))
    bare = compiled(rf":[\s]*({'|'.join(letters)})")
    answers = []
    for response, found in zip(given, found_in(compiled(regex_pattern), given, group_select), strict=True):
        text = response if isinstance(response, str) else ""
        for pattern, where, names in ((texts, cleaned(text), by_text), (bare, text, letters)):
            if not found and (other := found_in(pattern, [where], group_select)[0]):
                found = names.get(other, other)
        answers.append(found or fallback)
    return answers


def _take_first_k(given: Any, row: Row, k: int) -> Any:
    if len(given) < k:
        raise RecordRefused("bad_value", "repeats", f"take_first_k needs {k} responses, got {len(given)}")
    return given[:k]


def _mapped(response: Any, mapping_dict: Mapping[Any, Any] | None = None, default_value: Any = None) -> Any:
    return (mapping_dict or {}).get(response, default_value)


def _tags(response: Any, fallback: Sequence[str] = ("invalid",), **_: Any) -> Any:
    found = [tag for _, tag in re.findall(r"\('([^']*)', '([^']*)'\)", response)]
    return found or [*fallback]


_LABELS = {
    **dict.fromkeys(("person", "people", "persons", "per"), "PER"),
    **dict.fromkeys(("location", "counties", "places", "country", "continent", "loc"), "LOC"),
    **dict.fromkeys(("organization", "company", "org"), "ORG"),
    **dict.fromkeys(("time", "date"), "DATE"),
}
_LABELLED = re.compile(rf"\b({'|'.join(_LABELS)})\s*:")


def _spans(response: str) -> str:
    text = _LABELLED.sub(lambda found: f"{_LABELS[found[1]]}:", response.lower())
    text = "$".join(text.split("$$")).rstrip("$").replace("\n", "$").strip()
    found = [
        f"{label.lower()}: {entity}"
        for label, entities in re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text)
        for entity in map(str.strip, entities.split(","))
        if entity.lower() != "none"
    ]
    return " $ ".join(found)


_FILTERS: dict[str, Callable[..., Any]] = {
    "take_first": lambda given, row: given[0],
    "take_first_k": _take_first_k,
    "majority_vote": lambda given, row: [Counter(given).most_common(1)[0][0]],
    "regex": _regex,
    "regex_pos": _each(_tags),
    "multi_choice_regex": _multi_choice,
    "remove_whitespace": _each(str.strip),
    "lowercase": _each(str.lower),
    "uppercase": _each(str.upper),
    "map": _each(_mapped),
    "format_span": _each(_spans),
}
