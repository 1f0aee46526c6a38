"""The task that a run makes from a list of conversations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.loglikelihood import option_requests, ranked
from pytest_lmeval.formats.python.completion_task import json_of
from pytest_lmeval.formats.python.examples import Examples, id_of
from pytest_lmeval.formats.task import Subjects
from pytest_lmeval.formatters import concatenation, opening
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.tasks.conversations import Task as Dialogues
from pytest_lmeval.tasks.execution import running_code_in
from pytest_lmeval.tasks.faults import called, scored
from pytest_lmeval.types import Completion, Example, Generate, Message, Request, Response, Score

METRIC = "evaluate"
EVAL_TYPES = ("generative", "categorical")
_SUBJECT_KEYS = ("subject", "specialty", "category", "topic")
_ROLES = frozenset({"system", "user", "assistant"})


@dataclass(slots=True)
class DialogueMaker:
    """Makes examples from a task's conversations."""

    task: Dialogues
    line: int
    held: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __call__(self, index: int) -> Example:
        """Return the example of conversation number ``index``; raise RecordRefused if the conversation is not valid."""
        name = f"{type(self.task).__name__}.get_example"
        given = called(name, self.task.get_example, index)
        if not isinstance(given, Mapping):
            raise RecordRefused("bad_type", name, f"expected a conversation, a dict with messages, got {given!r:.80}")
        talk = dict(given)
        messages = _messages(talk.get("messages"), f"{name}.messages")
        *asked, answer = messages
        if answer.role != "assistant" or not any(message.role == "user" for message in asked):
            roles = ", ".join(message.role for message in messages)
            detail = f"expected a question of the user and, last, the assistant's answer, got {roles}"
            raise RecordRefused("bad_value", f"{name}.messages", detail)
        if self.task.eval_type == "categorical":
            _check_letters(talk.get("letters"), answer.content, f"{name}.letters")
        own_id = id_of(talk.get("id"), index)
        self.held.setdefault(own_id, talk)
        return Example(
            id=own_id,
            prompt=concatenation(asked[-1:]),
            targets=(answer.content,),
            metric=METRIC,
            category=self._subject(talk),
            line=self.line,
            messages=tuple(asked),
            place=index,
        )

    def _subject(self, talk: Mapping[str, Any]) -> str:
        keys = _SUBJECT_KEYS if self.task.subject_key is None else (self.task.subject_key,)
        found = next((talk[key] for key in keys if talk.get(key) is not None), "")
        if found == "" and self.task.subject_key is not None:
            name = f"{type(self.task).__name__}.subject_key"
            detail = f"no conversation key {self.task.subject_key!r}; there are {', '.join(map(str, talk))}"
            raise RecordRefused("bad_value", name, detail)
        return str(found)


