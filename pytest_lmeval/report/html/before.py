"""Compare a run's examples with its baseline's examples, for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import OUTPUT
from pytest_lmeval.leaderboard.passing import PASSES, missed, reaches, thresholds_of
from pytest_lmeval.report.html.examples import Flip, Flips, answers, filled, is_scored_by_function, page_messages
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.text import cut
from pytest_lmeval.types import ExampleResult, Message


@dataclass(frozen=True, slots=True)
class Against:
    """The flips (worse or better) and the baseline's results, by task and id.

    ``by_id`` is True if the comparison pairs examples by id, even if their prompts differ.
    """

    flips: Flips
    before: Mapping[tuple[str, str], ExampleResult]
    by_id: bool

    def fields(self, now: ExampleResult) -> dict[str, Any]:
        """Return the fields that the comparison adds to an example."""
        before, flip = self.before.get((now.task, now.id)), self.flips.get((now.task, now.id), "")
        return {"flip": flip, "before": None if before is None else self._before(now, before)}

    def _before(self, now: ExampleResult, before: ExampleResult) -> dict[str, Any]:
        is_other = self.by_id and before.hash != now.hash and before.scoring_hash == now.scoring_hash
        return _before(now, before, other_prompt=is_other)


def against(
    results: Iterable[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> Against:
    """Return a run's flips and earlier results, from the comparison and the baseline's results."""
    by_id = (comparison or {}).get("criteria", {}).get("pair_by") == "id"
    return Against(_flips(results, comparison, baseline), _known(results, comparison, baseline), by_id)


def _flips(
    results: Iterable[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> Flips:
    """Return examples that got worse or better, from the comparison if given, otherwise from the baseline's results."""
    if comparison is not None:
        return {**_named(comparison, "better"), **_named(comparison, "worse")}
    if not baseline:
        return {}
    pairs = {(result.task, result.id): result for result in results}
    return {key: flip for key, now in pairs.items() if key in baseline and (flip := _flip(now, baseline[key]))}


def _known(
    results: Iterable[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> dict[tuple[str, str], ExampleResult]:
    """Return the baseline's results; add the comparison's old results for flipped examples that the baseline lacks."""
    flipped = [*(comparison or {}).get("worse", ()), *(comparison or {}).get("better", ())]
    recorded = {(entry["task"], entry["id"]): entry for entry in flipped if entry.get("old")}
    known = {key: now for now in results if (key := (now.task, now.id)) in recorded} if recorded else {}
    return {**{key: _as_it_was(now, recorded[key]) for key, now in known.items()}, **baseline}


def _before(now: ExampleResult, before: ExampleResult, *, other_prompt: bool) -> dict[str, Any]:
    same = before.outputs == now.outputs != ()
    # The page shows both texts even if prompts or targets differ, but then it does not compare the scores.
    fields = {
        "status": before.status,
        "score": before.score,
        "changed": before.hash != now.hash and not other_prompt,
        "other_prompt": other_prompt,
        "prompt": cut(before.prompt) if other_prompt else "",
        "messages": page_messages(before.messages) if other_prompt and before.messages else [],
        "same": same,
        "answers": [] if same else answers(before),
    }
    return filled(fields | (_answered_before(before, now) if is_scored_by_function(now) else {}))


def _answered_before(before: ExampleResult, now: ExampleResult) -> dict[str, Any]:
    from pytest_lmeval.leaderboard.asked import answered
    from pytest_lmeval.leaderboard.explained import explanation_of

    old, new = answered(before), answered(now)
    if not old:
        return {"explained": cut(explanation_of(before))}
    said = {"same": True} if old == new else {"answers": [{"output": cut(old)}], "now": cut(new)}
    return {"same": False, "answers": [], **said, "explained": cut(explanation_of(before))}


def _as_it_was(now: ExampleResult, entry: Mapping[str, Any]) -> ExampleResult:
    recorded = entry["old"]
    output, prediction = recorded.get("output"), recorded.get("prediction")
    if is_scored_by_function(now):
        # For an eval function, the recorded prediction is the reason for the score.
        said = {OUTPUT: output, "reason": prediction}
        return replace(now, status=recorded["status"], score=recorded["score"], details=said, metrics={})
    if "old_prompt" in entry:
        messages = tuple(map(Message.from_json, entry.get("old_messages", ())))
        now = replace(now, prompt=entry["old_prompt"], messages=messages, hash="")
    return replace(
        now,
        status=recorded["status"],
        score=recorded["score"],
        outputs=() if output is None else (output,),
        predictions=() if prediction is None else (prediction,),
    )


def _named(comparison: Mapping[str, Any], flip: Flip) -> dict[tuple[str, str], Flip]:
    return {(entry["task"], entry["id"]): flip for entry in comparison.get(flip, ())}


def _flip(now: ExampleResult, before: ExampleResult) -> Flip:
    if now.score is None or before.score is None or now.hash != before.hash:
        return ""
    if PASSES in now.details or PASSES in before.details:
        was, is_now = reaches(before), reaches(now)
    else:
        # Use the current threshold for both runs: a raised threshold is not a change in the model.
        named = thresholds_of(now)
        was = is_at_least(before.score, now.threshold) and not missed(before.metrics, named)
        is_now = is_at_least(now.score, now.threshold) and not missed(now.metrics, named)
    return "" if was == is_now else "worse" if was else "better"
