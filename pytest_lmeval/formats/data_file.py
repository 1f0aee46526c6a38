"""Load a data file: a YAML file with rows and a ``prompt``, which is filled in from each row to make an example.

    prompt: "Is this review good or bad? {{ review }}"
    data: reviews.csv
    target: "{{ label }}"
    metric: exact_match

Each row becomes a record of the compact dialect. A column is only data, even if a field has the same name. ``prompt``
may be a list of messages, or a mapping of names to prompts. Each named prompt makes a variant of the task.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.data.rows import SUFFIXES, BadRows, local_path, read_data
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.compact import check_compact_record
from pytest_lmeval.formats.data_shape import PROMPT, ChatPrompt, RowPrompt, Shape, images_of, shape_of, with_images
from pytest_lmeval.formats.jsonl import KINDS, JsonlTask
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.document import YamlDocument, line_of
from pytest_lmeval.formatters import concatenation
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.rows import RowTemplate
from pytest_lmeval.types import Example, Message, RecordError

_MOST_COLUMNS = 10


def load_data_file(source: TaskSource, document: YamlDocument, registry: Registry) -> LoadedFile:
    """Return the tasks that ``document`` describes, one for each prompt, and the file's errors."""
    try:
        shape = shape_of(document, registry)
        rows = _rows(source.path, document, set().union(*(each.used(()) for each in shape.templates)))
        for template in shape.templates:
            template.check_columns(rows.columns)
        for name, prompt in shape.prompts.items():
            images = [] if shape.images is None else shape.images.templates
            _check_uses_rows(f"{PROMPT}.{name}" if name else PROMPT, [*prompt.templates, *images], rows)
    except RecordRefused as refused:
        fault = RecordError(line_of(document, refused.field), None, refused.rule, refused.field, refused.detail)
        return LoadedFile((), [fault])
    except BadRows as bad:
        line = document.place(("data",)).line
        return LoadedFile((), [RecordError(line, None, "bad_value", "data", fault) for fault in bad.faults])
    maker = _Maker(source, document, registry, shape, rows)
    tasks = [maker.task(name, prompt) for name, prompt in shape.prompts.items()]
    return LoadedFile([task for task in tasks if task.examples], [*dict.fromkeys(maker.errors)])


def _check_uses_rows(field: str, templates: Sequence[RowTemplate], rows: _Rows) -> None:
    if not any(template.used(rows.columns) for template in templates):
        named = ", ".join([*rows.columns][:_MOST_COLUMNS])
        first = "{{ " + next(iter(rows.columns), "column") + " }}"
        detail = f"it uses no column of {rows.dataset.get('path', 'rows')} ({named}); a column is written {first}"
        raise RecordRefused("bad_value", field, detail)


class _Row(NamedTuple):
    """A row's cells, its line in the YAML file, and its location in a separate data file ("" for none)."""

    cells: Mapping[str, Any]
    line: int
    place: str


@dataclass(frozen=True)
class _Rows:
    """The rows, and the path and hash of their file."""

    rows: Sequence[_Row]
    dataset: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, None]:
        """All columns that occur in the rows."""
        return {name: None for row in self.rows for name in row.cells}


