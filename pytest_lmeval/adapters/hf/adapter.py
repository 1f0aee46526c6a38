"""The adapter itself: requests in, responses out, in the order they came."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from pytest_lmeval.adapters.hf import generation, scoring
from pytest_lmeval.adapters.hf.batches import RowFamily, can_share, families, pack
from pytest_lmeval.adapters.hf.loading import Loaded, hash_files, load, weight_files
from pytest_lmeval.adapters.hf.options import fault, read_options, share_threads, worker_number
from pytest_lmeval.adapters.hf.prompts import Prompts
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb

_Request = TypeVar("_Request")
_Ready = TypeVar("_Ready")
_Answer = TypeVar("_Answer")


class HfAdapter:
    """A causal language model of the transformers library, from a folder or by its name on the hub.

    The options are those of :class:`~pytest_lmeval.adapters.hf.options.HfOptions`. The model is loaded here and now:
    raise UsageError for an option that cannot be used, for what is no causal model, or without the libraries.

    The same run gives the same answers again, and what is sampled for a prompt does not depend on its batch.
    ``exact`` is False all the same: another batch, another number of threads or another processor changes the last
    bits of the numbers, and with them an answer now and then.
    """

    exact = False
    trusted = False
    tells_cost = False

    def __init__(self, source: str, /, **options: Any) -> None:
        if not isinstance(source, str) or not source.strip():
            raise fault("needs a model folder or name: hf:PATH_OR_NAME")
        self._options = read_options(options)
        self.options = self._options.public()
        loaded = load(source, self._options, worker_number(os.environ))
        self._prompts = Prompts(loaded.tokenizer, self._options)
        self._loaded: Loaded | None = loaded
        self._shares = can_share(loaded.model)
        self._folder, self._revision = loaded.folder, loaded.revision
        self.name = loaded.name
        self._threads = _set_threads(self._options.threads, loaded.device)

    @property
    def think_tags(self) -> tuple[str, str] | None:
        """What the model writes around its thoughts; set by the run."""
        return self._prompts.think_tags

    @think_tags.setter
    def think_tags(self, tags: tuple[str, str] | None) -> None:
        self._prompts.think_tags = tags

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Which model this is: ``id``, ``revision`` (a hub commit, or None) and ``sha256`` of its weight files."""
        return {"id": self.name, "revision": self._revision, "sha256": hash_files(weight_files(self._folder))}

    @property
    def fingerprint(self) -> str:
        """What distinguishes this model's answers from those of another one of its name."""
        return str(self.manifest["sha256"])

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return one completion per request, in order, or the AdapterError that says why it is missing."""
        loaded = self._open()
        asked, answers = _prepare(requests, lambda request: self._ask(loaded, request))
        limit = self._options.batch_tokens
        parts = pack(asked, lambda one: len(one.tokens), lambda part: generation.together(part, limit, loaded.window))
        for part in parts:
            answers |= _compute(part, lambda rows: generation.write(loaded, self._prompts, self._options, rows))
        return [answers[number] for number in range(len(requests))]

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb | AdapterError]:
        """Return the log-probability of each continuation, in order, or the AdapterError that says why it is missing.

        A context that is a conversation is written by the chat template, where there is one; others are taken as they
        are. Where context and continuation do not fit into the model's window, the context loses its beginning. What
        the requests of one call begin with in common is read once, where that pays.
        """
        loaded = self._open()
        found = self._prompts.split_requests(requests)
        split, answers = _prepare(found, lambda one: _fitting(one, loaded.window))
        limit = scoring.batch_limit(self._options.batch_tokens, loaded.device)
        rows = scoring.readings(split, loaded.window)
        groups = families(rows) if self._shares else [RowFamily((row,)) for row in rows]
        for batch in scoring.batches(groups, limit, loaded.vocabulary):
            answers |= _score(loaded, batch)
        return [answers[number] for number in range(len(requests))]

    def close(self) -> None:
        """Let go of the model and of torch's settings; what is asked afterwards is an error."""
        if self._loaded is None:
            return
        import torch

        device, self._loaded = self._loaded.device, None
        torch.set_num_threads(self._threads)
        if device != "cpu":
            torch.cuda.empty_cache()

    def _open(self) -> Loaded:
        if self._loaded is None:
            raise AdapterError(f"adapter {self.name} is closed")
        return self._loaded

    def _ask(self, loaded: Loaded, request: Generate) -> generation.Prompted:
        tokens, opened = self._prompts.read(request)
        room = self._options.max_new_tokens if request.max_tokens is None else request.max_tokens
        if loaded.window is not None:
            room = min(room, loaded.window - len(tokens))
        if room < 1:
            sizes = f"prompt {len(tokens)}, window {loaded.window}, max_tokens {request.max_tokens}"
            raise AdapterError(f"there is no room for an answer; in tokens: {sizes}")
        seed = f"{self._options.seed + request.repeat} {tokens}"
        return generation.Prompted(tokens, room, request.stop, seed, opened, bool(request.tools))


def _fitting(split: tuple[list[int], int] | AdapterError, window: int | None) -> tuple[list[int], int]:
    if isinstance(split, AdapterError):
        raise split
    tokens, size = split
    if window is not None and size > window:
        raise AdapterError(f"the continuation has {size} tokens, more than the window of {window}")
    return tokens, size


def _score(loaded: Loaded, batch: Sequence[RowFamily]) -> dict[int, Any]:
    """Return the answers to the families' requests by number; the same error for all where memory is too small."""
    numbers = [number for family in batch for row in family.rows for number in row.asked]
    found = _within_memory(len(numbers), lambda: scoring.score(loaded, batch))
    return dict.fromkeys(numbers, found) if isinstance(found, AdapterError) else found


def _prepare(
    requests: Sequence[_Request], ready: Callable[[_Request], _Ready]
) -> tuple[dict[int, _Ready], dict[int, Any]]:
    """Return by number what is ready to be asked, and the errors of what cannot be."""
    prepared: dict[int, _Ready] = {}
    answers: dict[int, Any] = {}
    for number, request in enumerate(requests):
        try:
            prepared[number] = ready(request)
        except AdapterError as error:
            answers[number] = error
    return prepared, answers


def _compute(
    part: Mapping[int, _Ready], answer: Callable[[list[_Ready]], Sequence[_Answer]]
) -> dict[int, _Answer | AdapterError]:
    """Return the answers by number; the same error for all of them where the device has too little memory."""
    found = _within_memory(len(part), lambda: answer(list(part.values())))
    if isinstance(found, AdapterError):
        return dict.fromkeys(part, found)
    return dict(zip(part, found, strict=True))


def _within_memory(requests: int, compute: Callable[[], _Answer]) -> _Answer | AdapterError:
    """Return what ``compute`` does, or the error that says that the device has too little memory for it."""
    import torch

    try:
        with torch.inference_mode():
            return compute()
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        fewer = "ask for fewer at a time with --lm-batch-size or the option batch_tokens"
        return AdapterError(f"{requests} request(s) at a time are too many: {reason}; {fewer}")


def _set_threads(wanted: int | None, device: str) -> int:
    """Set how many threads torch computes with, if it has to be another number, and return how many they were."""
    import torch

    before = int(torch.get_num_threads())
    number = wanted or (share_threads(before, os.environ) if device == "cpu" else before)
    if number != before:
        torch.set_num_threads(number)
    return before
