"""Query judges and run programs as soon as answers arrive, before it is the examples' turn to be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pytest_lmeval.scoring.evaluate import answer_groups, runs_code
from pytest_lmeval.types import Example, Response, Score

if TYPE_CHECKING:
    from pytest_lmeval.run.answers import ModelAnswers
    from pytest_lmeval.run.plan import Unit
    from pytest_lmeval.scoring.judge import NamedJudges
    from pytest_lmeval.task import Task, Tools


class Early:
    """Scores answers early in one process: queries judges, and runs the programs of a limited number of examples.

    ``repeats`` is the number of repeats of examples that do not set their own number.
    """

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._seen: set[Any] = set()
        self._scores: dict[Any, Iterator[Future[Score]]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def look(self, answers: ModelAnswers, tools: Tools, unit: Unit) -> Callable[..., Any]:
        """Start early scoring of other units; return a function that scores ``unit`` or returns its early scores."""
        self._seen.discard(unit)
        begun = self._scores.pop(unit, None)
        for other in answers.engine.arrived():
            if other.key not in self._seen and self._begin(answers, other.key, other.responses, tools):
                self._seen.add(other.key)
        # The returned function is called once for each group of responses.
        return answers.task(unit).score if begun is None else lambda *_: next(begun).result()

    def close(self) -> None:
        """Start no further early scoring, and do not wait for running programs."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, answers: ModelAnswers, unit: Unit, responses: Sequence[Response], tools: Tools) -> bool:
        task = answers.task(unit)
        groups = answer_groups(responses, unit.example.policy.repeats or self._repeats)
        if tools.judge is not None and _asks(task, unit.example, groups, tools.judge):
            return True
        if runs_code(task, unit.example, answers.plan.registry):
            parallel: int = getattr(tools.sandbox, "parallel", 1)
            if len(self._scores) >= 2 * parallel:
                return False
            pool = self._pool = self._pool or ThreadPoolExecutor(parallel, "lmeval-score")
            self._scores[unit] = iter([pool.submit(task.score, unit.example, group, tools) for group in groups])
        return True


def _asks(task: Task, example: Example, groups: Sequence[Sequence[Response]], judge: NamedJudges) -> bool:
    """Send the judge all requests about an example; return False if the task has no requests that can be sent early."""
    try:
        for group in groups:
            requests = task.judge_requests(example, group)
            if requests is None:
                return False
            judge.send(requests)
    except Exception:
        # The example's own scoring will raise this error again and report it.
        return True
    return True
