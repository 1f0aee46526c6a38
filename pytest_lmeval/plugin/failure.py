"""What a failed example tells its reader."""

from __future__ import annotations

from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

__all__ = ["ExampleFailed", "explain"]

_PROMPT_TAIL = 600
_TEXT_HEAD = 2000


class ExampleFailed(Exception):
    """Fails an item; its text is all that is shown."""


def explain(result: ExampleResult, rerun: str) -> str:
    """Return the prompt's end, what the model said, what was made of it, what was wanted, and how to run it again."""
    lines = [_verdict(result)]
    lines += _block("prompt", result.prompt, tail=_PROMPT_TAIL)
    if result.outputs:
        lines += _block("output", result.outputs[0])
    if result.predictions and result.predictions != result.outputs:
        lines += _block(f"prediction ({result.post_process})", result.predictions[0])
    if result.unparsed:
        lines.append(f"  unparsed: {result.post_process} found nothing to extract")
    lines += _block("targets", " | ".join(repr(target) for target in result.targets))
    lines += [f"  {name}: {printable(str(value))}" for name, value in result.details.items()]
    lines.append(f"  rerun: {rerun}")
    return "\n".join(lines)


def _verdict(result: ExampleResult) -> str:
    name = printable(f"{result.task}: {result.id}")
    if result.score is None:
        return f"{name} could not be scored ({result.status}): {printable(result.error)}"
    return f"{name} scored {result.score:.4g}, threshold {result.threshold:.4g} ({printable(result.metric)})"


def _block(label: str, text: str, tail: int = 0) -> list[str]:
    shown = printable(_cut(text, tail))
    if "\n" not in shown:
        return [f"  {label}: {shown}" if shown else f"  {label}: (empty)"]
    return [f"  {label}:", *[f"    {line}" for line in shown.split("\n")]]


def _cut(text: str, tail: int) -> str:
    if tail:
        return text if len(text) <= tail else f"[{len(text) - tail:,} characters before] {text[-tail:]}"
    return text if len(text) <= _TEXT_HEAD else f"{text[:_TEXT_HEAD]} [{len(text) - _TEXT_HEAD:,} more characters]"
