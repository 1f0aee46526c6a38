"""Tables in Markdown of examples that failed or changed."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.leaderboard.details import is_function, shown_response
from pytest_lmeval.leaderboard.explained import explanation_of, messages_text, reasons_of, shown_output, wanted_text
from pytest_lmeval.report.markdown_parts import folded, listed
from pytest_lmeval.report.tables import Row, head, tail
from pytest_lmeval.types import ExampleResult, Message

NO_PROMPTS = "the baseline has no prompts; one that is written with --lm-pair-by=id (ini: lm_pair_by) has them"
_FLIPS = 25
_TEXT = 80
_REASON = 300


def failed_table(failed: list[ExampleResult]) -> list[str]:
    """Return a folded table of the examples that failed."""
    failed.sort(key=lambda result: not result.must_pass)
    has_reasons = any(map(reasons_of, failed[:_FLIPS]))
    rows = [
        (
            f"{result.task}: {result.id}",
            result.status,
            head(wanted_text(result, quoted=False), _TEXT),
            _answer(result),
            *((head(reasons_of(result), _REASON),) if has_reasons else ()),
        )
        for result in failed[:_FLIPS]
    ]
    headings = ("example", "status", "wanted", "said", *(("judged",) if has_reasons else ()))
    return folded(f"Failed: {len(failed)}", headings, rows, len(failed) - _FLIPS)


def _answer(result: ExampleResult) -> str:
    if result.error:
        return head(result.error, _TEXT)
    if is_function(result):
        said = {"output": shown_output(result), "prediction": explanation_of(result)}
        return _said(said, is_function=True)
    return head(result.predictions[shown_response(result)], _TEXT) if result.predictions else ""


def flip_table(title: str, flips: Sequence[Row], most: int = _FLIPS) -> list[str]:
    """Return a folded table of examples that changed, as JSON values: the answers of both runs, ``most`` examples."""
    if not flips:
        return []
    has_prompts = any("old_prompt" in flip for flip in flips)
    lacking = any(map(lacks_prompt, flips[:most]))
    has_reasons = any("reason" in flip[side] for flip in flips for side in ("old", "new"))
    rows = [
        (*_flip(flip), *(_reasons(flip) if has_reasons else ()), *(_prompts(flip) if has_prompts else ()))
        for flip in flips[:most]
    ]
    headings = (
        "example",
        "wanted",
        "said before",
        "says now",
        *(("judged before", "judged now") if has_reasons else ()),
        *(("prompt before", "prompt now") if has_prompts else ()),
    )
    lines = folded(f"{title}: {len(flips)}", headings, rows, len(flips) - most)
    return lines + listed([NO_PROMPTS] if lacking else [], 1)


def _reasons(flip: Row) -> list[str]:
    return [head(str(flip[side].get("reason", "")), _REASON) for side in ("old", "new")]


def _prompts(flip: Row) -> tuple[str, str]:
    if "old_prompt" not in flip:
        return "the same", tail(flip["prompt"], _TEXT)
    before, now = flip_prompts(flip)
    return tail(before, _TEXT), tail(now, _TEXT)


def _flip(flip: Row) -> list[str]:
    said = [_said(flip[side], is_function="function" in flip) for side in ("old", "new")]
    return [f"{flip['task']}: {flip['id']}", head(" | ".join(flip["targets"]), _TEXT), *said]


def _said(answer: Row, *, is_function: bool) -> str:
    if is_function and answer["output"]:
        return f"{head(answer['output'], _TEXT)} ({head(answer['prediction'], _TEXT)})"
    return head(answer["prediction"], _TEXT)


def lacks_prompt(flip: Row) -> bool:
    """Return True if the prompt of an example changed and the old one is not known."""
    return flip.get("old_prompt") == ""


def flip_prompts(flip: Row) -> tuple[str, str]:
    """Return the old and the new prompt of an example, with the roles of its messages."""
    both = (("old_prompt", "old_messages"), ("prompt", "messages"))
    if not any(messages in flip for _, messages in both):
        return flip["old_prompt"], flip["prompt"]
    talks = [(flip[prompt], tuple(map(Message.from_json, flip.get(messages, ())))) for prompt, messages in both]
    before, now = (messages_text(messages) if messages else prompt for prompt, messages in talks)
    return before, now
