"""Load a ``.jsonl`` file, in either dialect, as a task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.data.lines import LINE_OPTION, MAX_LINE_BYTES, number_lines, parse_line
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.checks import OF_COMPACT, RENAMED, TURNS, unread_keys
from pytest_lmeval.formats.compact import check_compact_record
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.postprocess import apply_metric, predicted
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import FollowUp, Prompt, Task, Tools
from pytest_lmeval.types import Completion, Example, Generate, Metric, RecordError, Request, Response, Score

if TYPE_CHECKING:
    from pytest_lmeval.formats.check_list import AnswerCheck
    from pytest_lmeval.formats.defaults import Defaults
    from pytest_lmeval.judging.graded import Graded

_SPEC_KEYS = frozenset({"task_id", "category", "metric_name", "post_process"})
# Keys of metadata and extras that describe an example, and do not affect its score.
_DESCRIPTIVE = frozenset({*OF_COMPACT, "difficulty"} - {"passes", "repeats"})
_LARGEST_DOCUMENT = 1 << 24


@dataclass(frozen=True, slots=True)
class JsonlTask(Task):
    """A task of one file: it asks for a completion per record, post-processes the completion, and scores it.

    ``KINDS`` lists the classes for records with checks or turns.
    """

    name: str
    path: Path
    sha256: str
    metric: str
    examples: Sequence[Example]
    strict: bool
    registry: Registry
    key: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    dataset: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the request for a completion."""
        # Send the tools only for a metric that compares tool calls.
        if "tools" in example.metadata and not self.strict and self._metric(example).takes_calls:
            from pytest_lmeval.formats.turns import tools_in

            return (Generate(prompt, self.name, example.id, **tools_in(example)),)
        return (Generate(prompt, self.name, example.id),)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the completion's score."""
        (completion,) = responses
        assert isinstance(completion, Completion)
        return self._scored(example, completion, tools)

    def judges(self, example: Example) -> Sequence[str]:
        """Return ("",), which means the run's judge, if the metric asks a judge, else ()."""
        metric = None if self.strict else self.registry.metrics.get(self.metric)
        return ("",) if metric is not None and metric.asks_judge else ()

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return the first question from each metric that asks the judge."""
        if not self.judges(example):
            return None
        (completion,) = responses
        assert isinstance(completion, Completion)
        return self._questions(example, completion, self._graded(example, Tools()))

    def threshold(self, example: Example) -> float | None:
        """Return the ``threshold`` in the example's metadata or extras."""
        return example.policy.threshold

    def metric_name(self, example: Example) -> str:
        """Return the metric's name in the registry; in a compact file, ``exact_match`` names a different metric."""
        return example.metric if self.strict else RENAMED.get(example.metric, example.metric)

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the extras that affect the score, and the time limit for code."""
        extras = self._metadata_read(example) if self.strict else example.metadata
        scoring = {key: value for key, value in extras.items() if key not in _DESCRIPTIVE}
        if example.metric == "code_exec":
            from pytest_lmeval.metrics.parts.code_plan import timeout_of

            scoring["timeout_s"] = timeout_of(example.metadata, "metadata" if self.strict else "extras")
        return scoring

    def _scored(self, example: Example, completion: Completion, tools: Tools) -> Score:
        metric = self._metric(example)
        prediction = predicted(completion, self.registry.rule(example.post_process), metric)
        helper = self._graded(example, tools) if metric.asks_judge else tools.sandbox
        extras = self._metadata_read(example) if self.strict else example.metadata
        return apply_metric(metric, prediction, example.targets, extras, helper)

    def _questions(self, example: Example, completion: Completion, graded: Graded) -> Sequence[Generate]:
        metric = self._metric(example)
        prediction = predicted(completion, self.registry.rule(example.post_process), metric)
        if not prediction.found:
            return ()
        return [graded.question(prediction.text, example.targets, example.metadata).first]

    def _graded(self, example: Example, tools: Tools) -> Graded:
        from pytest_lmeval.judging.graded import Graded

        media = tuple([one for message in example.messages for one in message.media])
        return Graded(self.name, example.id, example.prompt, tools.judge, media=media)

    def _metric(self, example: Example) -> Metric:
        return self.registry.metric(self.metric_name(example))

    def _metadata_read(self, example: Example) -> Mapping[str, Any]:
        # Metadata of spec records may have any keys, so pass only the time limit to the metric.
        return {key: value for key, value in example.metadata.items() if key == "timeout_s"}


class ChecksTask(JsonlTask):
    """A task whose examples have several checks, which must all pass."""

    __slots__ = ()

    def judges(self, example: Example) -> Sequence[str]:
        """Return ("",), which means the run's judge, if a check asks a judge, else ()."""
        return ("",) if any(check.metric.asks_judge for check in self._checks(example)) else ()

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the extras that affect the score, with the extras of each check."""
        return {**super().scoring(example), CHECKS: [check.scoring() for check in self._checks(example)]}

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the checks' metrics."""
        return [check.metric.name for check in self._checks(example)]

    def _scored(self, example: Example, completion: Completion, tools: Tools) -> Score:
        from pytest_lmeval.formats.check_list import score_checks

        rule = self.registry.rule(example.post_process)
        return score_checks(self._checks(example), completion, rule, tools.sandbox, self._graded(example, tools))

    def _questions(self, example: Example, completion: Completion, graded: Graded) -> Sequence[Generate]:
        found = (check.question(completion, graded) for check in self._checks(example))
        return [question for question in found if question is not None]

    def _checks(self, example: Example) -> Sequence[AnswerCheck]:
        from pytest_lmeval.formats.check_list import checks_of

        return checks_of(example, self.registry)


