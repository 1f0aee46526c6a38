"""Check a whole task for unknown names, and for parts that contradict each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats.checks import check_keys
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.base import Block, is_template
from pytest_lmeval.formats.declarative.models.scorers import MetricScorer
from pytest_lmeval.formats.declarative.models.task import Definition
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.tools import check_call_extras, names_only
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.template import Template, compile_template
from pytest_lmeval.types import Metric as Declared

_ROOT: Keys = ("definition",)
_OF_SOLVER = ("solver_output", "model_output", "messages", "input_prompt")
_MARKS = ("{{", "{%", "<<")
_METHODS = frozenset({"get", "items", "keys", "values"})


def scorer_keys(definition: Definition) -> list[str]:
    """Return each scorer's key, by default the scorer's type."""
    return [scorer.key or scorer.type for scorer in definition.scorers]


def check_parts(definition: Definition, entity: str, registry: Registry) -> Iterator[Fault]:
    """Yield the errors that can be found in a task's parts before any row is read."""
    if definition.dataset.key is None and definition.dataset.path is None:
        yield Fault((*_ROOT, "dataset"), "missing_required", "expected key or path")
    if entity == "model" and definition.solver is None:
        hint = "set evaluated_entity_type: dataset to score rows without a model"
        yield Fault((*_ROOT, "solver"), "missing_required", f"the field 'solver' is required; {hint}")
    if entity == "dataset" and definition.solver is not None:
        yield Fault((*_ROOT, "solver"), "bad_value", "a task that evaluates a data set asks no model")
    keys = scorer_keys(definition)
    for number, scorer in enumerate(definition.scorers):
        here: Keys = (*_ROOT, "scorers", number)
        if keys[number] in keys[:number]:
            yield Fault((*here, "key"), "bad_value", f"duplicate scorer {keys[number]!r}; give it its own key")
        yield from scorer.check(here, entity, registry)
        if isinstance(scorer, MetricScorer):
            yield from _check_extras(scorer, here, definition, registry.metrics[scorer.type])
    actions = [action.key for action in definition.actions]
    for number, key in enumerate(actions):
        if key in actions[:number]:
            yield Fault((*_ROOT, "actions", number, "key"), "bad_value", f"duplicate action {key!r}")


def _check_extras(scorer: MetricScorer, here: Keys, definition: Definition, metric: Declared) -> Iterator[Fault]:
    tools = [tool.function() for tool in getattr(definition.solver, "tools", ())]
    if metric.takes_calls and definition.solver is not None and not tools:
        detail = f"{scorer.type} scores tool calls; the task needs a multi_turn_solver with tools"
        yield Fault((*here, "type"), "bad_value", detail)
    try:
        if metric.takes_calls:
            _check_calls(scorer.extras, tools)
        if metric.asks_judge:
            _check_rubric(scorer.extras, metric)
    except RecordRefused as refused:
        yield Fault((*here, "extras"), refused.rule, f"{refused.field}: {refused.detail}")


