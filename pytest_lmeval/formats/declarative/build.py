"""From the checked parts of a task file to its task."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.aggregate import Aggregation
from pytest_lmeval.formats.declarative.checks import scorer_keys
from pytest_lmeval.formats.declarative.config import TaskConfig
from pytest_lmeval.formats.declarative.datasets import Dataset
from pytest_lmeval.formats.declarative.decision import check_decision, decide
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.kit import Kit
from pytest_lmeval.formats.declarative.models.metrics import FieldMetric, Frequency, Metric, PythonMetric
from pytest_lmeval.formats.declarative.models.scorers import PythonScorer, ScorerBase
from pytest_lmeval.formats.declarative.models.solver import MultiTurnSolver, PythonResponses
from pytest_lmeval.formats.declarative.models.task import DeclarativeFile
from pytest_lmeval.formats.declarative.scoring import Scorer, build_scorer
from pytest_lmeval.formats.declarative.scoring.texts import RegistryScorer
from pytest_lmeval.formats.declarative.snippets import Snippet, SnippetFault, read_snippet
from pytest_lmeval.formats.declarative.solving import RowPrompt, Solver
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.declarative.templates import ROOM, Room, TemplateFault
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.formats.yaml.document import Keys, YamlDocument
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example

_SHOWN = 2000


class Unbuilt:
    """A checked task file, and what is needed to make its parts; each snippet that is wrong is a fault of its own."""

    def __init__(self, source: TaskSource, document: YamlDocument, file: DeclarativeFile, registry: Registry) -> None:
        self.source = source
        self.document = document
        self.file = file
        self.kit = Kit(registry)

    def scorers(self) -> tuple[list[Scorer], list[Fault]]:
        """Return the scorers, and what is wrong with the snippets of the task."""
        scorers: list[Scorer] = []
        faults: list[Fault] = []
        definition = self.file.definition
        for number, (key, model) in enumerate(zip(scorer_keys(definition), definition.scorers, strict=True)):
            keys: Keys = ("definition", "scorers", number, "compute_scores_snippet")
            try:
                if isinstance(model, PythonScorer):
                    self._check_trust()
                scorers.append(self._with_tools(build_scorer(key, model, self.kit, self._filename(keys))))
            except SnippetFault as fault:
                faults.append(Fault(keys, "bad_value", str(fault)))
        return scorers, [*faults, *self._other_snippets()]

    def _with_tools(self, scorer: Scorer) -> Scorer:
        """Return the scorer with the tools by whose schemas it judges calls."""
        tools = getattr(self.file.definition.solver, "tools", ())
        if not isinstance(scorer, RegistryScorer) or not tools:
            return scorer
        return replace(scorer, tools=tuple(tool.function() for tool in tools))

    def solver(self) -> Solver | None:
        """Return the solver, where there is one."""
        model = self.file.definition.solver
        if model is None:
            return None
        responding = {
            name: Snippet(python.respond_snippet, self._filename(keys), "respond", f"tool {name}", python.timeout_s)
            for keys, name, python in self._responding()
        }
        if model.postprocessor is None:
            return Solver(model, None, self.kit, responding)
        keys: Keys = ("definition", "solver", "postprocessor", "postprocess_snippet")
        source, filename = model.postprocessor.postprocess_snippet, self._filename(keys)
        snippet = Snippet(source, filename, "postprocess", "postprocessor", model.postprocessor.timeout_s)
        return Solver(model, snippet, self.kit, responding)

    def _responding(self) -> Iterator[tuple[Keys, str, PythonResponses]]:
        solver = self.file.definition.solver
        for number, tool in enumerate(solver.tools if isinstance(solver, MultiTurnSolver) else ()):
            if isinstance(tool.responses, PythonResponses):
                keys: Keys = ("definition", "solver", "tools", number, "responses", "respond_snippet")
                yield keys, tool.name, tool.responses

    def aggregations(self) -> Iterator[Aggregation]:
        """Yield the metrics of all scorers; a scorer that names none has those that its type suggests."""
        definition = self.file.definition
        for number, (key, model) in enumerate(zip(scorer_keys(definition), definition.scorers, strict=True)):
            if model.metrics is None:
                yield from (Aggregation(key, metric, name) for metric, name in _usual_metrics(key, model))
            for at, metric in enumerate(model.metrics or ()):
                yield Aggregation(key, metric, snippet=self._metric_snippet(key, metric, number, at))

    def _metric_snippet(self, key: str, metric: Metric, scorer: int, number: int) -> Snippet | None:
        if not isinstance(metric, PythonMetric):
            return None
        keys: Keys = ("definition", "scorers", scorer, "metrics", number, "compute_metrics_snippet")
        source, filename = metric.compute_metrics_snippet, self._filename(keys)
        function = read_snippet(source, filename, _METRIC_FUNCTIONS)
        return Snippet(source, filename, function.name, f"metric of scorer {key}", metric.timeout_s)

    def _other_snippets(self) -> Iterator[Fault]:
        for keys, source, names in self._snippets():
            try:
                self._check_trust()
                function = read_snippet(source, self._filename(keys), names)
                wanted = 2 if "postprocess" in names else 1
                if len(function.parameters) != wanted:
                    detail = f"{function.name} takes {len(function.parameters)} arguments; expected {wanted}"
                    yield Fault(keys, "bad_value", detail)
            except SnippetFault as fault:
                yield Fault(keys, "bad_value", str(fault))

    def _snippets(self) -> Iterator[tuple[Keys, str, Sequence[str]]]:
        definition = self.file.definition
        if definition.solver is not None and definition.solver.postprocessor is not None:
            at: Keys = ("definition", "solver", "postprocessor", "postprocess_snippet")
            yield at, definition.solver.postprocessor.postprocess_snippet, ("postprocess",)
        for keys, _, python in self._responding():
            yield keys, python.respond_snippet, ("respond",)
        for number, scorer in enumerate(definition.scorers):
            for place, metric in enumerate(scorer.metrics or ()):
                if isinstance(metric, PythonMetric):
                    here: Keys = ("definition", "scorers", number, "metrics", place, "compute_metrics_snippet")
                    yield here, metric.compute_metrics_snippet, _METRIC_FUNCTIONS

    def _filename(self, keys: Keys) -> str:
        included = self.document.includes.get(keys)
        if included is not None:
            return included.path.name
        return f"{self.source.path.name}, snippet of line {self.document.place(keys).line}"

    def _check_trust(self) -> None:
        trusts = getattr(self.source.options, "trusts", None)
        if callable(trusts) and not trusts(self.source.path):
            raise SnippetFault("Python snippets are not allowed in this folder (ini lm_trusted_paths)")


_METRIC_FUNCTIONS = ("compute_metrics", "compute_scores")


def build_task(
    unbuilt: Unbuilt, scorers: Sequence[Scorer], dataset: Dataset, config: TaskConfig
) -> tuple[DeclarativeTask | None, list[Fault]]:
    """Return the task, or what is wrong with the ids of its rows and with what is to be their score."""
    file, source = unbuilt.file, unbuilt.source
    ids, faults = _ids(dataset)
    aggregations = list(unbuilt.aggregations())
    faults = [*faults, *check_decision(scorers, aggregations)]
    if faults:
        return None, faults
    solver = unbuilt.solver()
    decision = decide(scorers)
    rows = _Examples(unbuilt, dataset, solver, decision.scorer)
    examples = [rows.example(id, number) for number, id in enumerate(ids)]
    # What decides the score of a row: not what becomes of all scores together, nor where it has to be.
    left_out: Any = {"dataset": True, "scorers": {"__all__": {"metrics", "score_metric", "threshold"}}}
    definition = file.definition.model_dump(mode="json", exclude=left_out)
    scoring = file.definition.model_dump(mode="json", exclude={**left_out, "solver": {"input_builder"}})
    task = DeclarativeTask(
        name=f"{source.name}@{config.name}" if config.name else source.name,
        path=source.path,
        sha256=_sha256(unbuilt, dataset, config),
        key=file.key,
        display_name=file.display_name,
        dataset={"path": _path_from(source.path, dataset.rows.path), "sha256": dataset.rows.sha256},
        examples=examples,
        samples=rows.samples,
        asked=rows.asked,
        broken=rows.broken,
        solver=solver,
        scorers=scorers,
        actions=file.definition.actions,
        aggregations=aggregations,
        kit=unbuilt.kit,
        decision=decision,
        definition_sha256=hashlib.sha256(_dump(definition)).hexdigest(),
        scoring_sha256=hashlib.sha256(_dump(scoring)).hexdigest(),
        config=config.values,
    )
    return task, []


def _path_from(task: Path, data: Path) -> str:
    return Path(os.path.relpath(data, task.parent)).as_posix()


def _ids(dataset: Dataset) -> tuple[list[str], list[Fault]]:
    rows, column = dataset.rows.rows, dataset.id_column
    given = [row.get(column or "id") for row in rows]
    usable = all((isinstance(each, str) or is_whole(each)) and str(each).strip() for each in given)
    ids = [str(each) for each in given]
    if usable and len(set(ids)) == len(ids):
        return ids, []
    if column is None:
        return [str(number) for number in range(len(rows))], []
    keys = ("definition", "dataset")
    wrong = next((each for each in given if not isinstance(each, str | int)), None)
    if not usable:
        return [], [Fault(keys, "bad_value", f"{dataset.rows.path.name}: the id {wrong!r:.60} is no text or number")]
    twice = next(each for each, count in Counter(ids).items() if count > 1)
    return [], [Fault(keys, "duplicate_task_id", f"{dataset.rows.path.name}: two rows have the id {twice!r:.60}")]


class _Examples:
    """Makes examples of the rows, and notes what is asked about each."""

    def __init__(self, unbuilt: Unbuilt, dataset: Dataset, solver: Solver | None, decisive: Scorer | None) -> None:
        self.samples: dict[str, Mapping[str, Any]] = {}
        self.asked: dict[str, RowPrompt] = {}
        self.broken: dict[str, str] = {}
        self._dataset = dataset
        self._solver = solver
        self._decisive = decisive
        self._kit = unbuilt.kit
        self._tags = list(unbuilt.file.tags)
        # The rows stand in another file: what can be pointed at is where they are named.
        self._line = unbuilt.document.place(("definition", "dataset")).line

    def example(self, id: str, number: int) -> Example:
        """Return the example of a row; one that no question can be made of is noted as broken."""
        row = self._dataset.rows.rows[number]
        sample = row if "sample_id" in row else {**row, "sample_id": number}
        self.samples[id] = sample
        asked = self._asked(id, sample)
        self.asked[id] = asked
        category = sample.get(self._dataset.category_column or "")
        return Example(
            id=id,
            prompt=asked.prompt,
            targets=self._targets(sample),
            metric=self._decisive.key if self._decisive is not None else "measured",
            post_process=getattr(self._decisive and self._decisive.model, "post_process", None) or "none",
            category="" if category is None else str(category),
            metadata={"tags": self._tags} if self._tags else {},
            line=self._line,
            messages=asked.messages,
        )

    def _asked(self, id: str, sample: Mapping[str, Any]) -> RowPrompt:
        if self._solver is None:
            return RowPrompt(json.dumps(sample, ensure_ascii=False)[:_SHOWN])
        try:
            return self._solver.ask(sample)
        except ScoringError as error:
            self.broken[id] = str(error)
            return RowPrompt()

    def _targets(self, sample: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the expected answers, where they can be told before there is one."""
        given = getattr(self._decisive and self._decisive.model, "ground_truth", None)
        templates = [given] if isinstance(given, str) else given or []
        column = getattr(self._decisive and self._decisive.model, "ground_truth_choice_field", None)
        if column is not None:
            return (str(sample.get(column)),)
        variables = {"sample": sample, ROOM: Room()}
        try:
            return tuple(self._kit.template(each).render(variables).strip() for each in templates)
        except TemplateFault:
            return ()


def _usual_metrics(key: str, model: ScorerBase) -> Iterator[tuple[Metric, str]]:
    if model.type in ("string_equals", "string_equals_mcqa"):
        yield FieldMetric(type="mean", field="prediction_is_correct"), "string_equality_mean"
    elif model.type == "rouge":
        for name in ("rouge_1", "rouge_2", "rouge_l"):
            yield FieldMetric(type="mean", field=name), f"{name}_mean"
    elif model.type == "labeler_via_model":
        yield Frequency(type="frequency", field="label"), ""
    elif model.type == "model_as_a_judge_classifier":
        yield FieldMetric(type="mean", field="is_correct"), f"{key}_mean"
    elif model.type == "json_schema":
        yield FieldMetric(type="mean", field="is_valid"), f"{key}_mean"
    elif model.type != "python":
        yield FieldMetric(type="mean", field="score"), f"{key}_mean"


def _sha256(unbuilt: Unbuilt, dataset: Dataset, config: TaskConfig) -> str:
    digest = hashlib.sha256(unbuilt.source.data)
    for included in unbuilt.document.includes.values():
        digest.update(included.data)
    digest.update(dataset.rows.sha256.encode())
    digest.update(_dump(dict(config.values)))
    return digest.hexdigest()


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