class TurnsTask(JsonlTask):
    """A task whose examples are conversations of several turns."""

    __slots__ = ()

    def conversation(self, example: Example) -> FollowUp:
        """Return the function that continues the conversation."""
        from pytest_lmeval.formats.turns import script_of

        return script_of(example).next_request

    def scoring(self, example: Example) -> Mapping[str, object]:
        """Return the extras that affect the score, with the turns."""
        from pytest_lmeval.formats.turns import asked_by

        scoring = super().scoring(example)
        return {**scoring, TURNS: asked_by(scoring[TURNS])}

    def _scored(self, example: Example, completion: Completion, tools: Tools) -> Score:
        from pytest_lmeval.formats.turns import score_turns

        return score_turns(example, completion, self.registry)


KINDS: Mapping[str, type[JsonlTask]] = {CHECKS: ChecksTask, TURNS: TurnsTask}
"""The classes for records with checks or turns, by the metric of the examples."""


def load(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return a file's task and its bad records; a file without records counts as a bad record."""
    reader = read_records(source.data, registry, source.options.max_line_bytes, source.path.parent)
    examples, errors = reader.examples, reader.errors
    if not examples and not errors:
        detail = "no record in the file; expected one JSON object per line"
        errors = [RecordError(1, None, "missing_required", "_root", detail)]
    if not examples:
        from pytest_lmeval.formats.python.claims import rows_of_others

        reason = "" if source.is_named else rows_of_others(source.path, source.data)
        return LoadedFile(no_task=reason) if reason else LoadedFile((), _errors_of_file(source.data) or errors)
    metrics = {example.metric for example in examples}
    metric = metrics.pop() if len(metrics) == 1 else "mixed"
    task = KINDS.get(metric, JsonlTask)(
        name=source.name,
        path=source.path,
        sha256=hashlib.sha256(source.data).hexdigest(),
        metric=metric,
        examples=examples,
        strict=reader.strict is True,
        registry=registry,
        numbered=reader.numbered,
    )
    remarks = tuple(unread_keys(examples)) if reader.strict else ()
    return LoadedFile((task,), errors, remarks=remarks)


def read_records(
    data: bytes, registry: Registry, max_line_bytes: int = MAX_LINE_BYTES, folder: Path | None = None
) -> RecordReader:
    """Return a reader that holds the valid examples of ``data``, and an error for each bad record.

    ``folder`` is the folder of the file with ``data``.
    """
    reader = RecordReader(registry, max_line_bytes, folder)
    for number, line in number_lines(data):
        reader.read(number, line)
        if reader.is_stopped:
            break
    return reader


def _errors_of_file(data: bytes) -> list[RecordError]:
    """Return one error for a file that is not JSONL, or an empty list."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        detail = "the file is UTF-16; save it as UTF-8"
    elif (document := _one_document(data)) is None:
        return []
    elif isinstance(document, list):
        count = len(document)
        detail = f"the file is one JSON array of {count}; write each element on a separate line (jq -c '.[]')"
    else:
        detail = "the file is one JSON object over several lines; write each record on a separate line (jq -c)"
    return [RecordError(1, None, "bad_json", "_line", detail)]


def _one_document(data: bytes) -> Any:
    if len(data) > _LARGEST_DOCUMENT or data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{"):
        return None
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    is_record = isinstance(document, dict) and b"\n" not in data.strip()
    return document if document and not is_record else None


def is_spec_record(record: Mapping[str, Any]) -> bool:
    """Return True if ``record`` is in the strict dialect."""
    return not _SPEC_KEYS.isdisjoint(record)


class RecordReader:
    """Reads one file; earlier records determine the dialect, the metric and the ids in use."""

    def __init__(self, registry: Registry, max_line_bytes: int, folder: Path | None = None) -> None:
        self.registry = registry
        self.folder = folder
        self.max_line_bytes = max_line_bytes
        self.strict: bool | None = None
        self.examples: list[Example] = []
        self.errors: list[RecordError] = []
        self.is_stopped = False
        self.numbered = False
        self._defaults: Defaults | None = None
        self._lines_by_id: dict[str, int] = {}

    def read(self, number: int, line: bytes) -> None:
        """Read line ``number``, counted from 1."""
        record: Any = None
        try:
            record = parse_line(line, self.max_line_bytes, LINE_OPTION)
            if isinstance(record, dict) and "defaults" in record and not self.strict:
                self._read_defaults(record)
                return
            example = self._check(record, number)
            self._check_against_earlier(example)
        except RecordRefused as refused:
            error = RecordError(number, self._id_of(record), refused.rule, refused.field, refused.detail)
            self.errors.append(error)
        else:
            self._lines_by_id[example.id] = number
            self.numbered = self.numbered or not (self.strict or "id" in record)
            self.examples.append(example)

    def _check(self, record: Any, number: int) -> Example:
        if self.strict is None and isinstance(record, dict):
            self.strict = is_spec_record(record)
        if self.strict:
            from pytest_lmeval.formats.spec import check_spec_record

            return check_spec_record(record, number, self.folder)
        if self._defaults is not None:
            record = self._defaults.filled_in(record)
        return check_compact_record(record, number, self.registry, self.folder)

    def _read_defaults(self, record: Mapping[str, Any]) -> None:
        from pytest_lmeval.formats.defaults import read_defaults

        if self.strict is not None:
            raise RecordRefused("unknown_field", "defaults", "defaults are allowed once, as the first record of a file")
        # Stop at invalid defaults, because they would cause an error in every record.
        self.strict, self.is_stopped = False, True
        self._defaults = read_defaults(record, self.registry)
        self.is_stopped = False

    def _check_against_earlier(self, example: Example) -> None:
        if not self.strict and self.examples and example.metric != self.examples[0].metric:
            first = self.examples[0]
            detail = f"{example.metric!r}, but line {first.line} has {first.metric!r}: use one file for each metric"
            raise RecordRefused("bad_value", TURNS if example.metric == TURNS else "metric", detail)
        if example.id in self._lines_by_id:
            field = "task_id" if self.strict else "id"
            detail = f"{example.id!r} is already on line {self._lines_by_id[example.id]}"
            raise RecordRefused("duplicate_task_id", field, detail)

    def _id_of(self, record: Any) -> str | None:
        if not isinstance(record, dict):
            return None
        task_id = record.get("task_id" if self.strict else "id")
        return str(task_id) if isinstance(task_id, str) or is_whole(task_id) else None
