"""An eval function's task, and its examples' results."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol

from pytest_lmeval.errors import LmevalError, ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.functions.example import ExampleState, as_json
from pytest_lmeval.functions.lost import describe
from pytest_lmeval.functions.runner import Outcome
from pytest_lmeval.functions.steps import Step, usage_of_steps
from pytest_lmeval.leaderboard.details import DECIDED_BY, DURATION, FUNCTION, METRIC, OUTPUT, WHY
from pytest_lmeval.scoring.evaluate import ScoringRules, evaluate, failed_result, question_of
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.text import error_text, is_of_package
from pytest_lmeval.types import Example, ExampleResult, Request, Response, Score

_LONGEST_REASON = 4000
_NOTHING_SAID = "nothing was asserted or scored: assert what is expected, or record a score with lm.score(name, value)"


@dataclass(eq=False)
class FunctionTask(Task):
    """A task whose examples are calls to test functions, which query models and record scores themselves.

    ``decisive`` names the decisive score; "" means the first score. ``code`` maps function names to hashes of their
    normalized syntax trees. ``idle`` names functions that can neither assert nor score anything. ``scores`` maps the
    name of each score that every example must record to its ``threshold``, ``min_score`` or both. ``fails`` are the
    exceptions that score 0. ``variant`` is the name of the function's variant, if it has variants.
    """

    name: str
    path: Path
    sha256: str = field()
    threshold_of: float = 1.0
    decisive: str = ""
    metric: str = METRIC
    examples: list[Example] = field(default_factory=list)
    code: dict[str, str] = field(default_factory=dict)
    idle: set[str] = field(default_factory=set)
    source: Mapping[str, Any] = field(default_factory=dict)
    asks_user: bool = False
    asks_judge: bool = False
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    numbered: bool = False
    fails: tuple[type[Exception], ...] = ()
    variant: str = ""

    @property
    def config(self) -> Mapping[str, Any]:
        """The name of the variant, if the function has variants."""
        return {"variant": self.variant} if self.variant else {}

    @property
    def dataset(self) -> Mapping[str, Any]:
        """The file that contains the rows, or an empty mapping."""
        return self.source

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return no requests, because the function sends its requests itself."""
        return ()

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Raise ScoringError, because the function scores the example itself."""
        raise ScoringError("an eval function scores its examples itself, under pytest")

    def threshold(self, example: Example) -> float:
        """Return the task's threshold."""
        return self.threshold_of

    def metric_name(self, example: Example) -> str:
        """Return the metric that all eval functions share."""
        return METRIC

    def judges(self, example: Example) -> Sequence[str]:
        """Return the run's judge if a function uses it."""
        return ("",) if self.asks_judge else ()

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return an empty mapping, because the row identifies an example."""
        return {}


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Decides which exceptions fail an example: assertions in the project's code, or in ``assert*`` functions.

    The project's code is below ``root``. An ``assert*`` function may belong to a library, such as ``numpy.testing``, if
    the project called it. ``failing`` are other exceptions that fail an example.
    """

    root: Path
    failing: tuple[type[BaseException], ...] = ()

    def is_failure(self, error: BaseException) -> bool:
        """Return True if an exception fails the example, or False if it is an error."""
        if isinstance(error, BaseExceptionGroup):
            return all(self.is_failure(each) for each in error.exceptions)
        if isinstance(error, self.failing):
            return True
        return isinstance(error, AssertionError) and self._is_own(error)

    def _is_own(self, error: BaseException) -> bool:
        codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        own = [number for number, code in enumerate(codes) if self._is_below(code.co_filename)]
        if not own:
            return False
        left_by = codes[own[-1] + 1 :]
        return not left_by or left_by[0].co_name.lstrip("_").startswith("assert")

    def _is_below(self, path: str) -> bool:
        return not is_of_package(path) and Path(path).is_relative_to(self.root)


class EvalUnit(Protocol):
    """An example of a task, and its function's name."""

    task: FunctionTask
    example: Example
    function_name: str


