"""What makes a reader doubt a run before it is believed: outputs all empty, all the same, all wrong, or thoughts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.leaderboard.rows import TaskRow

_ENOUGH = 5  # of fewer examples anything may be true of all
# How families of models begin their thoughts, besides the tags that are taken off where nothing else is asked for.
_THOUGHTS = re.compile(
    r"\s*(<(?:thinking|thoughts?|reason(?:ing)?|reflection|scratchpad|seed:think)>|\[THINK\]|◁think▷"
    r"|<\|begin_of_thought\|>|<\|channel\|>analysis|analysis(?=.*assistantfinal))",
    re.IGNORECASE | re.DOTALL,
)


def suspicions(board: Leaderboard) -> list[str]:
    """Return a sentence for every task that looks as if the model, or the reading of its answers, was broken."""
    found = [(row.task, doubt) for row in board.tasks if (doubt := _doubt(row))]
    return [f"{task}: {doubt}" for task, doubt in found]


def _doubt(row: TaskRow) -> str:
    scored = [result for result in row.per_example if result.is_scored]
    if len(scored) < _ENOUGH:
        return ""
    said = _said(scored)
    if said == {""}:
        return f"all {len(scored)} outputs are empty"
    if len(said) == 1 and len({result.targets for result in scored}) > 1:
        return f"all {len(scored)} outputs are identical"
    if thoughts := _thoughts(scored):
        return thoughts
    unparsed = sum(result.unparsed for result in scored)
    if unparsed == len(scored):
        return f"in none of {unparsed} outputs was there anything to extract"
    if all(result.score == 0 for result in scored):
        return f"all {len(scored)} scores are 0"
    return ""


def _thoughts(results: Sequence[ExampleResult]) -> str:
    begun = Counter(found[1] for result in results for each in result.outputs[:1] if (found := _THOUGHTS.match(each)))
    if 2 * begun.total() < len(results):
        return ""
    tag, _ = begun.most_common(1)[0]
    return (
        f"{begun.total()} of {len(results)} outputs begin with {tag}: thoughts are scored as answers there, unless "
        "--lm-think-tags=OPEN,CLOSE names how they begin and end"
    )


def _said(results: Sequence[ExampleResult]) -> set[str]:
    return {output.strip() for result in results for output in result.outputs}
