"""Build a task from the checked parts of its file."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.data.spilled import Cell
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.declarative.aggregate import Aggregation, check_rule, score_rule
from pytest_lmeval.formats.declarative.checks import scorer_keys
from pytest_lmeval.formats.declarative.datasets import Dataset
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.metrics import PythonMetric
from pytest_lmeval.formats.declarative.models.parameters import TaskConfig
from pytest_lmeval.formats.declarative.models.scorers import PythonScorer, ScorerBase
from pytest_lmeval.formats.declarative.models.task import (
    DeclarativeFile,
    MultiTurnSolver,
    PythonResponses,
    SingleTurnSolver,
)
from pytest_lmeval.formats.declarative.scoring.judges import build_scorer
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer, ScorerOutput, Scoring
from pytest_lmeval.formats.declarative.snippets import Snippet, SnippetFault, attributes, plain, read_snippet
from pytest_lmeval.formats.declarative.solving import RowPrompt, Solver
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.formats.yaml.document import Keys, YamlDocument, keys_of
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.filters import MEMORY, MemoryBudget
from pytest_lmeval.templates.rows import walked
from pytest_lmeval.templates.template import TemplateFault, compile_template
from pytest_lmeval.types import Example, kinds_in

_SHOWN = 2000
_FORMS = (("sample", "model_input", "model_output"), ("sample", "solver_output"), ("sample",))


class Builder:
    """Builds a checked task file's parts.

    ``faults`` lists the errors in the file's Python snippets.
    """

    def __init__(self, source: TaskSource, document: YamlDocument, file: DeclarativeFile, registry: Registry) -> None:
        self.source = source
        self.document = document
        self.file = file
        self.registry = registry
        self.faults: list[Fault] = []
        self.solver = self._solver(file.definition.solver)
        self.scorers: list[Scorer] = []
        self.aggregations: list[Aggregation] = []
        for number, (key, model) in enumerate(zip(scorer_keys(file.definition), file.definition.scorers, strict=True)):
            keys: Keys = ("definition", "scorers", number)
            self.scorers += self._scorer(key, model, keys)
            self.aggregations += self._aggregations(key, model, keys)

    def build(self, dataset: Dataset, config: TaskConfig) -> tuple[DeclarativeTask | None, list[Fault]]:
        """Return the task, or the errors in the row ids, the prompts and the score rule."""
        file, source = self.file, self.source
        ids, faults = _ids(dataset)
        faults = [*faults, *check_rule(self.scorers, self.aggregations)]
        if faults:
            return None, faults
        rule = score_rule(self.scorers)
        numbered = enumerate(zip(ids, dataset.rows, strict=True))
        samples = {id: row if "sample_id" in row else {**row, "sample_id": number} for number, (id, row) in numbered}
        asked, faults = self._prompts(samples)
        if faults:
            return None, faults
        if dataset.path.suffix == ".parquet":
            # Scorers and records use JSON, so only prompts keep the bytes in cells.
            samples = {id: walked(row, _without_bytes) for id, row in samples.items()}
        # The hashes cover only what affects a row's score, so they omit metrics and thresholds.
        excluded: Any = {"dataset": True, "scorers": {"__all__": {"metrics", "score_metric", "threshold"}}}
        definition = file.definition.model_dump(mode="json", exclude=excluded)
        scoring = file.definition.model_dump(mode="json", exclude={**excluded, "solver": {"input_builder"}})
        task = DeclarativeTask(
            name=f"{source.name}@{config.name}" if config.name else source.name,
            path=source.path,
            sha256=self._sha256(dataset, config),
            key=file.key,
            display_name=file.display_name,
            asks_user=getattr(file.definition.solver, "user", None) is not None,
            dataset={
                "path": Path(os.path.relpath(dataset.path, source.path.parent)).as_posix(),
                "sha256": dataset.sha256,
            },
            examples=[*self._examples(samples, asked, rule.scorer, dataset.category_column)],
            samples=samples,
            asked=asked,
            solver=self.solver,
            scorers=self.scorers,
            actions=file.definition.actions,
            aggregations=self.aggregations,
            registry=self.registry,
            decision=rule,
            definition_sha256=hashlib.sha256(_dump(definition)).hexdigest(),
            scoring_sha256=hashlib.sha256(_dump(scoring)).hexdigest(),
            config=config.values,
        )
        return task, []

    def _prompts(self, samples: Mapping[str, Mapping[str, Any]]) -> tuple[Mapping[str, RowPrompt], list[Fault]]:
        """Return each row's prompt, and the errors in the prompts' media."""
        asked: dict[str, RowPrompt] = {}
        refused: list[tuple[str, RecordRefused]] = []
        for id, sample in samples.items():
            try:
                asked[id] = self._asked(sample)
            except RecordRefused as fault:
                refused.append((id, fault))
        # If every row has the same error, report it once.
        is_same = 1 < len(refused) == len(samples) and len({(each.field, each.detail) for _, each in refused}) == 1
        named = [(each, each.detail if is_same else f"row {id}: {each.detail}") for id, each in refused]
        return asked, [Fault(keys_of(each.field), each.rule, detail) for each, detail in named]

    def _asked(self, sample: Mapping[str, Any]) -> RowPrompt:
        if self.solver is None:
            return RowPrompt(json.dumps(sample, ensure_ascii=False)[:_SHOWN])
        try:
            return self.solver.ask(sample)
        except ScoringError as error:
            return RowPrompt(fault=str(error))

    def _examples(
        self, samples: Mapping[str, Any], asked: Mapping[str, RowPrompt], decisive: Scorer | None, column: str | None
    ) -> Iterator[Example]:
        model = None if decisive is None else decisive.model
        for place, (id, sample) in enumerate(samples.items()):
            category = sample.get(column or "")
            yield Example(
                id=id,
                prompt=asked[id].prompt,
                targets=_targets(model, sample),
                metric="measured" if decisive is None else decisive.key,
                post_process=getattr(model, "post_process", None) or "none",
                category="" if category is None else str(category),
                metadata={"tags": list(self.file.tags)} if self.file.tags else {},
                # The rows are in another file, so error messages show the line that names that file.
                line=self.document.place(("definition", "dataset")).line,
                messages=asked[id].messages,
                place=place,
                media=kinds_in((*asked[id].messages, *asked[id].user_turns)),
            )

    def _solver(self, model: SingleTurnSolver | MultiTurnSolver | None) -> Solver | None:
        if model is None:
            return None
        keys: Keys = ("definition", "solver")
        responding: dict[str, Snippet] = {}
        for number, tool in enumerate(model.tools if isinstance(model, MultiTurnSolver) else ()):
            if isinstance(python := tool.responses, PythonResponses):
                at = (*keys, "tools", number, "responses", "respond_snippet")
                if snippet := self._snippet(at, python, ["respond"], f"tool {tool.name}", _taking(1)):
                    responding[tool.name] = snippet
        postprocess: Snippet | None = None
        if model.postprocessor is not None:
            at = (*keys, "postprocessor", "postprocess_snippet")
            postprocess = self._snippet(at, model.postprocessor, ["postprocess"], "postprocessor", _taking(2))
        return Solver(model, postprocess, responding, self.source.path.parent)

    def _scorer(self, key: str, model: ScorerBase, keys: Keys) -> list[Scorer]:
        if isinstance(model, PythonScorer):
            at = (*keys, "compute_scores_snippet")
            snippet = self._snippet(at, model, ["compute_scores"], f"scorer {key}", _scorer_parameters)
            return [_SnippetScorer(key, model, snippet, _scorer_parameters(snippet))] if snippet else []
        tools = [tool.function() for tool in getattr(self.file.definition.solver, "tools", ())]
        return [build_scorer(key, model, self.registry, tools)]

    def _aggregations(self, key: str, model: ScorerBase, keys: Keys) -> Iterator[Aggregation]:
        if model.metrics is None:
            yield from (Aggregation(key, metric, name) for metric, name in model.usual_metrics(key))
        for number, metric in enumerate(model.metrics or ()):
            snippet: Snippet | None = None
            if isinstance(metric, PythonMetric):
                at = (*keys, "metrics", number, "compute_metrics_snippet")
                names = ["compute_metrics", "compute_scores"]
                snippet = self._snippet(at, metric, names, f"metric of scorer {key}", _taking(1))
            yield Aggregation(key, metric, snippet=snippet)

    def _snippet(
        self, keys: Keys, block: Any, names: Sequence[str], owner: str, check: Callable[[Snippet], Any]
    ) -> Snippet | None:
        """Return the snippet at ``keys``, a field of ``block``; record an error and return None if it is unusable."""
        included = self.document.includes.get(keys)
        place = f"{self.source.path.name}, snippet of line {self.document.place(keys).line}"
        try:
            trusts = getattr(self.source.options, "trusts", None)
            if callable(trusts) and not trusts(self.source.path):
                raise SnippetFault("Python snippets are not allowed in this folder (ini lm_trusted_paths)")
            source, filename = getattr(block, str(keys[-1])), included.path.name if included else place
            function, parameters = read_snippet(source, filename, names)
            snippet = Snippet(source, filename, function, owner, block.timeout_s, parameters)
            check(snippet)
        except SnippetFault as fault:
            self.faults.append(Fault(keys, "bad_value", str(fault)))
            return None
        return snippet

    def _sha256(self, dataset: Dataset, config: TaskConfig) -> str:
        digest = hashlib.sha256(self.source.data)
        for included in self.document.includes.values():
            digest.update(included.data)
        digest.update(dataset.sha256.encode())
        digest.update(_dump(dict(config.values)))
        return digest.hexdigest()


def _without_bytes(value: object) -> object:
    return None if isinstance(value, Cell) else value


def _taking(count: int) -> Callable[[Snippet], None]:
    def check(snippet: Snippet) -> None:
        if (given := len(snippet.parameters)) != count:
            raise SnippetFault(f"{snippet.function} takes {given} arguments; expected {count}")

    return check


def _ids(dataset: Dataset) -> tuple[list[str], list[Fault]]:
    rows, column = dataset.rows, dataset.id_column
    given = [row.get(column or "id") for row in rows]
    unusable = [each for each in given if not (is_whole(each) or (isinstance(each, str) and each.strip()))]
    ids = [str(each) for each in given]
    if not unusable and len(set(ids)) == len(ids):
        return ids, []
    if column is None:
        return [str(number) for number in range(len(rows))], []
    keys = ("definition", "dataset")
    if unusable:
        detail = f"{dataset.path.name}: the id {unusable[0]!r:.60} is blank, or neither text nor a whole number"
        return [], [Fault(keys, "bad_value", detail)]
    repeated = next(each for each, count in Counter(ids).items() if count > 1)
    return [], [Fault(keys, "duplicate_task_id", f"{dataset.path.name}: two rows have the id {repeated!r:.60}")]


def _targets(model: ScorerBase | None, sample: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the expected answers that are known before the model answers."""
    given = getattr(model, "ground_truth", None)
    templates = [given] if isinstance(given, str) else given or []
    column = getattr(model, "ground_truth_choice_field", None)
    if column is not None:
        return (str(sample.get(column)),)
    variables = {"sample": sample, MEMORY: MemoryBudget()}
    try:
        return tuple(compile_template(each).render(variables).strip() for each in templates)
    except TemplateFault:
        return ()


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _scorer_parameters(snippet: Snippet) -> tuple[str, ...]:
    """Return the names of the snippet's parameters if all are known, else the usual names for that many parameters."""
    parameters = snippet.parameters
    known = {name for form in _FORMS for name in form}
    if parameters and known.issuperset(parameters):
        return parameters
    for form in _FORMS:
        if len(form) == len(parameters):
            return form
    forms = ", ".join(f"compute_scores({', '.join(form)})" for form in _FORMS)
    raise SnippetFault(f"{snippet.filename}: compute_scores takes {len(parameters)} arguments; expected one of {forms}")


@dataclass(frozen=True, slots=True)
class _SnippetScorer:
    """A scorer of type ``python``.

    ``parameters`` names the arguments of the scorer's function.
    """

    key: str
    model: PythonScorer
    snippet: Snippet
    parameters: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    candidates: tuple[str, ...] | None = None

    def score(self, scoring: Scoring) -> ScorerOutput:
        """Return the fields that the function returns; raise ScoringError unless they are a mapping of JSON values."""
        row = scoring.row
        given = {"sample": row.sample, "model_input": row.model_input, "solver_output": row.solver_output}
        given["model_output"] = row.solver_output.get("output") if row.solver_output is not None else None
        returned = self.snippet(*(attributes(given[name]) for name in self.parameters))
        where = f"{self.snippet.function} in {self.snippet.filename}"
        if not isinstance(returned, dict) or not returned:
            raise ScoringError(f"{where} returned {returned!r:.80}; expected a mapping of fields to values")
        try:
            fields: dict[str, Any] = plain(returned)
        except ValueError as error:
            raise ScoringError(f"{where} returned an invalid score: {error}") from None
        return ScorerOutput(fields, row.text if row.solver_output is not None else "")
