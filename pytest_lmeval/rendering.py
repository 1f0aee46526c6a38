"""From an example to the text that a model is given: the same code path for every model."""

from __future__ import annotations

from pytest_lmeval.types import Example

__all__ = ["render"]


def render(example: Example) -> str:
    r"""Return the prompt of ``example`` with its few-shot examples in front, blocks joined by a blank line.

    >>> from pytest_lmeval.types import FewShot
    >>> render(Example("a", "3 + 3 =", ("6",), "exact_match", few_shot_examples=(FewShot("1 + 1 =", "2"),)))
    '1 + 1 = 2\n\n3 + 3 ='
    """
    blocks = [f"{shot.prompt} {shot.completion}" for shot in example.few_shot_examples]
    return "\n\n".join([*blocks, example.prompt])
