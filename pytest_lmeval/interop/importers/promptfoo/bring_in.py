"""Turn a config into data files: tests with equal checks share a file, and each prompt is a variant in that file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.file_names import FileNames, safe_name
from pytest_lmeval.interop.files import NewFiles, encode_lines
from pytest_lmeval.interop.importers import Imported
from pytest_lmeval.interop.importers.promptfoo.cases import Case, read_cases
from pytest_lmeval.interop.importers.promptfoo.checks import Check, checks_of, share_of
from pytest_lmeval.interop.importers.promptfoo.config import Folder, LeftOut, Node, Remarks, read_config
from pytest_lmeval.interop.importers.promptfoo.prompts import Prompt, read_prompts
from pytest_lmeval.interop.importers.promptfoo.providers import profiles_text, read_providers
from pytest_lmeval.interop.importers.promptfoo.reasons import ENDS, OF_A_KEY
from pytest_lmeval.interop.importers.promptfoo.templates import is_blank, is_template, names_in, script_text, tolerating
from pytest_lmeval.interop.importers.yaml_text import yaml_text

_FULFILS = "The text fulfils what the reference demands."
_USUAL_NAME = "promptfooconfig"
_READ = frozenset(
    {"$schema", "description", "prompts", "providers", "targets", "tests", "defaultTest", "evaluateOptions"}
)
_MOST_INLINE = 40
_LONGEST_INLINE = 30_000
_LOOKS_INTO = re.compile(r"\{\{-?\s*(\w+)\s*[.\[|]")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """A case, its checks, and its example's threshold."""

    case: Case
    checks: Sequence[Check]
    threshold: float | None

    @property
    def form(self) -> str:
        """A key that all of a file's cases share: every part except the strings that may differ between rows."""
        checks = [replace(each, targets=("",) * len(each.targets), demand=each.demand and "?") for each in self.checks]
        return repr((checks, self.threshold))


def bring_in(source: Path, destination: Path) -> Imported:
    """Return the data files and profiles for the config at ``source``; raise UsageError if nothing can be imported."""
    config, remarks = read_config(source), Remarks()
    folder, files = Folder(source.parent), NewFiles(destination)
    remarks.leave_others(config, _READ, OF_A_KEY)
    remarks.leave_others(config.at("evaluateOptions"), frozenset(), OF_A_KEY)
    prompts = read_prompts(config, folder, remarks)
    cases = [*_checked(read_cases(config, folder, remarks), prompts, folder, remarks)] if prompts else []
    if not cases:
        raise Imported(files, remarks.left_out).nothing(source, "test")
    head, name = _description(config), _name(source)
    groups: dict[str, list[Checked]] = {}
    for case in cases:
        groups.setdefault(case.form, []).append(case)
    for number, group in enumerate(groups.values(), 1):
        stem = files.stem(f"{name}-{number}" if len(groups) > 1 else name)
        document, rows = _document_of(group, prompts)
        held: Row = {"rows": rows}
        if len(rows) > _MOST_INLINE or len(json.dumps(rows)) > _LONGEST_INLINE:
            held = {"data": f"{stem}.rows.jsonl"}
            files.add(held["data"], encode_lines(rows))
        files.add(f"{stem}.yaml", head + yaml_text({"prompt": document.pop("prompt"), **held, **document}).encode())
    profiles = read_providers(config, remarks)
    steps = []
    if profiles:
        files.add("profiles.toml", profiles_text(profiles).encode())
        steps.append(f"cat {destination / 'profiles.toml'} >> pyproject.toml")
    judge = " --lm-judge=SPEC" if any(check.metric == "rubric" for each in cases for check in each.checks) else ""
    steps.append(f"pytest {destination} --lm-adapter={next(iter(profiles), 'SPEC')}{judge}")
    return Imported(files, remarks.left_out, remarks.differs, steps)


def _checked(cases: Sequence[Case], prompts: Sequence[Prompt], folder: Folder, remarks: Remarks) -> Iterator[Checked]:
    for case in cases:
        try:
            found = _of_case(case, folder, remarks)
            for prompt in prompts:
                prompt.check(case.variables)
            yield found
        except LeftOut as left:
            remarks.leave_for(left, case.node, case.node.name)