def _check_calls(extras: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> None:
    calls = extras.get("calls")
    if isinstance(calls, str) and _is_filled_in(calls):
        return
    if _has_mark(calls):
        # Check only the names of tools and arguments now; check values after a row fills in the templates.
        tools = [names_only(tool) for tool in tools]
    if isinstance(calls, list):
        extras = {**extras, "calls": [call for call in calls if tools and not _is_filled_in(call)]}
    check_call_extras(extras, "extras", tools)


def _check_rubric(extras: Mapping[str, Any], metric: Declared) -> None:
    # Check values with templates only after a row fills them in.
    given = {name: "filled in" if name == "rubric" else None for name in extras if name in ("rubric", "levels")}
    given |= {name: value for name, value in extras.items() if not _has_mark(value)}
    check_keys(extras, "extras", (*metric.extras, "not"))
    if metric.check is not None:
        metric.check((), given)
    if not isinstance(given.get("not", False), bool):
        raise RecordRefused("bad_type", "extras.not", f"expected true or false, got {given['not']!r:.80}")


def _has_mark(value: Any) -> bool:
    return any(mark in json.dumps(value, default=str) for mark in _MARKS)


def _is_filled_in(given: Any) -> bool:
    """Return True if a template gives the name of a tool or argument; templates for values do not count."""
    if isinstance(given, dict):
        arguments = given.get("arguments")
        given = [given.get("name"), list(arguments) if isinstance(arguments, dict) else arguments]
    return _has_mark(given)


@dataclass(frozen=True, slots=True)
class _Known:
    """The names that a template may use: variables, columns of ``sample``, and fields of ``scores``."""

    variables: Sequence[str]
    columns: Sequence[str]
    scores: Mapping[str, tuple[str, ...] | None]

    def check(self, block: Block, at: Keys) -> Iterator[Fault]:
        """Yield an error for each unknown name in a block's templates."""
        for keys, template in _templates(block, at):
            problems = (self._problem(name, template) for name in sorted(template.names))
            yield from (Fault(keys, "bad_value", problem) for problem in problems if problem)

    def _problem(self, name: tuple[str, ...], template: Template) -> str:
        root, *path = name
        if root not in self.variables:
            return f"unknown variable {root!r}{nearest(root, self.variables, 'there is')}"
        if not path or path[0] in _METHODS or template.tolerates_missing:
            return ""
        if root == "sample":
            return _no_column(path[0], self.columns)
        if root == "scores" and path[0] not in self.scores:
            return f"no scorer {path[0]!r} before this{nearest(path[0], self.scores, 'there is')}"
        fields = self.scores.get(path[0]) if root == "scores" else None
        if fields is not None and len(path) > 1 and path[1] not in (*fields, *_METHODS):
            return f"the scorer {path[0]!r} has no field {path[1]!r}{nearest(path[1], fields, 'there is')}"
        return ""


def check_names(
    definition: Definition, scorers: Sequence[Scorer], columns: Sequence[str], entity: str
) -> Iterator[Fault]:
    """Yield an error for each unknown name in templates, metrics and filters."""
    if definition.solver is not None:
        yield from _Known(("sample",), columns, {}).check(definition.solver, (*_ROOT, "solver"))
    of_row = ("sample", "scores", *(_OF_SOLVER if entity == "model" else ()))
    scores: dict[str, tuple[str, ...] | None] = {}
    for number, scorer in enumerate(scorers):
        here: Keys = (*_ROOT, "scorers", number)
        yield from _Known((*of_row, *scorer.model.VARIABLES), columns, scores).check(scorer.model, here)
        for name in ("ground_truth_choice_field", "choices_field"):
            column = getattr(scorer.model, name, None)
            if column is not None and (problem := _no_column(column, columns)):
                yield Fault((*here, name), "bad_value", problem)
        yield from _check_fields(scorer, here)
        scores[scorer.key] = scorer.fields
    for number, action in enumerate(definition.actions):
        yield from _Known(of_row, columns, scores).check(action, (*_ROOT, "actions", number))


def columns_in(definition: Definition) -> set[str]:
    """Return the columns that the solver's templates name."""
    templates = () if definition.solver is None else _templates(definition.solver, ())
    names = [name for _, template in templates for name in template.names]
    return {name[1] for name in names if name[0] == "sample" and len(name) > 1}


def _templates(block: Block, keys: Keys) -> Iterator[tuple[Keys, Template]]:
    for name, field in type(block).model_fields.items():
        yield from _within(getattr(block, name), (*keys, name), is_template(field))


def _within(value: Any, keys: Keys, marked: bool) -> Iterator[tuple[Keys, Template]]:
    if isinstance(value, Block):
        yield from _templates(value, keys)
    elif isinstance(value, str) and marked:
        yield keys, compile_template(value)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _within(each, (*keys, number), marked)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _within(each, (*keys, name), marked)


def _no_column(name: str, columns: Sequence[str]) -> str:
    return "" if name in columns else f"the data set has no column {name!r}{nearest(name, columns, 'there is')}"


def _check_fields(scorer: Scorer, here: Keys) -> Iterator[Fault]:
    if scorer.fields is None:
        return
    named = [((*here, "score_field"), scorer.model.score_field)]
    for number, metric in enumerate(scorer.model.metrics or ()):
        named += [((*here, "metrics", number, key), field) for key, field in metric.fields.items()]
    for keys, field in named:
        if field is not None and field not in scorer.fields:
            hint = nearest(field, scorer.fields, "it yields")
            yield Fault(keys, "bad_value", f"the scorer yields no field {field!r}{hint}")
