"""What judges said in an earlier run, by example and question: the judge of ``--lm-judge=replay:PATH``."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from pytest_lmeval.errors import AdapterError
from pytest_lmeval.hashes import judge_key
from pytest_lmeval.records.answers import Recall
from pytest_lmeval.records.judgements import Judgements, read_judgements
from pytest_lmeval.types import Completion, Generate

_Key = tuple[str, str]


class ReplayJudge:
    """Answers each question about an example by the reply to its equal, equal ones in their order."""

    exact = True
    tells_cost = False
    cacheable = False
    answers_by_example = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"replay:{path.name}"
        self._replies: dict[_Key, dict[str, deque[str]]] = {}
        self._recalls: dict[_Key, Recall] = {}
        self._names: dict[str, None] = {}
        for task, example, said in read_judgements(path):
            self._take(task, example, said)

    def as_judge(self) -> ReplayJudge:
        """Return the judge itself."""
        return self

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return the recorded reply to each question, or the error that there is none."""
        return [self._answer(request) for request in requests]

    def _take(self, task: str, example: str, said: Judgements) -> None:
        # The last result of an example counts, as in the ledger of a run that was resumed.
        replies: dict[str, deque[str]] = defaultdict(deque)
        for name, key, reply in said.entries:
            self._names[name] = None
            replies[key].append(reply)
        self._replies[task, example] = replies
        self._recalls[task, example] = Recall(said.exchanges)

    def _answer(self, request: Generate) -> Completion | AdapterError:
        key = request.task, request.id
        if key in self._recalls and (known := self._recalls[key].take(request)) is not None:
            return known
        for name in self._names:
            found = self._replies.get(key, {}).get(judge_key(name, request))
            if found:
                # Two scorers that ask the same in one go were answered once.
                return Completion(found.popleft() if len(found) > 1 else found[0])
        return AdapterError(
            f"{self._path} holds no reply of a judge to this question about {request.id!r} of task {request.task!r}: "
            "the answer, or the judge's prompt, is another one"
        )