def result_of(
    unit: EvalUnit, outcomes: Sequence[Outcome], rule: FailureRule, rules: ScoringRules, item: str = ""
) -> ExampleResult:
    """Build an example's result from the outcomes of its repeats.

    ``item`` is the name of the test item, or "" if the name follows from the example's id.
    """
    task, example, function = unit.task, unit.example, unit.function_name
    if task.scores:
        task = _with_threshold(task, outcomes)
    if task.fails:
        rule = replace(rule, failing=(*rule.failing, *task.fails))
    errors = (_error_of(task, function, outcome, rule) for outcome in outcomes)
    error = next((each for each in errors if each is not None), None)
    question = question_of(task, example, example.prompt, (), item)
    if error is not None:
        result = failed_result(task, example, question, error, rules)
    else:
        scores = iter([_score_of(task, outcome) for outcome in outcomes])
        result = evaluate(task, example, question, (), rules, lambda *_: next(scores))
    details = dict(result.details)
    if error is not None:
        # Convert the details to JSON, because the application may have changed steps.
        kept = [as_json(_details(outcome.state))[0] for outcome in outcomes]
        kept = [each if isinstance(each, dict) else {} for each in kept]
        details = kept[0] if len(kept) == 1 else {"repeats": kept}
    details[DURATION] = (
        round(1000 * outcomes[0].seconds, 3)
        if len(outcomes) == 1
        else [round(1000 * outcome.seconds, 3) for outcome in outcomes]
    )
    details[FUNCTION] = {"name": function, "sha256": task.code.get(function, "")}
    steps = outcomes[0].state.steps if len(outcomes) == 1 else [step for one in outcomes for step in one.state.steps]
    waits, cached = _waits(steps)
    return replace(
        result,
        # The results of other tasks take these values from responses.
        outputs=(),
        predictions=(),
        thoughts=(),
        cut_off=False,
        usage=usage_of_steps(steps),
        latency_ms=round(sum(waits) / len(waits), 3) if len(waits) > 1 else waits[0] if waits else None,
        request_ms=tuple(waits) if len(waits) > 1 else (),
        cached=cached,
        details=details,
    )


def _waits(steps: Sequence[Step]) -> tuple[list[float], int]:
    """Return the durations of the requests that the model answered, and the number of cached answers."""
    waits, cached = [], 0
    for step in steps:
        if step.cached:
            cached += 1
        elif step.kind == "request" and step.ms is not None and not step.error:
            waits.append(round(step.ms, 3))
    return waits, cached


def _error_of(task: FunctionTask, function: str, outcome: Outcome, rule: FailureRule) -> LmevalError | None:
    state, error = outcome.state, outcome.error
    if state.failure is not None:
        return state.failure
    if error is not None and not rule.is_failure(error):
        return error if isinstance(error, LmevalError) else ScoringError(describe(error))
    if state.lost:
        return ScoringError(state.lost)
    if error is not None:
        return None
    if state.left:
        return ScoringError(state.left)
    if state.broken:
        return None
    recorded = [*state.scores, *state.not_applicable]
    for name in (task.decisive, *task.scores):
        if name and name not in recorded:
            what = "decides" if name == task.decisive else "has a threshold or a floor"
            return ScoringError(
                f"the score {name!r}, which {what}, was not recorded; recorded: {', '.join(recorded) or 'none'}"
            )
    if task.decisive in state.not_applicable or (state.not_applicable and not state.scores):
        name = task.decisive or next(iter(state.not_applicable))
        return ScoringError(f"the score {name!r} decides, and is None: record a number, or skip the row (pytest.skip)")
    return ScoringError(_NOTHING_SAID) if function in task.idle and not state.scores else None


def _score_of(task: FunctionTask, outcome: Outcome) -> Score:
    state, details = outcome.state, _details(outcome.state)
    decided_by = task.decisive or next(iter(state.scores), "")
    named = {name: of["threshold"] for name, of in task.scores.items() if "threshold" in of} if task.scores else {}
    named.pop(decided_by, None)
    if reason := state.broken or (_reason(task, outcome.error) if outcome.error is not None else ""):
        return Score(0.0, {**details, "reason": reason}, metrics=dict(state.scores), thresholds=named)
    value = state.scores[decided_by] if decided_by else 1.0
    return Score(value, {**details, DECIDED_BY: decided_by}, metrics=dict(state.scores), thresholds=named)


def _with_threshold(task: FunctionTask, outcomes: Sequence[Outcome]) -> FunctionTask:
    recorded = (name for outcome in outcomes for name in outcome.state.scores)
    # If nothing was recorded, use the first named score.
    decided_by = task.decisive or next(recorded, next(iter(task.scores)))
    return replace(task, threshold_of=task.scores.get(decided_by, {}).get("threshold", task.threshold_of))


def _reason(task: FunctionTask, error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = error_text(error) if isinstance(error, task.fails) else str(error) or type(error).__name__
    return text[:_LONGEST_REASON]


def _details(state: ExampleState) -> dict[str, Any]:
    details: dict[str, Any] = {} if state.output is None else {OUTPUT: state.output}
    if state.notes:
        details["notes"] = dict(state.notes)
    if state.reasons:
        details[WHY] = dict(state.reasons)
    if state.steps:
        details["steps"] = [step.to_json() for step in state.steps]
    return details
