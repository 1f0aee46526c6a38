"""Load the tasks of a ``core.yaml`` and their random baselines, and report each error."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.data.lines import LINE_OPTION, number_lines, parse_line
from pytest_lmeval.data.rows import BadRows, csv_table
from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.core.task import CoreTask, Record, few_shots, render_record
from pytest_lmeval.formats.task import LoadedFile, Subjects, TaskSource
from pytest_lmeval.formats.yaml.document import line_in
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example, RecordError

_DATA_FOLDERS = ("", "eval_data")
_ROOT = "icl_tasks"
KINDS = ("language_modeling", "multiple_choice", "schema")
_REQUIRED = ("label", "dataset_uri", "num_fewshot", "icl_task_type")
_OPTIONAL = ("continuation_delimiter", "has_categories")
_LABEL_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@ -]{0,199}")


def load_core(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> LoadedFile:
    """Return the tasks of ``icl_tasks``, named by their labels, and the errors in entries and records.

    Data files are in the YAML file's folder, or in its subfolder ``eval_data``. Invalid entries and records are
    skipped.
    """
    loader = _CoreLoader(source, document)
    loader.load(document.get(_ROOT))
    return LoadedFile(tuple(loader.tasks), loader.errors, subjects=loader.subjects, draws_few_shots=True)


@dataclass(slots=True)
class _CoreLoader:
    """Reads one ``core.yaml``, in which labels must be unique."""

    source: TaskSource
    document: Mapping[str, Any]
    tasks: list[CoreTask] = field(default_factory=list)
    errors: list[RecordError] = field(default_factory=list)
    subjects: dict[str, Subjects] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=dict)

    def load(self, entries: object) -> None:
        """Read all ``entries``."""
        try:
            if not isinstance(entries, list) or not entries:
                raise RecordRefused("bad_type", _ROOT, f"expected a list of tasks, got {checks.type_name(entries)}")
            for name in self.document:
                if name != _ROOT:
                    raise RecordRefused("unknown_field", name, f"unknown field {name!r}; expected {_ROOT} alone")
            baselines = read_baselines(self.source.path.parent)
        except RecordRefused as refused:
            self._refuse(refused, (refused.field,), None)
            return
        for number, given in enumerate(entries):
            label = given.get("label") if isinstance(given, dict) else None
            try:
                self._load_entry(given, number, baselines)
            except RecordRefused as refused:
                self._refuse(refused, (_ROOT, number, refused.field), label if isinstance(label, str) else None)

    def _load_entry(self, given: object, number: int, baselines: Baselines) -> None:
        entry = check_entry(given)
        line = line_in(self.document, (_ROOT, number, "label"))
        if entry.label in self._lines:
            raise RecordRefused("bad_value", "label", f"{entry.label!r} is already on line {self._lines[entry.label]}")
        self._lines[entry.label] = line
        baseline = baselines.of(entry.label)
        data = _read(self.source.path.parent, entry.uri)
        records = self._records(entry, data, line_in(self.document, (_ROOT, number, "dataset_uri")))
        if not records:
            raise RecordRefused("bad_value", "dataset_uri", f"{entry.uri} has no record that can be used")
        examples = self._examples(entry, records)
        if examples:
            content = repr((entry, baseline)).encode() + data
            sha256 = hashlib.sha256(content).hexdigest()
            dataset = {"path": entry.uri, "sha256": hashlib.sha256(data).hexdigest()}
            self.tasks.append(CoreTask(entry.label, self.source.path, sha256, entry.kind, baseline, examples, dataset))

    def _records(self, entry: Entry, data: bytes, line: int) -> list[Record]:
        records = []
        for number, text in number_lines(data):
            try:
                value = parse_line(text, self.source.options.max_line_bytes, LINE_OPTION)
                records.append(check_record(value, entry.kind, entry.has_categories, number))
            except RecordRefused as refused:
                detail = f"{entry.uri}:{number}: {refused.detail}"
                where = f"{entry.label}.{refused.field}"
                self.errors.append(RecordError(line, entry.label, refused.rule, where, detail))
        return records

    def _examples(self, entry: Entry, records: Sequence[Record]) -> list[Example]:
        options = self.source.options
        shots = entry.shots if options.num_fewshot is None else options.num_fewshot
        if shots >= len(records):
            others = f"{entry.uri} has {len(records) - 1} other record(s) to draw from"
            raise RecordRefused("bad_value", "num_fewshot", f"{shots}; {others}")
        wanted = [*range(len(records))]
        if options.subjects and entry.has_categories:
            self.subjects[entry.label] = Subjects(frozenset(record.category for record in records), len(records))
            wanted = [number for number in wanted if records[number].category in options.subjects]
        return [_example(entry, records, number, shots) for number in wanted]

    def _refuse(self, refused: RecordRefused, keys: tuple[str | int, ...], label: str | None) -> None:
        field_name = f"{label or _ROOT}.{refused.field}" if len(keys) > 1 else refused.field
        self.errors.append(RecordError(line_in(self.document, keys), label, refused.rule, field_name, refused.detail))


def _read(folder: Path, uri: str) -> bytes:
    places = [folder / name / uri for name in _DATA_FOLDERS]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        looked = "looked for it beside this file, and in eval_data beside it"
        raise RecordRefused("bad_value", "dataset_uri", f"{uri}: no such file; {looked}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordRefused("bad_value", "dataset_uri", f"{uri}: cannot be read: {error.strerror}") from None


def _example(entry: Entry, records: Sequence[Record], number: int, shots: int) -> Example:
    record = records[number]
    drawn = few_shots(records, number, shots)
    contexts, continuations = render_record(record, entry.kind, entry.delimiter, drawn)
    if not all(continuations):
        raise RecordRefused("bad_value", "continuation_delimiter", f"{entry.uri}:{record.line}: an option has no text")
    return Example(
        id=f"ex-{record.line}",
        prompt="\n".join(contexts),
        targets=(record.choices[record.gold],),
        metric="accuracy",
        category=record.category,
        metadata={"contexts": contexts, "continuations": continuations, "choices": record.choices, "gold": record.gold},
        place=number,
    )


_LABEL, _BASELINE = "Eval Task", "Random baseline"
_USUAL = "eval_meta_data.csv"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Baselines:
    """``by_label`` maps a label to its random-guessing score, in percent, and its line in the file ``name``."""

    name: str
    by_label: Mapping[str, tuple[str, int]]

    def of(self, label: str) -> float:
        """Return the random-guessing score of ``label``, in [0, 1); raise RecordRefused if it is missing or invalid."""
        if label not in self.by_label:
            hint = nearest(label, self.by_label)
            raise RecordRefused("bad_value", "label", f"{label!r} has no line in {self.name}{hint}")
        text, line = self.by_label[label]
        try:
            percent = float(text)
        except ValueError:
            percent = math.nan
        if not 0 <= percent < 100:
            where = f"{self.name}:{line}: {_BASELINE}"
            raise RecordRefused("bad_value", "label", f"{where} is {text!r:.50}; expected percent from 0 to under 100")
        return percent / 100


def read_baselines(folder: Path) -> Baselines:
    """Return baselines from ``eval_meta_data.csv`` or the only CSV file with baselines, or raise RecordRefused."""
    files = sorted(folder.glob("*.csv"), key=lambda path: (path.name != _USUAL, path.name))
    found = [(path, rows) for path in files if (rows := _rows(path))]
    if not found:
        wanted = f"no CSV file beside it with the columns {_LABEL!r} and {_BASELINE!r} (percent)"
        raise RecordRefused("missing_required", "random_baseline", wanted)
    if len(found) > 1 and found[0][0].name != _USUAL:
        names = ", ".join(path.name for path, _ in found)
        raise RecordRefused("bad_value", "random_baseline", f"{names} all have baselines; call one of them {_USUAL}")
    path, rows = found[0]
    return Baselines(path.name, {label: (percent, line) for label, percent, line in rows})


def _rows(path: Path) -> Sequence[tuple[str, str, int]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ()
        table = csv_table(path.name, path.read_bytes())
    except OSError:
        return ()
    except BadRows as bad:
        if path.name == _USUAL:
            raise RecordRefused("bad_value", "random_baseline", str(bad)) from None
        return ()
    if not {_LABEL, _BASELINE} <= set(table.columns):
        return ()
    label, percent = table.columns.index(_LABEL), table.columns.index(_BASELINE)
    rows = zip(table.cells, table.lines, strict=True)
    return [(cells[label].strip(), cells[percent].strip(), line) for cells, line in rows]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of ``icl_tasks``: a task's name, the file with its records, and the form of its prompts."""

    label: str
    uri: str
    shots: int
    kind: str
    delimiter: str = " "
    has_categories: bool = False


