"""The adapter ``hf``, which runs a model on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pytest_lmeval.adapters.hf import generation, scoring
from pytest_lmeval.adapters.hf.batches import BatchLimits, WindowPlan, batches, prepare, size_of
from pytest_lmeval.adapters.hf.loading import Loaded, hash_files, load, weight_files
from pytest_lmeval.adapters.hf.options import fault, read_options, sampling_of, share_threads, worker_number
from pytest_lmeval.adapters.hf.passes import Reader, can_go_on
from pytest_lmeval.adapters.hf.prompts import Prompts, Seen
from pytest_lmeval.adapters.hf.rows import Batch, Prompted, Row, RowFamily, Sampling, ScoredRow, families, rows_of
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Request

# On a CPU, larger batches are no faster, and rows whose lengths differ more need more padding. In generation, each
# token takes one pass for all rows of a batch.
_ENOUGH_TO_SCORE = 1024
_ENOUGH_TO_WRITE = 4096
_LONGEST_STEP_S = 10.0


class HfAdapter:
    """A language model of the transformers library, loaded from a folder or by its name on the hub.

    :class:`~pytest_lmeval.adapters.hf.options.HfOptions` describes the options. The model may accept images. The
    constructor loads the model, and raises UsageError for an invalid option, a model that is not causal, or missing
    libraries.

    A repeated run gives the same answers. Other prompts in a batch do not affect the random numbers for a prompt.
    ``exact`` is still False, because a different batch, thread count or processor slightly changes the model's numbers,
    and sometimes an answer.
    """

    tells_cost = False
    request_options = frozenset({"temperature", "top_p"})

    def __init__(self, source: str, /, **options: Any) -> None:
        if not isinstance(source, str) or not source.strip():
            raise fault("needs a model folder or name: hf:PATH_OR_NAME")
        self._options = read_options(options)
        self.options = self._options.public()
        loaded = load(source, self._options, worker_number(os.environ))
        self._prompts = Prompts(loaded.tokenizer, self._options, sees=loaded.processor is not None)
        self.media = frozenset({"image"} if loaded.processor is not None and self._prompts.is_chat else ())
        self._loaded: Loaded | None = loaded
        # A run may end before the thread that sends its requests, and a process that exits while the libraries compute
        # is aborted.
        self._busy, self._closing = threading.RLock(), threading.Event()
        self._goes_on = loaded.processor is None and can_go_on(loaded.model)
        self._reader = Reader(loaded.model)
        self._planned: dict[tuple[int, ...], tuple[Sequence[Request], WindowPlan]] = {}
        self._most_tokens = self._options.batch_tokens
        self.request_window = self._options.request_window
        self._folder, self._revision = loaded.folder, loaded.revision
        self.name = loaded.name
        self._threads = _set_threads(self._options.threads, loaded.device)

    @property
    def think_tags(self) -> tuple[str, str] | None:
        """The tags around the model's thoughts; the run sets this attribute."""
        return self._prompts.think_tags

    @think_tags.setter
    def think_tags(self, tags: tuple[str, str] | None) -> None:
        self._prompts.think_tags = tags

    @cached_property
    def manifest(self) -> dict[str, object]:
        """The model's ``id``, ``revision`` (a hub commit, or None) and the ``sha256`` of its weight files."""
        return {"id": self.name, "revision": self._revision, "sha256": hash_files(weight_files(self._folder))}

    @property
    def fingerprint(self) -> str:
        """The hash of the weight files, which distinguishes models with the same name."""
        return str(self.manifest["sha256"])

    def plan_window(self, requests: Sequence[Request]) -> list[list[int]]:
        """Divide the positions of the requests among calls; all ``requests`` are of one kind.

        The requests of a call have similar lengths, or begin with the same tokens, which the model reads only once.
        """
        if any(map(_is_rolling, requests)):
            return [[number] for number in range(len(requests))]  # each has several windows
        parts = list(self._plan(requests).parts())
        asked = [[requests[number] for number in part.numbers] for part in parts]
        self._planned = {_identity(part): (part, each) for part, each in zip(asked, parts, strict=True)}
        return [list(part.numbers) for part in parts]

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return a completion or an AdapterError for each request, in order."""
        return self._answers(requests)

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb | AdapterError]:
        """Return a log-probability or an AdapterError for each continuation, in order.

        If the tokenizer has a chat template, the template formats contexts that are conversations. If the context and
        continuation exceed the model's window, the adapter drops the beginning of the context. If several requests
        begin with the same tokens, the model reads these tokens only once if that saves time.
        """
        return self._answers(requests)

    def close(self) -> None:
        """Release the model, and restore torch's number of threads; later and unfinished requests raise an error."""
        if self._loaded is None:
            return
        self._closing.set()
        if self._busy.acquire(timeout=_LONGEST_STEP_S):
            self._busy.release()
        import torch

        device, self._loaded = self._loaded.device, None
        self._reader.forget()
        self._planned = {}
        torch.set_num_threads(self._threads)
        if device != "cpu":
            torch.cuda.empty_cache()

    def _open(self) -> Loaded:
        if self._loaded is None or self._closing.is_set():
            raise AdapterError(f"adapter {self.name} is closed")
        return self._loaded

    def _answers(self, requests: Sequence[Request]) -> list[Any]:
        with self._busy:
            if any(map(_is_rolling, requests)):
                return [self._whole_text(one) if _is_rolling(one) else self._answers([one])[0] for one in requests]
            known = self._planned.pop(_identity(requests), None)
            planned = self._plan(requests) if known is None else known[1]
            answers: dict[int, Any] = dict(planned.errors)
            for batch in planned.batches:
                answers |= self._compute(batch)
            return [answers[number] for number in planned.numbers]

    def _plan(self, requests: Sequence[Request]) -> WindowPlan:
        loaded = self._open()
        rows: Sequence[Row]
        if requests and isinstance(requests[0], LogLikelihood):
            found = self._prompts.split_requests([one for one in requests if isinstance(one, LogLikelihood)])
            split, errors = prepare(found, lambda _, one: _fitting(one, loaded.window))
            rows = scoring.readings(split, loaded.window)
        else:
            asked, errors = prepare(requests, lambda number, one: self._prompted(loaded, number, one))
            rows = list(asked.values())
        limits = self._limits(loaded, scores=bool(rows) and isinstance(rows[0], ScoredRow))
        planned = WindowPlan(range(len(requests)), errors=errors)
        for kind in dict.fromkeys(map(_kind, rows)):
            same = [row for row in rows if _kind(row) == kind]
            groups = families(same) if self._goes_on else [RowFamily([row]) for row in same]
            planned.batches += batches(groups, limits)
        return planned

    def _limits(self, loaded: Loaded, *, scores: bool) -> BatchLimits:
        enough = _ENOUGH_TO_SCORE if scores else _ENOUGH_TO_WRITE
        tokens = min(self._most_tokens, enough) if loaded.device == "cpu" else self._most_tokens
        return BatchLimits(tokens, loaded.vocabulary, loaded.window)

    def _prompted(self, loaded: Loaded, number: int, request: Any) -> Prompted:
        messages = () if isinstance(request.prompt, str) else request.prompt
        images = [media for message in messages for media in message.media]
        seen = Seen(self._prompts.chat(request), images) if images else None
        if seen is None:
            tokens, opened = self._prompts.read(request)
        else:
            from pytest_lmeval.adapters.hf.images import tokens_of

            tokens, opened = tokens_of(loaded.processor, seen), self._prompts.opens_thoughts(seen.text)
        room = self._options.max_new_tokens if request.max_tokens is None else request.max_tokens
        if loaded.window is not None:
            room = min(room, loaded.window - len(tokens))
        if room < 1:
            sizes = f"prompt {len(tokens)}, window {loaded.window}, max_tokens {request.max_tokens}"
            raise AdapterError(f"no room for an answer; in tokens: {sizes}")
        seed = f"{self._options.seed + request.repeat} {tokens}"
        if seen is not None:
            seed += "".join(f" {media.sha256}" for media in seen.images)
        sampling = sampling_of(request.options, self.request_options, self._options)
        return Prompted(tokens, room, request.stop, seed, opened, bool(request.tools), number, sampling, seen)

    def _compute(self, batch: Batch[Any]) -> dict[int, Any]:
        """Return the answers to a batch by request number; split a batch that does not fit into memory."""
        import torch

        loaded, answers = self._open(), dict[int, Any]()
        scores = isinstance(rows_of(batch)[0], ScoredRow)
        for part in batches(batch, self._limits(loaded, scores=scores)):
            self._open()
            try:
                with torch.inference_mode():
                    answers |= self._pass(loaded, part, scores=scores)
                continue
            except torch.OutOfMemoryError as error:
                reason = str(error).partition(". ")[0]
            # Not in the except clause: the exception keeps the tensors of its frames alive.
            self._reader.forget()
            if len(rows := rows_of(part)) > 1:
                self._most_tokens = max(1, int(size_of(part).taken) // 2)
                answers |= self._compute(part)
            else:
                answers |= dict.fromkeys(rows[0].answers, _too_large(rows[0], reason))
        return answers

    def _pass(self, loaded: Loaded, batch: Batch[Any], *, scores: bool) -> dict[int, Any]:
        if scores:
            return scoring.score(loaded, self._reader, batch)
        reader = self._reader if self._goes_on else None
        options = replace(self._options, **dict(rows_of(batch)[0].sampling))
        return generation.write(loaded, reader, self._prompts, options, batch, self._closing.is_set)

    def _whole_text(self, request: Any) -> LogProb | AdapterError:
        """Return the log-probability of text that the model reads in windows."""
        loaded = self._open()
        # As in lm-evaluation-harness, tokens that the tokenizer adds before the text are also predicted.
        start, tokens = self._prompts.start, self._prompts.plain(request.continuation)
        if not tokens or not start:
            return AdapterError("the text has no tokens, or the tokenizer has no token to begin a text")
        splits = dict(enumerate(scoring.windows(start, tokens, loaded.window)))
        answers = self._compute([RowFamily([row]) for row in scoring.readings(splits, loaded.window)])
        failed = next((each for each in answers.values() if isinstance(each, AdapterError)), None)
        return failed or scoring.joined([answers[number] for number in range(len(splits))])


def _kind(row: Row) -> tuple[Sampling, bool]:
    """Return the sampling options of a row, and True if it has images; all rows of a batch share these facts."""
    return row.sampling, row.seen is not None


def _is_rolling(request: Request) -> bool:
    return isinstance(request, LogLikelihood) and request.rolling


def _identity(requests: Sequence[Request]) -> tuple[int, ...]:
    return tuple(map(id, requests))


def _fitting(split: tuple[list[int], int] | AdapterError, window: int | None) -> tuple[list[int], int]:
    if isinstance(split, AdapterError):
        raise split
    tokens, size = split
    if window is not None and size > window:
        raise AdapterError(f"the continuation has {size} tokens, more than the window of {window}")
    return tokens, size


def _too_large(row: Any, reason: str) -> AdapterError:
    sizes = f"{len(row.tokens)} tokens" + (f" and {row.room} to write" if row.room else "")
    return AdapterError(f"one request is too large for the device's memory ({sizes}): {reason}; lower max_tokens")


def _set_threads(wanted: int | None, device: str) -> int:
    """Set torch's number of threads, and return the previous number."""
    import torch

    before = int(torch.get_num_threads())
    number = wanted or (share_threads(before, os.environ) if device == "cpu" else before)
    if number != before:
        torch.set_num_threads(number)
    return before
