"""Prepare the messages of prompts for the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pytest_lmeval.compact_json import encode
from pytest_lmeval.leaderboard.explained import messages_text
from pytest_lmeval.report.html.steps import fitted
from pytest_lmeval.text import LONGEST_SHOWN, cut
from pytest_lmeval.types import ExampleResult, Message


def shown_messages(messages: Sequence[Message]) -> Sequence[object]:
    """Return a prompt's messages as JSON; if they are too long, cut each message, or else their combined text."""
    shown = fitted([message.to_json() for message in messages], LONGEST_SHOWN)
    if isinstance(shown, list) and len(encode(shown)) <= 2 * LONGEST_SHOWN:
        return shown
    return [{"role": "messages", "content": cut(messages_text(messages))}]


def common_messages(results: Sequence[ExampleResult], shortest: int) -> tuple[Message, ...]:
    """Return the messages with which all prompts begin, or ``()`` if these have fewer than ``shortest`` characters."""
    common = results[0].question.messages
    for result in results:
        pairs = zip(common, result.question.messages, strict=False)
        common = common[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
        if sum(len(message.content) for message in common) < shortest:
            return ()
    return common