def _of_case(case: Case, folder: Folder, remarks: Remarks) -> Checked:
    for key, option in case.options.items():
        if key in ENDS:
            raise LeftOut(f"options.{key}: {ENDS[key]}", option)
        remarks.leave(option, OF_A_KEY.get(key, "an option of one test; a profile has options of the model"))
    checks = []
    for node in case.asserts:
        try:
            found = checks_of(node, folder, remarks)
            for text in (text for check in found for text in (*check.targets, check.demand)):
                case.fill(text)
            checks += found
        except LeftOut as left:
            kind = node.value.get("type", "") if isinstance(node.value, dict) else ""
            remarks.leave_for(left, node, f"{node.name} {kind}".strip())
    if not checks:
        why = "none of its assertions has a counterpart" if case.asserts else "without assertions it always passes"
        raise LeftOut(f"{why}; an example needs a check")
    return Checked(case, checks, None if case.threshold is None else share_of(case.threshold))


def _description(config: Node) -> bytes:
    described = config.value.get("description")
    printed = "".join(character if character.isprintable() else "\n" for character in str(described or ""))
    return "".join(f"# {line}\n" for line in printed.splitlines()).encode("utf-8", "replace")


def _name(source: Path) -> str:
    stem = source.resolve().parent.name if source.stem == _USUAL_NAME else source.stem
    return safe_name(stem.removeprefix(f"{_USUAL_NAME}.").removesuffix(f".{_USUAL_NAME}"), "promptfoo")


def _document_of(group: Sequence[Checked], prompts: Sequence[Prompt]) -> tuple[Row, list[Row]]:
    first = group[0]
    columns = {name: None for each in group for name in each.case.variables}
    id_column = FileNames(columns).give("id", "_")
    looked_into = {name for text in _templates(group, prompts) for name in _LOOKS_INTO.findall(text)}
    rows = [
        {id_column: _id(each.case)}
        | {name: _cell(each.case.variables.get(name), is_plain=name not in looked_into) for name in columns}
        for each in group
    ]
    checks = [_check(number, group, rows) for number in range(len(first.checks))]
    used = {name for prompt in prompts for _, text in prompt.messages for name in names_in(text)}
    blank = {name for name in columns if any(is_blank(row[name]) for row in rows)} | (used - columns.keys())
    texts = {each.name: _prompt(each, blank, rows) for each in prompts}
    document = {
        "prompt": texts if len(texts) > 1 else texts[prompts[0].name],
        **({"id": f"{{{{ {id_column} }}}}"} if id_column != "id" else {}),
        **({"threshold": first.threshold} if first.threshold is not None else {}),
        "checks": _named(checks, has_threshold=first.threshold is not None),
    }
    return document, rows


def _templates(group: Sequence[Checked], prompts: Sequence[Prompt]) -> Iterator[str]:
    yield from (text for prompt in prompts for _, text in prompt.messages)
    yield from (text for each in group for check in each.checks for text in (*check.targets, check.demand))


def _cell(value: Any, *, is_plain: bool) -> Any:
    # Convert values as JavaScript does, but keep a value that a template looks into.
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return script_text(value) if value is None or (is_plain and not is_integer) else value


def _id(case: Case) -> str:
    return f"{case.number}-{safe_name(case.description.lower(), '')[:50]}".rstrip("-")


def _prompt(prompt: Prompt, blank: set[str], rows: Sequence[Row]) -> Any:
    messages = [*prompt.messages]
    if not any(names_in(text) for _, text in messages):
        # A data file's prompt must use a column, but this prompt is the same for all rows.
        role, text = messages[-1]
        messages[-1] = role, f"{{{{ {_add_column('prompt_text', [text] * len(rows), rows)} }}}}"
    found = [{"role": role, "content": tolerating(text, blank)} for role, text in messages]
    return found if messages[0][0] else found[0]["content"]


def _check(number: int, group: Sequence[Checked], rows: Sequence[Row]) -> Check:
    """Return a check of a group; strings that differ between rows become columns."""
    found = [each.checks[number] for each in group]
    check = found[0]
    if check.demand and all(each.demand == check.demand for each in found) and not is_template(check.demand):
        return replace(check, extras={"rubric": check.demand, **check.extras})
    if check.demand:
        found = [replace(each, targets=(each.demand,)) for each in found]
        check = replace(found[0], extras={"rubric": _FULFILS, **check.extras})
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
    # A data file refuses a string that is empty or is the name of a column.
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}" if not text.strip() or text.strip() in rows[0] else text


def _add_column(name: str, values: Sequence[Any], rows: Sequence[Row]) -> str:
    """Add a column, and return its name, which is ``name`` made valid and unique."""
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
