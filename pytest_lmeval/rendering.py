"""From an example to the text that a model is given: the same code path for every model."""

from __future__ import annotations

from pytest_lmeval.types import Example, Message


def render(example: Example) -> str | tuple[Message, ...]:
    r"""Return the prompt of ``example`` with its few-shot examples in front, blocks joined by a blank line.

    A task that asks in messages has made its conversation itself; it is returned as it is.

    >>> from pytest_lmeval.types import FewShot
    >>> render(Example("a", "3 + 3 =", ("6",), "exact_match", few_shot_examples=(FewShot("1 + 1 =", "2"),)))
    '1 + 1 = 2\n\n3 + 3 ='
    """
    if example.messages:
        return example.messages
    blocks = [f"{shot.prompt} {shot.completion}" for shot in example.few_shot_examples]
    return "\n\n".join([*blocks, example.prompt])