def check_entry(given: object) -> Entry:
    """Return the entry that ``given`` describes; raise RecordRefused for the first rule it breaks."""
    fields = checks.check_fields(given, _REQUIRED, _OPTIONAL)
    label = checks.string(fields["label"], "label")
    if not _LABEL_PATTERN.fullmatch(label) or label != label.strip():
        detail = f"{label!r}; expected letters, digits and _ . : / @ - at most 200, a letter, digit or _ first"
        raise RecordRefused("bad_value", "label", detail)
    uri = checks.string(fields["dataset_uri"], "dataset_uri")
    if "://" in uri or "\0" in uri:
        raise RecordRefused("bad_value", "dataset_uri", f"{uri!r}; expected a local file, relative to this one")
    return Entry(
        label=label,
        uri=uri,
        shots=_shots(fields["num_fewshot"]),
        kind=checks.one_of(fields["icl_task_type"], "icl_task_type", KINDS),
        delimiter=checks.text(fields.get("continuation_delimiter", " "), "continuation_delimiter"),
        has_categories=checks.boolean(fields.get("has_categories", False), "has_categories"),
    )


def _shots(value: object) -> int:
    # The files of llm-foundry and nanochat store this number in a list of one element.
    if isinstance(value, list):
        if len(value) != 1:
            raise RecordRefused("bad_value", "num_fewshot", f"expected one number, got a list of {len(value)}")
        value = value[0]
    if not is_whole(value):
        raise RecordRefused("bad_type", "num_fewshot", f"expected a whole number from 0, got {checks.type_name(value)}")
    if value < 0:
        raise RecordRefused("bad_value", "num_fewshot", f"expected a whole number from 0, got {value}")
    return value


