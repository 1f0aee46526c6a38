"""From the parsed ``core.yaml`` and the baselines beside it to its tasks, and to one error per thing that is wrong."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.data.lines import LINE_OPTION, number_lines, parse_line
from pytest_lmeval.data.rows import BadRows, csv_table
from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.core.entry import Entry, Record, check_entry, check_record
from pytest_lmeval.formats.core.task import CoreTask, few_shots, render_record
from pytest_lmeval.formats.task import LoadedFile, Subjects, TaskSource
from pytest_lmeval.formats.yaml.document import line_in
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example, RecordError

_DATA_FOLDERS = ("", "eval_data")
_ROOT = "icl_tasks"


def load_core(source: TaskSource, document: Mapping[str, Any], registry: Registry) -> LoadedFile:
    """Return a task per entry of ``icl_tasks``, named by its label, and the errors of entries and of records.

    Data files are looked for beside the file and in ``eval_data`` beside it. An entry with an error of its own is no
    task; one with bad records is a task of the others.
    """
    loader = _CoreLoader(source, document)
    loader.load(document.get(_ROOT))
    return LoadedFile(tuple(loader.tasks), loader.errors, subjects=loader.subjects, draws_few_shots=True)


@dataclass(slots=True)
class _CoreLoader:
    """Reads one file; labels may not repeat, and the baselines are read once."""

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
        line = self._line((_ROOT, number, "label"))
        if entry.label in self._lines:
            detail = f"{entry.label!r} is on line {self._lines[entry.label]} already"
            raise RecordRefused("bad_value", "label", detail)
        self._lines[entry.label] = line
        baseline = baselines.of(entry.label)
        data = _read(self.source.path.parent, entry.uri)
        records = self._records(entry, data, self._line((_ROOT, number, "dataset_uri")))
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
        return [_example(entry, records, number, shots) for number in self._wanted(entry, records)]

    def _wanted(self, entry: Entry, records: Sequence[Record]) -> Sequence[int]:
        subjects = self.source.options.subjects
        if not subjects or not entry.has_categories:
            return range(len(records))
        self.subjects[entry.label] = Subjects(frozenset(record.category for record in records), len(records))
        return [number for number, record in enumerate(records) if record.category in subjects]

    def _refuse(self, refused: RecordRefused, keys: tuple[str | int, ...], label: str | None) -> None:
        field_name = f"{label or _ROOT}.{refused.field}" if len(keys) > 1 else refused.field
        self.errors.append(RecordError(self._line(keys), label, refused.rule, field_name, refused.detail))

    def _line(self, keys: tuple[str | int, ...]) -> int:
        return line_in(self.document, keys)


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
        metadata={
            "contexts": contexts,
            "continuations": continuations,
            "choices": record.choices,
            "gold": record.gold,
        },
        place=number,
    )


_LABEL, _BASELINE = "Eval Task", "Random baseline"
_USUAL = "eval_meta_data.csv"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Baselines:
    """Scores by guessing, in percent as written, by task label, with their lines; ``name`` is the file's."""

    name: str
    by_label: Mapping[str, tuple[str, int]]

    def of(self, label: str) -> float:
        """Return the score that guessing reaches at ``label``, in [0, 1); raise RecordRefused for an unknown label."""
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
    """Return the baselines of the one CSV file in ``folder`` that has them; raise RecordRefused if no file has them.

    ``eval_meta_data.csv`` goes before others.
    """
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
