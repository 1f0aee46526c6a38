"""Before the first request, find adapters that do not accept the images, audio or files in examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.errors import UsageError

if TYPE_CHECKING:
    from pytest_lmeval.run.plan import Needs
    from pytest_lmeval.task import Task

_MOST_NAMED = 3


def lacking_of_judges(
    needed: Mapping[str, Needs], judge: Any, judge_of: Callable[[str], Any]
) -> Iterator[tuple[Task, str]]:
    """Yield each task that has media that one of its judges does not accept, with the reason.

    ``judge`` is the adapter of the run's judge, or None; ``judge_of`` returns the adapter of a judge that a task names.
    """
    for needs in needed.values():
        for spec in sorted(needs.sees_media):
            try:
                if (adapter := judge_of(spec) if spec else judge) is not None:
                    check_media(needs.media, f"judge {adapter_name(adapter)}", AdapterFacts.of(adapter))
            except UsageError as error:
                yield needs.unit.task, str(error)


def check_media(media: Mapping[str, Sequence[str]], which: str, facts: AdapterFacts) -> None:
    """Raise a UsageError that names examples if an adapter does not accept a kind of ``media``."""
    for kind, ids in sorted(media.items()):
        if kind not in facts.media:
            more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
            takes = f"it accepts {', '.join(sorted(facts.media))}" if facts.media else "it accepts text alone"
            raise UsageError(f"{which} accepts no {kind}; {takes}: examples {', '.join(ids[:_MOST_NAMED])}{more}")