def check_record(given: object, kind: str, has_categories: bool, line: int = 0) -> Record:
    """Return the record that ``given`` describes; raise RecordRefused for the first rule it breaks.

    Ignore unknown fields, because published files have some.
    """
    if not isinstance(given, dict):
        raise RecordRefused("bad_type", "_root", f"expected an object, got {checks.type_name(given)}")
    category = checks.string(_required(given, "category"), "category") if has_categories else ""
    if kind == "multiple_choice":
        query = checks.text(_required(given, "query"), "query")
        choices = _options(given, "choices")
        return Record((query,), choices, _gold(given, len(choices)), category, line)
    if kind == "schema":
        contexts = _options(given, "context_options")
    else:
        contexts = (checks.text(_required(given, "context"), "context"),)
    continuation = checks.string(_required(given, "continuation"), "continuation")
    gold = _gold(given, len(contexts)) if kind == "schema" else 0
    return Record(contexts, (continuation,), gold, category, line)


def _required(given: Mapping[str, Any], field: str) -> Any:
    if field not in given:
        raise RecordRefused("missing_required", field, f"required; the record has {', '.join(given) or 'nothing'}")
    return given[field]


def _options(given: Mapping[str, Any], field: str) -> tuple[str, ...]:
    options = checks.strings(_required(given, field), field)
    if len(options) < 2:
        raise RecordRefused("bad_value", field, "expected two options or more, got one: there is nothing to choose")
    return options


def _gold(given: Mapping[str, Any], count: int) -> int:
    gold = _required(given, "gold")
    if not is_whole(gold):
        detail = f"expected the number of the right option, 0 to {count - 1}, got {checks.type_name(gold)}"
        raise RecordRefused("bad_type", "gold", detail)
    if not 0 <= gold < count:
        raise RecordRefused("bad_value", "gold", f"{gold}; expected 0 to {count - 1}, as there are {count} options")
    return gold
