"""Functions of task files as people write them: columns, frames, a module beside, a filter by name."""

import sys
from pathlib import Path

from datasets import Dataset
from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter

sys.path.insert(0, str(Path(__file__).parent))

from helper_of_strangers import shortened  # as such files have it


@register_filter("shout_of_strangers")
class Shout(Filter):
    def __init__(self, mark="!"):
        self.mark = mark

    def apply(self, resps, docs):
        return [[text.strip().upper() + self.mark for text in given] for given in resps]


def columns(docs):
    docs = docs.filter(lambda doc: doc["id"] != 1).flatten_indices()
    assert len(docs.unique("id")) == len(docs)
    return docs.select_columns(["answer", "question", "options"]).map(shortened)


def frames(docs):
    frame = docs.to_pandas()
    frame["rank"] = frame["weight"].rank()
    return Dataset.from_pandas(frame[frame["id"] != 0], preserve_index=False)
