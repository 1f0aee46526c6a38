"""Generate text for all rows of a batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pytest_lmeval.adapters.hf.calls import parse_calls
from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.options import HfOptions
from pytest_lmeval.adapters.hf.passes import Reader, ReadRows, padded
from pytest_lmeval.adapters.hf.prompts import Prompts
from pytest_lmeval.adapters.hf.rows import Batch, Prompted, rows_of
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.stops import first_stop
from pytest_lmeval.types import Completion


def write(
    loaded: Loaded,
    reader: Reader | None,
    prompts: Prompts,
    options: HfOptions,
    batch: Batch[Prompted],
    is_closed: Callable[[], bool],
) -> dict[int, Completion]:
    """Return a completion for each prompt, by request number.

    A text ends before an end token, before its first stop string, or at its maximum number of tokens. Without a
    ``reader``, the transformers library generates the text. The library supports every model's cache, but continues to
    compute finished rows. Raise AdapterError once ``is_closed()`` is true.
    """
    rows = [_Text(prompt, prompts, loaded.ends) for prompt in rows_of(batch)]
    choice = _Choice(rows, options, is_closed)
    if reader is None:
        _write_by_library(loaded, choice, options)
    else:
        _write(loaded, choice, reader.read(loaded, batch, keep_past=True), reader.past)
    return {row.prompt.number: row.completion() for row in rows}


def _write(loaded: Loaded, choice: _Choice, read: ReadRows, name: str) -> None:
    """Generate until every row is done; drop finished rows once they make up half of the batch.

    ``name`` is the model's name for the argument with past keys and values.
    """
    import torch

    logits, past, mask = read
    while True:
        tokens = choice.next(logits[:, -1])
        left = [place for place, row in enumerate(choice.rows) if not row.is_done]
        if not left:
            return
        if 2 * len(left) <= len(choice.rows):
            choice.rows = [choice.rows[place] for place in left]
            places = torch.tensor(left, device=tokens.device)
            past.batch_select_indices(places)
            tokens, mask = tokens[places], mask[places]
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=-1)
        logits = loaded.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=mask.sum(-1, keepdim=True) - 1,
            use_cache=True,
            **{name: past},
        ).logits


def _write_by_library(loaded: Loaded, choice: _Choice, options: HfOptions) -> None:
    prompts = [row.prompt for row in choice.rows]
    if prompts[0].seen is not None:
        from pytest_lmeval.adapters.hf.images import batch_of

        inputs = batch_of(loaded.processor, prompts, loaded.device)
    else:
        tokens, mask = padded([prompt.tokens for prompt in prompts], loaded.pad, loaded.device)
        inputs = {"input_ids": tokens, "attention_mask": mask}
    loaded.model.generate(
        **inputs,
        max_new_tokens=max(prompt.room for prompt in prompts),
        do_sample=False,
        logits_processor=[choice.of_library] if options.temperature or options.logprobs else [],
        stopping_criteria=[choice.are_done],
    )


class _Text:
    """The tokens that the model wrote after one prompt."""

    def __init__(self, prompt: Prompted, prompts: Prompts, ends: tuple[int, ...]) -> None:
        self.prompt = prompt
        self.draws = random.Random(prompt.seed)
        self.is_done = False
        self._prompts = prompts
        self._ends = ends
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        # A token has at least one byte, so this many tokens contain any stop string that has just ended.
        self._tail = max((len(stop.encode()) for stop in prompt.stop), default=-4) + 4

    def add(self, token: int) -> None:
        """Append the next token unless the text is complete."""
        if not self.is_done:
            self._tokens.append(token)
            self.is_done = token in self._ends or len(self._tokens) == self.prompt.room or self._is_stopped()

    def add_logprob(self, logprob: float) -> None:
        """Append the log-probability of the next token unless the text is complete."""
        if not self.is_done:
            self._logprobs.append(logprob)

    def completion(self) -> Completion:
        """Convert the tokens into a completion."""
        prompt, prompts, count = self.prompt, self._prompts, len(self._tokens)
        ended = bool(self._tokens) and self._tokens[-1] in self._ends
        text = prompts.text_after(prompt.tokens, self._tokens[: count - ended])
        thoughts, answer = prompts.split_thoughts(text, opened=prompt.opened)
        cut = first_stop(answer, prompt.stop)
        answer, calls = parse_calls(answer[:cut], prompts.tools_family) if prompt.tools else (answer[:cut], ())
        return Completion(
            answer,
            finish_reason="stop" if ended or cut is not None else "length",
            prompt_tokens=len(prompt.tokens),
            completion_tokens=count,
            logprobs=() if thoughts else tuple(self._logprobs),
            thoughts=thoughts,
            reasoning_tokens=min(count, prompts.count(thoughts)) if thoughts else None,
            tool_calls=calls,
        )

    def _is_stopped(self) -> bool:
        if not self.prompt.stop:
            return False
        tail = self._tokens[-self._tail :]
        is_all = len(tail) == len(self._tokens)
        text = self._prompts.text_after(self.prompt.tokens, tail) if is_all else self._prompts.decode(tail)
        if first_stop(text, self.prompt.stop) is None:
            return False
        # Thoughts may contain stop texts.
        text = text if is_all else self._prompts.text_after(self.prompt.tokens, self._tokens)
        _, answer = self._prompts.split_thoughts(text, opened=self.prompt.opened)
        return first_stop(answer, self.prompt.stop) is not None


class _Choice:
    """Chooses the next token of each row; each row has its own random numbers, independent of other rows."""

    def __init__(self, rows: Sequence[_Text], options: HfOptions, is_closed: Callable[[], bool]) -> None:
        self.rows = rows
        self._options = options
        self._is_closed = is_closed

    def next(self, scores: Any) -> Any:
        """Choose the next token of each row and append it; return the tokens, of shape (rows, 1)."""
        chosen = self._chosen(scores)
        self._add(chosen.squeeze(-1).tolist())
        return chosen

    def of_library(self, tokens: Any, scores: Any) -> Any:
        """Exclude every token except the chosen tokens, so that the library's greedy search takes the chosen tokens."""
        import torch

        return torch.full_like(scores, -torch.inf).scatter_(-1, self._chosen(scores), 0)

    def are_done(self, tokens: Any, scores: Any, **_: Any) -> Any:
        """Append to the rows the tokens that the library took; return True for each complete row."""
        import torch

        self._add(tokens[:, -1].tolist())
        return torch.tensor([row.is_done for row in self.rows], device=tokens.device)

    def _add(self, tokens: Sequence[int]) -> None:
        if self._is_closed():
            raise AdapterError("the adapter was closed during generation")
        for row, token in zip(self.rows, tokens, strict=True):
            row.add(token)

    def _chosen(self, scores: Any) -> Any:
        import torch

        options = self._options
        if options.temperature:
            uniform = torch.tensor([[row.draws.random()] for row in self.rows]).to(scores.device)
            chosen = draw(scores, options.temperature, options.top_p, uniform)
        else:
            chosen = scores.argmax(-1, keepdim=True)
        if options.logprobs:
            each = scores.float().log_softmax(-1).gather(-1, chosen).squeeze(-1)
            for row, logprob in zip(self.rows, each.tolist(), strict=True):
                row.add_logprob(logprob)
        return chosen


def draw(scores: Any, temperature: float, top_p: float, uniform: Any) -> Any:
    """Draw one token per row with the random numbers in ``uniform``; return the tokens, of shape (rows, 1).

    ``uniform`` also has the shape (rows, 1), and contains numbers in [0, 1). The function draws only from the most
    probable tokens whose combined probability reaches ``top_p``.
    """
    import torch

    sizes, order = (scores.float() / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    upto = sizes.cumsum(-1)
    kept = (upto - sizes < top_p).sum(-1, keepdim=True)
    mass = upto.gather(-1, kept - 1)
    place = torch.searchsorted(upto, uniform * mass, right=True)
    return order.gather(-1, place.minimum(kept - 1))
