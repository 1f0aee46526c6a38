"""Compare the named scores of examples, and check their floors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_lmeval.compare.pairing import Pair
from pytest_lmeval.errors import did_you_mean
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import BY_NAME
from pytest_lmeval.leaderboard.scores import split
from pytest_lmeval.numbers import beside
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.leaderboard.rows import TaskRow

Named = Mapping[str, Mapping[str, float]]
"""The thresholds of named scores, by task and name."""


@dataclass(frozen=True, slots=True)
class ScorePair(Pair):
    """The score ``name`` of one example in two runs; it passes if it reaches ``threshold``."""

    name: str
    threshold: float

    @property
    def row(self) -> str:
        """The name of the score, such as ``TASK.SCORE``, that the pair counts for."""
        return f"{self.new.task}.{self.name}"

    def _score(self, result: ExampleResult) -> float:
        return result.metrics[self.name]

    def _passes(self, result: ExampleResult) -> bool:
        return is_at_least(self._score(result), self.threshold)


def compared_scores(board: Leaderboard) -> Named:
    """Return the named scores that have a threshold or a floor, except each task's decisive score."""
    found = {
        row.task: {
            name: 1.0 if score["threshold"] is None else score["threshold"]
            for name, score in row.scores.items()
            if not score.get("decides") and (score["threshold"], score["min_score"]) != (None, None)
        }
        for row in board.tasks
        if row.scores
    }
    return {task: scores for task, scores in found.items() if scores}


def score_pairs(pairs: Sequence[Pair], named: Named) -> tuple[list[ScorePair], dict[str, str], list[str]]:
    """Return pairs of named scores, reasons why some scores have no pairs, and lines on scores that some pairs lack."""
    found: list[ScorePair] = []
    left_out, partly = {}, []
    for task, scores in named.items():
        own = [pair for pair in pairs if pair.new.task == task]
        for name, threshold in scores.items():
            before = [pair for pair in own if name in pair.old.metrics]
            now = any(name in pair.new.metrics for pair in own)
            both = [ScorePair(pair.old, pair.new, name, threshold) for pair in before if name in pair.new.metrics]
            found += both
            if own and not both:
                where = "the baseline has" if now and not before else "this run has" if before else "both runs have"
                left_out[f"{task}.{name}"] = f"{where} no such score for any example that was compared"
            elif len(both) < len(own):
                partly.append(f"{task}.{name}: compared over {len(both)} of {len(own)} examples: others lack the score")
    return found, left_out, partly


def task_of_score(name: str, board: Leaderboard) -> TaskRow | None:
    """Return the row of the task in the name ``TASK.SCORE``, or None if no task can have such a score."""
    task, _ = split(name)
    rows = (row for row in board.tasks if row.task == task and row.per_example)
    return next((row for row in rows if row.per_example[0].metric in BY_NAME), None)


def shared_names(board: Leaderboard) -> list[str]:
    """Return a sentence for each task whose name is also the name of another task's score."""
    tasks = {row.task for row in board.tasks}
    names = [f"{row.task}.{name}" for row in board.tasks for name in row.scores]
    return [f"{name} is a task, and a score of {split(name)[0]}: rename one of them" for name in names if name in tasks]


def scores_under_floor(board: Leaderboard, floors: Mapping[str, float]) -> Iterator[str]:
    """Yield a reason for each named score that is below its floor, or that has a floor and was never recorded."""
    tasks = {row.task for row in board.tasks}
    given = {name: floor for name, floor in floors.items() if name not in tasks and task_of_score(name, board)}
    own = {
        f"{row.task}.{name}": score["min_score"]
        for row in board.tasks
        for name, score in row.scores.items()
        if score["min_score"] is not None and not score.get("decides")
    }
    for name, floor in {**own, **given}.items():
        row = task_of_score(name, board)
        score = None if row is None else _score(row, split(name)[1])
        known = None if row is None else row.scores.get(split(name)[1])
        if row is not None and row.min_score == floor and known is not None and known.get("decides"):
            continue  # the floor belongs to the task
        if score is None:
            yield f"{name}: no example recorded this score, and its floor is {floor:g}{_meant(row, name)}"
        elif not is_at_least(score, floor):
            yield f"{name}: {beside(score, floor)} is below its floor {floor:g}"


def _score(row: TaskRow, name: str) -> float | None:
    return row.scores[name]["score"] if name in row.scores else row.metrics.get(name)


def _meant(row: TaskRow | None, name: str) -> str:
    """Return text that lists the recorded scores, or "" if no example was scored."""
    if row is None or row.score is None:
        return ""
    recorded = [each for each in {**row.metrics, **row.scores} if each not in BY_NAME and _score(row, each) is not None]
    hint = did_you_mean(split(name)[1], recorded)
    return f"; scores that were recorded: {', '.join(recorded) or 'none'}{';' if hint else ''}{hint}"
