"""Turn an assertion into checks of a data file, or give the reason why it has no counterpart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_lmeval.interop.importers.promptfoo.config import Folder, LeftOut, Node, Remarks, is_reference
from pytest_lmeval.interop.importers.promptfoo.reasons import DIFFERS, OF_A_KEY, TRANSFORM, WITHOUT
from pytest_lmeval.interop.importers.promptfoo.templates import checked, is_template, script_text
from pytest_lmeval.numbers import is_number

_AGREES = "The text agrees with the reference: it may say less or more, and contradicts nothing in it."
_KNOWN = frozenset({"type", "value", "threshold", "weight", "metric"})


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a data file.

    ``targets`` are templates. ``demand`` is the criterion for a judge, or "" without a judge.
    """

    metric: str
    targets: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None
    name: str = ""
    weight: float = 1
    demand: str = ""


def checks_of(node: Node, folder: Folder, remarks: Remarks) -> list[Check]:
    """Return an assertion's checks; raise LeftOut if it has no counterpart."""
    given = node.written_out().value
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        raise LeftOut(f"expected an assertion with a type, got {given!r:.60}")
    kind = given["type"].removeprefix("not-")
    is_not = kind != given["type"]
    if "transform" in given:
        raise LeftOut(TRANSFORM, node.at("transform"))
    if kind not in _MAKERS:
        raise LeftOut(WITHOUT.get(kind, f"unknown assertion {given['type']!r}"))
    value = node.at("value").written_out()
    if is_reference(value.value):
        value = replace(value, value=folder.value(folder.find(value)[0], value))
    found = _MAKERS[kind](value.value, node)
    if is_not and (len(found) > 1 or found[0].threshold is not None):
        raise LeftOut("`not` of a score with a threshold, or of two checks, has no counterpart")
    if kind in DIFFERS:
        remarks.differ(node, DIFFERS[kind], kind)
    remarks.leave_others(node, _KNOWN, OF_A_KEY)
    common = {"not": True} if is_not else {}
    weight = given.get("weight", 1)
    if not is_number(weight) or weight <= 0:
        raise LeftOut(f"weight {weight!r:.40}; expected a number above 0: any check here can fail", node.at("weight"))
    name = str(given.get("metric") or given["type"])
    return [replace(each, extras={**each.extras, **common}, name=name, weight=weight / len(found)) for each in found]


def _text(value: Any) -> str:
    if value is None:
        raise LeftOut("it has no value")
    return checked(script_text(value))


def _part(value: Any) -> str:
    text = _text(value)
    if not text:
        raise LeftOut("every answer contains an empty text, so the check would always pass")
    return text


def _list(value: Any) -> tuple[str, ...]:
    # promptfoo splits text at commas.
    parts = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        raise LeftOut(f"expected a list of texts, got {value!r:.60}")
    return tuple(map(_part, parts))


def _equals(value: Any, node: Node) -> list[Check]:
    if isinstance(value, dict | list):
        return [Check("json_exact", (json.dumps(value, ensure_ascii=False),)), Check("only_json", ("JSON",))]
    return [Check("exact_match", (_text(value),))]


def _parts(metric: str, *, fold: bool, several: bool = False) -> Callable[[Any, Node], list[Check]]:
    extras = {"ignore_case": True} if fold else {}
    return lambda value, node: [Check(metric, _list(value) if several else (_part(value),), extras)]


def _regex(value: Any, node: Node) -> list[Check]:
    text = _text(value)
    try:
        re.compile("" if is_template(text) else text)
    except (re.error, OverflowError, RecursionError) as error:
        raise LeftOut(f"not a regular expression of Python: {error}") from None
    if "[]" in text or "[^]" in text:
        raise LeftOut("[] and [^] of JavaScript mean something else in Python; [\\s\\S] is any character in both")
    return [Check("regex", (text,))]


def _json(whole: str) -> Callable[[Any, Node], list[Check]]:
    def make(value: Any, node: Node) -> list[Check]:
        found = [Check(whole, ("JSON",))]
        if value in (None, ""):
            return found
        if not isinstance(value, dict | bool):
            raise LeftOut("a JSON Schema that is not a mapping; write it as YAML or in a .json file")
        schema = Check("json_schema", ("JSON",), {"json_schema": value})
        return [schema] if whole == "is_json" else [*found, schema]

    return make


def _overlap(metric: str, default: float) -> Callable[[Any, Node], list[Check]]:
    return lambda value, node: [Check(metric, (_text(value),), threshold=_share(node, default))]


def _judged(value: Any, node: Node) -> list[Check]:
    demands = value if isinstance(value, list) else [value]
    threshold = _share(node, None)
    return [Check("rubric", demand=_part(each), threshold=threshold) for each in demands]


def _facts(value: Any, node: Node) -> list[Check]:
    return [Check("rubric", (_part(value),), {"rubric": _AGREES}, _share(node, None))]


def _share(node: Node, default: float | None) -> float | None:
    return share_of(node.at("threshold")) if "threshold" in node.value else default


def share_of(node: Node) -> float:
    """Return a threshold; raise LeftOut unless it is a number from 0 to 1."""
    if not is_number(node.value) or not 0 <= node.value <= 1:
        raise LeftOut(f"threshold {node.value!r:.40}; expected a number from 0 to 1", node)
    return float(node.value)


_MAKERS: Mapping[str, Callable[[Any, Node], list[Check]]] = {
    "equals": _equals,
    "contains": _parts("contains_all", fold=False),
    "icontains": _parts("contains_all", fold=True),
    "contains-all": _parts("contains_all", fold=False, several=True),
    "icontains-all": _parts("contains_all", fold=True, several=True),
    "contains-any": _parts("contains_any", fold=False, several=True),
    "icontains-any": _parts("contains_any", fold=True, several=True),
    "starts-with": _parts("starts_with", fold=False),
    "regex": _regex,
    "is-json": _json("only_json"),
    "contains-json": _json("is_json"),
    "rouge-n": _overlap("rouge_1", 0.75),
    "bleu": _overlap("bleu_4", 0.5),
    "llm-rubric": _judged,
    "model-graded-closedqa": _judged,
    "g-eval": _judged,
    "factuality": _facts,
    "model-graded-factuality": _facts,
}


def is_kind(name: str) -> bool:
    """Return True if promptfoo has an assertion called ``name``."""
    return name.removeprefix("not-") in {*_MAKERS, *WITHOUT}
