"""``--lm-shard I/N``: which of the selected examples are this run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from pytest_lmeval.plugin.locate import is_example


def keep_shard(config: pytest.Config, items: list[pytest.Item], collected: Sequence[pytest.Item]) -> None:
    """Deselect the examples of the other shards.

    ``collected`` are the items in the order of their collection: whatever shuffles ``items`` afterwards, the shards of
    a run stay a partition. Items that are no examples stay in every shard.
    """
    part, parts = config.option.lm_shard
    rank = {item: number for number, item in enumerate(collected)}
    examples = sorted((item for item in items if is_example(item)), key=rank.__getitem__)
    # Of several models, each shard has the same examples of all.
    counts: Counter[str] = Counter()
    mine: dict[pytest.Item, bool] = {}
    for item in examples:
        label = getattr(item, "label", "")
        mine[item] = counts[label] % parts == part - 1
        counts[label] += 1
    others = [item for item in items if not mine.get(item, True)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if mine.get(item, True)]