class _Maker:
    """Turns rows into tasks, and collects the rows' errors."""

    def __init__(
        self, source: TaskSource, document: YamlDocument, registry: Registry, shape: Shape, rows: _Rows
    ) -> None:
        self.errors: list[RecordError] = []
        self._source = source
        self._document = document
        self._registry = registry
        self._shape = shape
        self._rows = rows
        included = [each.data for each in document.includes.values()]
        texts = [source.data, *included, str(rows.dataset.get("sha256", "")).encode()]
        self._sha256 = hashlib.sha256(b"\0".join(texts)).hexdigest()

    def task(self, name: str, prompt: RowPrompt) -> JsonlTask:
        """Return the task for the prompt called ``name``, which is "" if the file does not name its prompt."""
        source, metric = self._source, self._shape.metric or CHECKS
        return KINDS.get(metric, JsonlTask)(
            name=f"{source.name}@{name}" if name else source.name,
            path=source.path,
            sha256=self._sha256,
            metric=metric,
            examples=self._examples(prompt),
            strict=False,
            registry=self._registry,
            key=source.name if name else "",
            config={PROMPT: name} if name else {},
            dataset=self._rows.dataset,
            numbered=self._shape.id is None and "id" not in self._rows.columns,
        )

    def _examples(self, prompt: RowPrompt) -> list[Example]:
        examples: dict[str, tuple[Example, _Row]] = {}
        faults: list[tuple[_Row, RecordRefused]] = []
        for number, row in enumerate(self._rows.rows, 1):
            try:
                example = self._example(prompt, row, number)
                if example.id in examples:
                    before = examples[example.id][1]
                    where = before.place or f"line {before.line}"
                    raise RecordRefused("duplicate_task_id", "id", f"{example.id!r} is already the id of {where}")
            except RecordRefused as refused:
                faults.append((row, refused))
            else:
                examples[example.id] = example, row
        self._note(faults)
        return [example for example, _ in examples.values()]

    def _example(self, prompt: RowPrompt, row: _Row, number: int) -> Example:
        images, folder = images_of(self._shape, row.cells), self._source.path.parent
        messages: tuple[Message, ...] = ()
        if isinstance(prompt, ChatPrompt):
            messages = prompt.messages(row.cells, folder, images)
            asked: object = concatenation(messages)
        else:
            asked = with_images(prompt.fill(row.cells), images)
        record = {"extras": self._shape.extras.fill(row.cells), "prompt": asked, "id": self._id(row, number)}
        if self._shape.metric:
            record["metric"] = self._shape.metric
        if self._shape.targets:
            record["targets"] = _filled(self._shape.targets, row)
        if self._shape.checks:
            record[CHECKS] = [
                {**rest.fill(row.cells), **({"targets": _filled(targets, row)} if targets else {})}
                for rest, targets in self._shape.checks
            ]
        example = check_compact_record(record, row.line, self._registry, folder)
        # All rows in a separate file have the line of the key ``data``; their locations differ.
        place = number - 1 if row.place else 0
        return replace(example, messages=messages or example.messages, place=place) if messages or place else example

    def _id(self, row: _Row, number: int) -> str:
        if self._shape.id is not None:
            return self._shape.id.fill(row.cells)
        if "id" not in self._rows.columns:
            return str(number)
        given = row.cells.get("id")
        if not (isinstance(given, str) or is_whole(given)) or not str(given).strip():
            detail = f"expected a text or a whole number in the column 'id', got {given!r}"
            raise RecordRefused("bad_value", "id", detail)
        return str(given)

    def _note(self, faults: Sequence[tuple[_Row, RecordRefused]]) -> None:
        counts = Counter((refused.rule, refused.field, refused.detail) for _, refused in faults)
        # If every row has the same error, report it once, as an error in the file.
        of_file = {fault for fault, count in counts.items() if 1 < count == len(self._rows.rows)}
        for rule, name, detail in sorted(of_file):
            key = "target" if name == "targets" and "target" in self._document else name
            self.errors.append(RecordError(line_of(self._document, key), None, rule, name, detail))
        for row, refused in faults:
            if (refused.rule, refused.field, refused.detail) not in of_file:
                detail = f"{row.place}: {refused.detail}" if row.place else refused.detail
                self.errors.append(RecordError(row.line, None, refused.rule, refused.field, detail))


def _filled(templates: Sequence[RowTemplate], row: _Row) -> list[str]:
    return [template.fill(row.cells) for template in templates]


def _rows(path: Path, document: YamlDocument, used: Collection[str]) -> _Rows:
    if "data" not in document:
        return _Rows([*_inline(document)])
    name = checks.string(document["data"], "data")
    file = local_path(path, name)
    data = read_data(file, used)
    line = document.place(("data",)).line
    of = f"{name}: row " if file.suffix == ".parquet" else f"{name}:"
    rows = [_Row(cells, line, f"{of}{place}") for cells, place in zip(data.rows, data.lines, strict=True)]
    dataset = {"path": Path(os.path.relpath(file, path.parent)).as_posix(), "sha256": data.sha256}
    return _Rows(rows, dataset)


def _inline(document: YamlDocument) -> Iterator[_Row]:
    given = document["rows"]
    beside = f"; a file goes into data: {given}" if isinstance(given, str) and given.endswith(SUFFIXES) else ""
    for number, cells in enumerate(checks.filled_list(given, "rows", "list of mappings", beside)):
        if not isinstance(cells, dict):
            raise RecordRefused("bad_type", f"rows[{number}]", f"expected a mapping, got {checks.type_name(cells)}")
        yield _Row(cells, document.place(("rows", number)).line, "")
