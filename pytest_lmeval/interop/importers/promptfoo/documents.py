"""The data files: tests that are checked alike are the rows of one, and each prompt is a variant of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.interop.importers.promptfoo.cases import Case
from pytest_lmeval.interop.importers.promptfoo.checks import FULFILS, Check
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut
from pytest_lmeval.interop.importers.promptfoo.prompts import Prompt, Text
from pytest_lmeval.interop.importers.promptfoo.templates import (
    filled,
    is_blank,
    is_template,
    names_in,
    script_text,
    tolerating,
)

_IDS = ("id", "test", "test_id", "promptfoo_test")
_MOST_INLINE = 40
_LONGEST_INLINE = 30_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A case and its checks, with what is said of the whole example."""

    case: Case
    checks: Sequence[Check]
    before: str = ""
    after: str = ""
    threshold: float | None = None
    rule: str = ""

    @property
    def form(self) -> tuple[Any, ...]:
        """What cases must have in common to be rows of one file."""
        return (*map(_form_of_check, self.checks), self.before, self.after, self.threshold, self.rule)


def _form_of_check(check: Check) -> tuple[Any, ...]:
    extras = json.dumps(check.extras, sort_keys=True)
    said = (check.metric, extras, check.threshold, check.name, check.weight)
    return (*said, len(check.targets), bool(check.demand))


def grouped(cases: Sequence[Checked]) -> list[list[Checked]]:
    """Return the cases of each form, in the order in which the forms come first."""
    groups: dict[tuple[Any, ...], list[Checked]] = {}
    for case in cases:
        groups.setdefault(case.form, []).append(case)
    return [*groups.values()]


def document_of(group: Sequence[Checked], prompts: Sequence[Prompt], repeats: int) -> tuple[dict[str, Any], list[Any]]:
    """Return a data file without its rows, and the rows."""
    first = group[0]
    columns = {name: None for each in group for name in each.case.variables}
    id_column = next(name for name in _IDS if name not in columns)
    plain = _plain_names(prompts, group)
    rows = [_row(each, columns, id_column, plain) for each in group]
    _add_metadata(rows, group)
    checks = [_check(number, group, rows) for number in range(len(first.checks))]
    blank = {name for name in columns if any(is_blank(row[name]) for row in rows)} | _unknown(prompts, columns)
    texts = {each.name: _prompt(each.text, first, blank) for each in prompts}
    repeated = {"extras": {"repeats": repeats, "passes": repeats}} if repeats > 1 else {}
    document = {
        "prompt": texts if len(texts) > 1 else texts[prompts[0].name],
        **({"id": f"{{{{ {id_column} }}}}"} if id_column != "id" else {}),
        **({"threshold": first.threshold} if first.threshold is not None else {}),
        **({"post_process": first.rule} if first.rule else {}),
        **repeated,
        "checks": _named(checks, has_threshold=first.threshold is not None),
    }
    return document, rows


def fits_inline(rows: Sequence[Any]) -> bool:
    """Tell whether rows are few and short enough to be in the data file itself."""
    return len(rows) <= _MOST_INLINE and len(json.dumps(rows)) <= _LONGEST_INLINE


def unfilled(prompt: Prompt, row: Mapping[str, Any]) -> str:
    """Return why a prompt cannot be filled with a row; "" where it can."""
    texts = [prompt.text] if isinstance(prompt.text, str) else [each["content"] for each in prompt.text]
    try:
        for text in texts:
            filled(text, row)
    except LeftOut as left:
        return left.why
    return ""


def _row(each: Checked, columns: Mapping[str, None], id_column: str, plain: set[str]) -> dict[str, Any]:
    cells = {name: _cell(each.case.variables.get(name), is_plain=name in plain) for name in columns}
    return {id_column: _id(each.case), **cells}


def _add_metadata(rows: Sequence[dict[str, Any]], group: Sequence[Checked]) -> None:
    """Add a column for each key; its name is that of no variable, as templates see no metadata."""
    for key in {key: None for each in group for key in each.case.metadata}:
        column = _column(f"metadata_{key}", rows[0])
        for row, each in zip(rows, group, strict=True):
            value = each.case.metadata.get(key)
            row[column] = "" if value is None else value


