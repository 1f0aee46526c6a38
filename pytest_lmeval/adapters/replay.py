"""The adapter ``replay``, which answers from a recording, so that a run can score a model again without queries."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.protocol import ANY_OPTION, NamedModel
from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.hashes import judge_key, request_hash
from pytest_lmeval.records.answers import Recall
from pytest_lmeval.records.recording import Outputs, read_judgements, read_recording
from pytest_lmeval.records.service import OUTSIDE
from pytest_lmeval.records.tool_calls import Place, RecordedCall
from pytest_lmeval.types import MEDIA_KINDS, Completion, Generate

_Key = tuple[str, str]


def make(argument: str, **options: Any) -> ReplayAdapter:
    """Return the adapter ``replay:PATH``."""
    if not argument:
        raise UsageError("adapter 'replay' needs a recording: replay:PATH")
    return ReplayAdapter(argument, **options)


class ReplayAdapter:
    """Answers from a ledger, a leaderboard with per-example records, or a JSONL file of ``{"task"?, "id", "output"}``.

    Instead of ``output``, a record may have ``outputs``, a list with one string per repeat. The strings are raw model
    output, which the run post-processes as usual. If the file does not contain an example, the answer is an error,
    never an empty string. A request from an eval function receives the recorded answer to an equal request, and a tool
    call receives the recorded result.
    """

    exact = True
    tells_cost = False
    # Its answers depend on task and id, which are not part of a request's key.
    cacheable = False
    # A request's options are part of its key.
    request_options = frozenset({ANY_OPTION})
    # A server's replies are recorded like a model's answers.
    forwards = takes_messages = True
    # The hashes of media identify recorded answers.
    media = frozenset(MEDIA_KINDS)

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.name = f"replay:{self._path.name}"
        self._outputs: dict[tuple[str | None, str], Outputs] = {}
        self._recalls: dict[tuple[str, str], Recall] = {}
        # The request's hash for each example and repeat in this run; None for a judge, which receives no selection.
        self._asked: dict[tuple[str, str, int], str] | None = None
        for task, example_id, outputs in read_recording(self._path):
            if (task, example_id) in self._outputs:
                raise UsageError(f"{self._path}: two outputs for {_label(task, example_id)}")
            self._outputs[task, example_id] = outputs
        exchanges = (record for outputs in self._outputs.values() for record in outputs.exchanges)
        # The models that answered an eval function.
        self.recorded_models = frozenset(str(record["model"]) for record in exchanges if "model" in record)

    def as_judge(self) -> Any:
        """Return an adapter that answers with the judges' replies in the same file."""
        return ReplayJudge(self._path)

    def check_selection(self, keys: Iterable[tuple[str, str]]) -> None:
        """Raise UsageError if a recorded output without a task would answer examples from two tasks."""
        self._recalls.clear()
        self._asked = {}
        first: dict[str, str] = {}
        for task, example_id in keys:
            other = first.setdefault(example_id, task)
            if other != task and (None, example_id) in self._outputs:
                shared = f"both {other!r} and {task!r} have an example {example_id!r}"
                raise UsageError(f'{self._path}: {shared}; give the recording a "task" field, or select one task')

    def recorded_calls(self, task: str, example: str) -> Mapping[Place, RecordedCall]:
        """Return an example's recorded tool calls."""
        outputs = self._outputs.get((task, example))
        return {} if outputs is None else outputs.calls

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return the recorded answer to each request, or an error if the recording has no answer."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Generate) -> Completion | AdapterError:
        outputs = self._outputs.get((request.task, request.id), self._outputs.get((None, request.id)))
        if outputs is None:
            return AdapterError(f"{self._path} holds no output for {_label(request.task, request.id)}")
        if outputs.exchanges:
            return self._recalled(request, outputs)
        if self._is_another(request):
            held = "holds one output, but this is a second request,"
            return AdapterError(f"{self._path} {held} for {_label(request.task, request.id)}; replay a run's ledger")
        if request.repeat >= len(outputs):
            held = f"{len(outputs)} output(s), not {request.repeat + 1}"
            return AdapterError(f"{self._path} holds {held}, for {_label(request.task, request.id)}")
        return _completion(outputs, request.repeat)

    def _recalled(self, request: Generate, outputs: Outputs) -> Completion | AdapterError:
        key = request.task, request.id
        if key not in self._recalls:
            self._recalls[key] = Recall(outputs.exchanges)
        wanted = f"this request for {_label(request.task, request.id)}: its prompt or an earlier answer has changed"
        known = self._recalls[key]
        return (
            known.take(request)
            or known.take(_as_without_name(request))
            or AdapterError(f"{self._path} holds no answer to {wanted}")
        )

    def _is_another(self, request: Generate) -> bool:
        if self._asked is None:
            return False
        key = request_hash([request])
        return self._asked.setdefault((request.task, request.id, request.repeat), key) != key


def _as_without_name(request: Generate) -> Generate:
    """Return a request without the model that the client named, as an adapter with a fixed model receives it."""
    named = [name for name, value in request.options.items() if isinstance(value, NamedModel)]
    return replace(request, options={name: value for name, value in request.options.items() if name not in named})


def _completion(outputs: Outputs, number: int) -> Completion:
    thoughts = outputs.thoughts[number] if outputs.thoughts else ""
    found = Completion.of_output(outputs[number], thoughts=thoughts)
    return replace(found, finish_reason="length") if outputs.cut_off and not found.is_cut_off else found


def _label(task: str | None, example_id: str) -> str:
    if (task, example_id) == OUTSIDE:
        return "a request outside of examples"
    return repr(example_id) if task is None else f"{example_id!r} of task {task!r}"


class ReplayJudge:
    """Answers each request to a judge with the recorded reply to an equal request, in the recorded order."""

    exact = True
    tells_cost = False
    cacheable = False
    answers_by_example = True
    request_options = frozenset({ANY_OPTION})
    media = frozenset(MEDIA_KINDS)

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"replay:{path.name}"
        self._replies: dict[_Key, dict[str, deque[str]]] = {}
        self._recalls: dict[_Key, Recall] = {}
        self._names: dict[str, None] = {}
        for task, example, judged in read_judgements(path):
            # An example's last result counts, as in a resumed run's ledger.
            replies: dict[str, deque[str]] = defaultdict(deque)
            for name, key, reply in judged.entries:
                self._names[name] = None
                replies[key].append(reply)
            self._replies[task, example] = replies
            self._recalls[task, example] = Recall(judged.exchanges)

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return the recorded reply to each request, or an error if the recording has no reply."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Generate) -> Completion | AdapterError:
        key = request.task, request.id
        if key in self._recalls and (known := self._recalls[key].take(request)) is not None:
            return known
        for name in self._names:
            found = self._replies.get(key, {}).get(judge_key(name, request))
            if found:
                # If two scorers asked equal questions at the same time, both received the same reply.
                return Completion(found.popleft() if len(found) > 1 else found[0])
        return AdapterError(
            f"{self._path} holds no reply of a judge to this question about {request.id!r} of task {request.task!r}: "
            "the answer or the judge's prompt has changed"
        )
