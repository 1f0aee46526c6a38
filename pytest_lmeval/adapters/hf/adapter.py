"""The adapter itself: requests in, responses out, in the order they came."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from pytest_lmeval.adapters.hf import generation, scoring
from pytest_lmeval.adapters.hf.batches import pack
from pytest_lmeval.adapters.hf.device import share_threads, worker_number
from pytest_lmeval.adapters.hf.loading import Loaded, load
from pytest_lmeval.adapters.hf.options import fault, read_options
from pytest_lmeval.adapters.hf.prompts import Prompts
from pytest_lmeval.adapters.hf.weights import hash_files, weight_files
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb

__all__ = ["HfAdapter"]

_Request = TypeVar("_Request")
_Ready = TypeVar("_Ready")
_Answer = TypeVar("_Answer")


class HfAdapter:
    """A causal language model of the transformers library, from a folder or by its name on the hub.

    The options are those of :class:`~pytest_lmeval.adapters.hf.options.Options`. The model is loaded here and now:
    raise UsageError for an option that cannot be used, for what is no causal model, or without the libraries.

    The same run gives the same answers again, and what is sampled for a prompt does not depend on its batch.
    ``exact`` is False all the same: another batch, another number of threads or another processor changes the last
    bits of the numbers, and with them an answer now and then.
    """

    exact = False
    trusted = False

    def __init__(self, source: str, /, **options: Any) -> None:
        if not isinstance(source, str) or not source.strip():
            raise fault("needs a model folder or name: hf:PATH_OR_NAME")
        self._options = read_options(options)
        self.options = self._options.public()
        loaded = load(source, self._options, worker_number(os.environ))
        self._prompts = Prompts(loaded.tokenizer, self._options)
        self._loaded: Loaded | None = loaded
        self._folder, self._revision = loaded.folder, loaded.revision
        self.name = loaded.name
        self._threads = _set_threads(self._options.threads, loaded.device)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Which model this is: ``id``, ``revision`` (a hub commit, or None) and ``sha256`` of its weight files."""
        return {"id": self.name, "revision": self._revision, "sha256": hash_files(weight_files(self._folder))}

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return one completion per request, in order, or the AdapterError that says why there is none."""
        loaded = self._open()
        asked, answers = _prepare(requests, lambda request: self._ask(loaded, request))
        limit = self._options.batch_tokens
        parts = pack(asked, lambda one: len(one.tokens), lambda part: generation.together(part, limit, loaded.window))
        for part in parts:
            answers |= _compute(part, lambda rows: generation.write(loaded, self._prompts, self._options, rows))
        return [answers[number] for number in range(len(requests))]

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb | AdapterError]:
        """Return the log-probability of each continuation, in order, or the AdapterError that says why there is none.

        The texts are taken as they are, without a chat template. Where both do not fit into the model's window, the
        context loses its beginning.
        """
        loaded = self._open()
        split, answers = _prepare(requests, lambda request: self._split(loaded, request))
        rows = dict(enumerate(scoring.readings(split, loaded.window)))
        limit = self._options.batch_tokens
        parts = pack(rows, lambda row: len(row.tokens), lambda part: scoring.together(part, limit, loaded.vocabulary))
        for part in parts:
            for number, found in _compute(part, lambda rows: scoring.score(loaded, rows)).items():
                answers |= found if isinstance(found, dict) else dict.fromkeys(rows[number].asked, found)
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

    def _ask(self, loaded: Loaded, request: Generate) -> generation.Asked:
        tokens = self._prompts.tokens(request)
        room = self._options.max_new_tokens if request.max_tokens is None else request.max_tokens
        if loaded.window is not None:
            room = min(room, loaded.window - len(tokens))
        if room < 1:
            sizes = f"prompt {len(tokens)}, window {loaded.window}, max_tokens {request.max_tokens}"
            raise AdapterError(f"there is no room for an answer; in tokens: {sizes}")
        luck = f"{self._options.seed + request.repeat} {tokens}"
        return generation.Asked(tokens, room, request.stop, luck)

    def _split(self, loaded: Loaded, request: LogLikelihood) -> tuple[list[int], int]:
        tokens, size = self._prompts.split(request.context, request.continuation)
        if loaded.window is not None and size > loaded.window:
            raise AdapterError(f"the continuation has {size} tokens, more than the window of {loaded.window}")
        return tokens, size


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
    import torch

    try:
        with torch.inference_mode():
            return dict(zip(part, answer(list(part.values())), strict=True))
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        fewer = "ask for fewer at a time with --lm-batch-size or the option batch_tokens"
        return dict.fromkeys(part, AdapterError(f"{len(part)} request(s) at a time are too many: {reason}; {fewer}"))


def _set_threads(wanted: int | None, device: str) -> int:
    """Set how many threads torch computes with, if it has to be another number, and return how many they were."""
    import torch

    before = int(torch.get_num_threads())
    number = wanted or (share_threads(before, os.environ) if device == "cpu" else before)
    if number != before:
        torch.set_num_threads(number)
    return before