def _cell(value: Any, *, is_plain: bool) -> Any:
    # Texts of other values are those of JavaScript; where a template looks into a value, it stays as it is.
    if value is None:
        return ""
    return script_text(value) if is_plain and not (isinstance(value, int) and not isinstance(value, bool)) else value


def _id(case: Case) -> str:
    return f"{case.number}-{safe_name(case.description.lower(), '')[:50]}".rstrip("-")


def _plain_names(prompts: Sequence[Prompt], group: Sequence[Checked]) -> set[str]:
    """Return the variables that templates only put into the text, and do not look into."""
    texts = [each for prompt in prompts for each in _contents(prompt.text)]
    texts += [text for each in group for check in each.checks for text in (*check.targets, check.demand)]
    texts += [text for each in group for text in (each.before, each.after)]
    names = {name for each in group for name in each.case.variables}
    return {name for name in names if not any(_looks_into(name, text) for text in texts)}


def _looks_into(name: str, text: str) -> bool:
    rest = re.sub(r"\{\{-?\s*" + re.escape(name) + r"\s*-?\}\}", "", text)
    return is_template(rest) and name in names_in(rest)


def _contents(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else [each["content"] for each in text]


def _unknown(prompts: Sequence[Prompt], columns: Mapping[str, None]) -> set[str]:
    used = {name for prompt in prompts for text in _contents(prompt.text) for name in names_in(text)}
    return used - columns.keys()


def _prompt(text: Text, first: Checked, blank: set[str]) -> Any:
    if isinstance(text, str):
        return tolerating(f"{first.before}{text}{first.after}", blank)
    found = []
    for number, message in enumerate(text):
        before = first.before if number == 0 else ""
        content = f"{before}{message['content']}{first.after if number == len(text) - 1 else ''}"
        found.append({"role": message["role"], "content": tolerating(content, blank)})
    return found


def _check(number: int, group: Sequence[Checked], rows: Sequence[dict[str, Any]]) -> Check:
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


def _target(texts: Sequence[str], name: str, group: Sequence[Checked], rows: Sequence[dict[str, Any]]) -> str:
    if all(text == texts[0] for text in texts):
        return _literal(texts[0], rows)
    column = _column(name, rows[0])
    for text, each, row in zip(texts, group, rows, strict=True):
        row[column] = filled(text, {name: _seen(value) for name, value in each.case.variables.items()})
    return tolerating(f"{{{{ {column} }}}}", [column] if any(is_blank(row[column]) for row in rows) else [])


def _seen(value: Any) -> Any:
    return value if isinstance(value, dict | list) else script_text(value)


def _literal(text: str, rows: Sequence[dict[str, Any]]) -> str:
    if is_template(text):
        return tolerating(text, [name for name in names_in(text) if any(is_blank(row.get(name)) for row in rows)])
    # A text that is empty, or the name of a column, would be taken for a slip.
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}" if not text.strip() or text.strip() in rows[0] else text


def _column(name: str, row: Mapping[str, Any]) -> str:
    name = safe_name(name, "expected").replace("-", "_")
    return FileNames(("range", "row", *row)).give(f"expected_{name}" if name[0].isdigit() else name, "_")


def _named(checks: Sequence[Check], *, has_threshold: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    names = FileNames()
    for check in checks:
        name = names.give(check.name if check.name != "checks" else "all")
        threshold = 0 if has_threshold else check.threshold
        found.append(
            {
                "metric": check.metric,
                **_targets(check.targets),
                "name": name,
                **({"threshold": threshold} if threshold is not None else {}),
                **({"weight": round(check.weight, 9)} if check.weight != 1 else {}),
                **({"extras": dict(check.extras)} if check.extras else {}),
            }
        )
    return found


def _targets(targets: Sequence[str]) -> dict[str, Any]:
    if not targets:
        return {}
    return {"target": targets[0]} if len(targets) == 1 else {"targets": [*targets]}
