"""The data files: tests that are checked alike are the rows of one, and each prompt is a variant of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.interop.importers.promptfoo.cases import Case
from pytest_lmeval.interop.importers.promptfoo.checks import FULFILS, Check
from pytest_lmeval.interop.importers.promptfoo.prompts import Prompt
from pytest_lmeval.interop.importers.promptfoo.templates import (
    is_blank,
    is_template,
    names_in,
    script_text,
    tolerating,
)

_IDS = ("id", "test", "test_id", "promptfoo_test")
_MOST_INLINE = 40
_LONGEST_INLINE = 30_000
_LOOKS_INTO = re.compile(r"\{\{-?\s*(\w+)\s*[.\[|]")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """A case and its checks, with what is said of the whole example."""

    case: Case
    checks: Sequence[Check]
    before: str = ""
    after: str = ""
    threshold: float | None = None

    @property
    def form(self) -> str:
        """What cases must have in common to be rows of one file: all but the texts that differ from row to row."""
        checks = [replace(each, targets=("",) * len(each.targets), demand=each.demand[:0]) for each in self.checks]
        return repr((checks, [bool(each.demand) for each in self.checks], self.before, self.after, self.threshold))


def grouped(cases: Sequence[Checked]) -> list[list[Checked]]:
    """Return the cases of each form, in the order in which the forms come first."""
    groups: dict[str, list[Checked]] = {}
    for case in cases:
        groups.setdefault(case.form, []).append(case)
    return [*groups.values()]


def document_of(group: Sequence[Checked], prompts: Sequence[Prompt]) -> tuple[Row, list[Row]]:
    """Return a data file without its rows, and the rows."""
    first = group[0]
    columns = {name: None for each in group for name in each.case.variables}
    id_column = next(name for name in _IDS if name not in columns)
    looked_into = {name for text in _templates(group, prompts) for name in _LOOKS_INTO.findall(text)}
    rows = [
        {id_column: _id(each.case)}
        | {name: _cell(each.case.variables.get(name), is_plain=name not in looked_into) for name in columns}
        for each in group
    ]
    for key in {key: None for each in group for key in each.case.metadata}:
        # Under the name of no variable, as templates see no metadata.
        values = [each.case.metadata.get(key) for each in group]
        _add_column(f"metadata_{key}", ["" if value is None else value for value in values], rows)
    checks = [_check(number, group, rows) for number in range(len(first.checks))]
    used = {name for prompt in prompts for _, text in prompt.messages for name in names_in(text)}
    blank = {name for name in columns if any(is_blank(row[name]) for row in rows)} | (used - columns.keys())
    texts = {each.name: _prompt(each, first, blank, rows) for each in prompts}
    document = {
        "prompt": texts if len(texts) > 1 else texts[prompts[0].name],
        **({"id": f"{{{{ {id_column} }}}}"} if id_column != "id" else {}),
        **({"threshold": first.threshold} if first.threshold is not None else {}),
        "checks": _named(checks, has_threshold=first.threshold is not None),
    }
    return document, rows


def fits_inline(rows: Sequence[Row]) -> bool:
    """Tell whether rows are few and short enough to be in the data file itself."""
    return len(rows) <= _MOST_INLINE and len(json.dumps(rows)) <= _LONGEST_INLINE


def _templates(group: Sequence[Checked], prompts: Sequence[Prompt]) -> Iterator[str]:
    yield from (text for prompt in prompts for _, text in prompt.messages)
    yield from (text for each in group for check in each.checks for text in (*check.targets, check.demand))
    yield from (text for each in group for text in (each.before, each.after))


def _cell(value: Any, *, is_plain: bool) -> Any:
    # Texts of other values are those of JavaScript; if a template looks into a value, it stays as it is.
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return script_text(value) if value is None or (is_plain and not is_integer) else value


def _id(case: Case) -> str:
    return f"{case.number}-{safe_name(case.description.lower(), '')[:50]}".rstrip("-")


def _prompt(prompt: Prompt, first: Checked, blank: set[str], rows: Sequence[Row]) -> Any:
    (role, text), *others = prompt.messages
    messages = [(role, first.before + text), *others]
    messages[-1] = messages[-1][0], messages[-1][1] + first.after
    if not any(names_in(text) for _, text in messages):
        # A prompt of a data file uses a column, and this one is the same for all rows.
        role, text = messages[-1]
        messages[-1] = role, f"{{{{ {_add_column('prompt_text', [text] * len(rows), rows)} }}}}"
    found = [{"role": role, "content": tolerating(text, blank)} for role, text in messages]
    return found if role else found[0]["content"]


def _check(number: int, group: Sequence[Checked], rows: Sequence[Row]) -> Check:
    """Return a check of a group: what differs from row to row is in columns, which are added to the rows."""
    found = [each.checks[number] for each in group]
    check = found[0]
    if check.demand and all(each.demand == check.demand for each in found) and not is_template(check.demand):
        return replace(check, extras={"rubric": check.demand, **check.extras})
    if check.demand:
        found = [replace(each, targets=(each.demand,)) for each in found]
        check = replace(found[0], extras={"rubric": FULFILS, **check.extras})
    targets = [
        _target([each.targets[place] for each in found], check.name, group, rows) for place in range(len(check.targets))
    ]
    return replace(check, targets=tuple(targets))


def _target(texts: Sequence[str], name: str, group: Sequence[Checked], rows: Sequence[Row]) -> str:
    if any(text != texts[0] for text in texts):
        column = _add_column(name, [each.case.fill(text) for text, each in zip(texts, group, strict=True)], rows)
        return tolerating(f"{{{{ {column} }}}}", [column] if any(is_blank(row[column]) for row in rows) else [])
    text = texts[0]
    if is_template(text):
        return tolerating(text, [name for name in names_in(text) if any(is_blank(row.get(name)) for row in rows)])
    # A text that is empty, or the name of a column, would be taken for a slip.
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}" if not text.strip() or text.strip() in rows[0] else text


def _add_column(name: str, values: Sequence[Any], rows: Sequence[Row]) -> str:
    """Add a column under a name that is made of ``name`` and is free; return that."""
    name = safe_name(name, "expected").replace("-", "_")
    name = FileNames(("range", "row", *rows[0])).give(f"expected_{name}" if name[0].isdigit() else name, "_")
    for row, value in zip(rows, values, strict=True):
        row[name] = value
    return name


def _named(checks: Sequence[Check], *, has_threshold: bool) -> list[Row]:
    found: list[Row] = []
    names = FileNames()
    for check in checks:
        threshold = 0 if has_threshold else check.threshold
        targets = {"target": check.targets[0]} if len(check.targets) == 1 else {"targets": [*check.targets]}
        found.append(
            {
                "metric": check.metric,
                **(targets if check.targets else {}),
                "name": names.give(check.name if check.name != "checks" else "all"),
                **({"threshold": threshold} if threshold is not None else {}),
                **({"weight": round(check.weight, 9)} if check.weight != 1 else {}),
                **({"extras": dict(check.extras)} if check.extras else {}),
            }
        )
    return found
