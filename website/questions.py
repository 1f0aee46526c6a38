"""The eight questions for which people open the page of several models, and the clicks that lead to each answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["QUESTIONS", "Question", "walk"]

_WORSE = ".models tbody tr:nth-child(3) td:nth-last-child(4) a"
_EXAMPLE = ".matrix tbody a"


@dataclass(frozen=True)
class Question:
    """What somebody asks, what is to be clicked from the opened page on, and where the answer then is.

    ``shows`` finds the element that answers, ``picture`` names the file in docs/images that shows a window of ``size``
    pixels, from the top of the element ``top`` on.
    """

    text: str
    picture: str
    clicks: Sequence[str]
    shows: str
    size: tuple[int, int]
    top: str = "body"


QUESTIONS = (
    Question("Which model do I ship?", "models.png", (), "h1", (1240, 290)),
    Question("On which task is it worse?", "models-tasks.png", (), ".by-task", (1000, 250), "section:has(.by-task)"),
    Question("What did it cost?", "models-cost.png", (), ".models", (1240, 290), "section:has(.models)"),
    Question("Was the prompt the same?", "models-prompts.png", (), "#prompts", (1000, 90), "section:has(#prompts)"),
    Question("Which examples flipped?", "models-flipped.png", (_WORSE,), ".matrix", (1000, 470)),
    Question(
        "What did the others answer?",
        "models-answers.png",
        ("nav a[href='#/all?show=differs']",),
        ".matrix td .said",
        (1000, 470),
    ),
    Question("Why this one?", "models-example.png", (_WORSE, _EXAMPLE), ".beside .result", (1240, 790)),
    Question(
        "How do I send a colleague this view?",
        "models-link.png",
        (_WORSE, _EXAMPLE, "#copy-link"),
        "header [role=status]",
        (1000, 190),
    ),
)


class Tab(Protocol):
    """What is needed of a browser."""

    def js(self, expression: str) -> Any: ...
    def call(self, method: str, **parameters: Any) -> object: ...
    def settle(self) -> None: ...
    def wait_for(self, expression: str) -> None: ...


def walk(tab: Tab, question: Question) -> None:
    """Make the clicks of a question on the page that is open in ``tab``, and wait until its answer is shown."""
    tab.call("Browser.setPermission", permission={"name": "clipboard-write"}, setting="granted")
    for selector in question.clicks:
        # As by a hand: what a script clicks may not write to the clipboard.
        found = f"document.querySelector({json.dumps(selector)})"
        tab.js(f"{found}.scrollIntoView({{block: 'center', inline: 'center'}})")
        left, top, width, height = tab.js(
            f"(({{x, y, width, height}}) => [x, y, width, height])({found}.getBoundingClientRect())"
        )
        place = {"x": left + width / 2, "y": top + height / 2, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            tab.call("Input.dispatchMouseEvent", type=kind, **place)
        tab.settle()
    tab.wait_for(f"(document.querySelector({json.dumps(question.shows)})?.textContent || '').trim() !== ''")