@dataclass(frozen=True, slots=True)
class DialogueTask(Task):
    """Requests the next turn of each conversation, or the most probable letter, which the user's class evaluates.

    For a categorical task, :meth:`prepared` sets ``by_probability`` if the adapter computes log-probabilities.
    """

    name: str
    path: Path
    sha256: str
    code: str
    scoring_code: str
    task: Dialogues
    examples: Examples
    held: Mapping[str, dict[str, Any]]
    by_probability: bool = False
    metric: str = METRIC
    subjects: Subjects | None = None

    @property
    def is_categorical(self) -> bool:
        """True if the model chooses a letter."""
        return self.task.eval_type == "categorical"

    def prepared(self, adapter: Any) -> DialogueTask:
        """Return the task for ``adapter``; a categorical task compares probabilities if the adapter computes them."""
        if not (self.is_categorical and "loglikelihood" in AdapterFacts.of(adapter).methods):
            return self
        return replace(self, by_probability=True)

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return the request for the next turn, or a request for each letter."""
        if self.by_probability:
            context = prompt if isinstance(prompt, str) else opening(prompt)
            talk = () if isinstance(prompt, str) else prompt
            letters = self.held[example.id]["letters"]
            return option_requests([(context, letter) for letter in letters], self.name, example.id, talk)
        stop = tuple(self.task.stop_sequences or ())
        return (Generate(prompt, self.name, example.id, stop=stop, max_tokens=self.task.max_tokens),)

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return the result of ``evaluate`` for the turn or the letter, or 0 if the answer has no letter."""
        talk = self.held[example.id]
        if self.by_probability:
            options = ranked(responses, talk["letters"])
            chosen = options.best("total")
            letter = options.texts[chosen]
            return Score(self._evaluated(talk, letter, tools), options.record(chosen), letter)
        (completion,) = responses
        assert isinstance(completion, Completion)
        if not self.is_categorical:
            return Score(self._evaluated(talk, completion.text, tools), prediction=completion.text)
        found = _first_letter(completion.text, talk["letters"])
        if found is None:
            return Score(0.0, {"chosen": None}, unparsed=True)
        return Score(self._evaluated(talk, found, tools), {"chosen": talk["letters"].index(found)}, found)

    def threshold(self, example: Example) -> float | None:
        """Return the ``threshold`` of the user's class."""
        return self.task.threshold

    def metric_name(self, example: Example) -> str:
        """Return the name of the method that evaluates a response."""
        return self.metric

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return the conversation without its messages, the kind of request, and a hash of the task file's code."""
        rest = {key: value for key, value in self.held[example.id].items() if key != "messages"}
        how = "probability" if self.by_probability else self.task.eval_type
        return {"conversation": json_of(rest), "asked": how, "code": self.code}

    def unprompted(self, example: Example) -> Mapping[str, Any]:
        """Return the fields of :meth:`scoring` and the answer, with a hash of the code without ``get_example``.

        If turns have additional keys, or values are not JSON, the hash covers all code, since only equal code
        guarantees equal conversations.
        """
        *asked, answer = self.held[example.id]["messages"]
        rest = {key: value for key, value in self.held[example.id].items() if key != "messages"}
        scoring = self.scoring(example)
        if any(turn.keys() - {"role", "content"} for turn in asked) or not _is_json([rest, answer]):
            return scoring
        return {**scoring, "answer": json_of(answer), "code": self.scoring_code}

    def _evaluated(self, talk: dict[str, Any], response: str, tools: Tools) -> float:
        name = f"{type(self.task).__name__}.evaluate"
        with running_code_in(tools.sandbox):
            value: Any = scored(name, self.task.evaluate, dict(talk), response)
        # Accept numpy's numbers; the range of every score is checked later.
        if not hasattr(value, "__float__"):
            raise ScoringError(f"{name} returned {value!r:.80}; expected a bool or a number in [0, 1]")
        return float(value)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _messages(given: object, field: str) -> list[Message]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise RecordRefused("bad_type", field, f"expected a list of messages, got {given!r:.80}")
    return [_message(turn, f"{field}[{number}]") for number, turn in enumerate(given)]


def _message(turn: Any, field: str) -> Message:
    if not isinstance(turn, Mapping) or turn.get("role") not in _ROLES:
        detail = f"expected role (system, user, assistant) and content, got {turn!r:.80}"
        raise RecordRefused("bad_value", field, detail)
    return Message(turn["role"], _content(turn.get("content"), field))


def _content(content: Any, field: str) -> str:
    if isinstance(content, str):
        return content
    # Refuse parts of other kinds, such as tool calls.
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text") for part in content]
        if content and all(isinstance(text, str) for text in texts):
            return "".join(str(text) for text in texts)
    raise RecordRefused("bad_type", f"{field}.content", f"expected text or parts with text, got {content!r:.80}")


def _check_letters(letters: Any, answer: str, field: str) -> None:
    if not isinstance(letters, list | tuple) or not all(isinstance(letter, str) and letter for letter in letters):
        raise RecordRefused("bad_type", field, f"a categorical conversation needs its letters, got {letters!r:.80}")
    if len(set(letters)) < 2:
        raise RecordRefused("bad_value", field, f"expected two different letters or more, got {letters!r:.80}")
    if answer not in letters:
        raise RecordRefused("bad_value", field, f"the right answer {answer!r:.80} is not one of {', '.join(letters)}")


def _first_letter(text: str, letters: Sequence[str]) -> str | None:
    """Return the first letter that stands alone, or else the first letter, as the rule ``extract_letter`` does."""
    either = "|".join(re.escape(letter) for letter in sorted(letters, key=len, reverse=True))
    found = re.search(rf"(?<![A-Za-z])(?:{either})(?![A-Za-z])", text) or re.search(either, text)
    return found[0] if found else None
