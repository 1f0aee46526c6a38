"""Let the model write: one left-padded batch at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.adapters.hf.batches import padded
from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.options import HfOptions
from pytest_lmeval.adapters.hf.prompts import Prompts
from pytest_lmeval.types import Completion


@dataclass(frozen=True, slots=True)
class Prompted:
    """A prompt of ``tokens`` with room for ``room`` more; ``seed`` seeds what is drawn for it, and for it alone.

    ``opened`` says that it ends within thoughts, ``tools`` that the model may call some.
    """

    tokens: list[int]
    room: int
    stop: tuple[str, ...] = ()
    seed: str = ""
    opened: bool = False
    tools: bool = False


def together(batch: Sequence[Prompted], batch_tokens: int, window: int | None) -> bool:
    """Tell whether the prompts can be one batch of at most ``batch_tokens``."""
    width = max(len(asked.tokens) for asked in batch) + max(asked.room for asked in batch)
    # A row that is done is carried along until the last one is: none may be carried out of the window.
    return width * len(batch) <= batch_tokens and (window is None or width <= window)


def write(loaded: Loaded, prompts: Prompts, options: HfOptions, batch: Sequence[Prompted]) -> list[Completion]:
    """Return one completion per prompt, in order.

    A text ends before a token that ends texts, before the first of its stop strings, or when its room is used up.
    """
    tokens, mask = padded([asked.tokens for asked in batch], loaded.pad, loaded.device, left=True)
    width = tokens.shape[1]
    ends = _Ends(batch, width, prompts)
    choice = _Choice(batch, options)
    out = loaded.model.generate(
        input_ids=tokens,
        attention_mask=mask,
        max_new_tokens=max(asked.room for asked in batch),
        do_sample=False,
        logits_processor=[choice] if options.temperature or options.logprobs else [],
        stopping_criteria=[ends],
    )
    rows = zip(batch, out[:, width:].tolist(), ends.lengths, choice.by_row(), strict=True)
    return [
        _completion(asked, written[:length], logprobs, loaded.ends, prompts)
        for asked, written, length, logprobs in rows
    ]


def _completion(
    asked: Prompted, written: list[int], logprobs: list[float], ends: tuple[int, ...], prompts: Prompts
) -> Completion:
    end = next((place for place, token in enumerate(written) if token in ends), None)
    count = len(written) if end is None else end + 1
    text = prompts.text_after(asked.tokens, written[:end])
    cut = _first_stop(text, asked.stop)
    thoughts, answer, calls = prompts.taken_apart(text[:cut], opened=asked.opened, tools=asked.tools)
    return Completion(
        answer,
        finish_reason="length" if end is None and cut is None else "stop",
        prompt_tokens=len(asked.tokens),
        completion_tokens=count,
        logprobs=() if thoughts else tuple(logprobs[:count]),
        thoughts=thoughts,
        reasoning_tokens=min(count, prompts.count(thoughts)) if thoughts else None,
        tool_calls=calls,
    )


def _first_stop(text: str, stops: Sequence[str]) -> int | None:
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


class _Ends:
    """Says, step by step, which rows have used up their room or written a stop string; their length is then final."""

    def __init__(self, batch: Sequence[Prompted], width: int, prompts: Prompts) -> None:
        self.lengths = [asked.room for asked in batch]
        self._batch = batch
        self._width = width
        self._prompts = prompts
        # A token is at least one byte of a text: the last so many tokens hold any stop string that has just ended.
        longest = max((len(stop.encode()) for asked in batch for stop in asked.stop), default=0)
        self._tail = longest + 4 if longest else 0

    def __call__(self, tokens: Any, scores: Any, **_: Any) -> Any:
        """Return whether each row is done; ``tokens`` are prompts and what is written so far."""
        import torch

        step = tokens.shape[1] - self._width
        if self._tail:
            begin = max(self._width, tokens.shape[1] - self._tail)
            for row, tail in enumerate(tokens[:, begin:].tolist()):
                if step < self.lengths[row] and self._is_stopped(self._batch[row], tail, begin == self._width):
                    self.lengths[row] = step
        return torch.tensor([step >= length for length in self.lengths], device=tokens.device)

    def _is_stopped(self, asked: Prompted, tail: list[int], is_all: bool) -> bool:
        if not asked.stop:
            return False
        text = self._prompts.text_after(asked.tokens, tail) if is_all else self._prompts.decode(tail)
        return _first_stop(text, asked.stop) is not None


class _Choice:
    """Draws each row's next token by the row's own seed, so that a batch's other rows do not matter, and keeps notes.

    It leaves only the token that it chose possible; the greedy search of the library then takes it.
    """

    def __init__(self, batch: Sequence[Prompted], options: HfOptions) -> None:
        self._options = options
        self._draws = [random.Random(asked.seed) for asked in batch]
        self._logprobs: list[Any] = []

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """Return the scores of the next token, of shape (rows, vocabulary)."""
        import torch

        if not self._options.temperature:
            self._note(scores, scores.argmax(-1, keepdim=True))
            return scores
        uniform = torch.tensor([[seed.random()] for seed in self._draws]).to(scores.device)
        chosen = draw(scores, self._options.temperature, self._options.top_p, uniform)
        self._note(scores, chosen)
        return torch.full_like(scores, -torch.inf).scatter_(-1, chosen, 0)

    def by_row(self) -> list[list[float]]:
        """Return the log-probability of every token chosen, row by row; empty rows where none were wanted."""
        steps = [step.tolist() for step in self._logprobs]
        return [[step[row] for step in steps] for row in range(len(self._draws))]

    def _note(self, scores: Any, chosen: Any) -> None:
        if self._options.logprobs:
            self._logprobs.append(scores.float().log_softmax(-1).gather(-1, chosen).squeeze(-1))


def draw(scores: Any, temperature: float, top_p: float, uniform: Any) -> Any:
    """Return one token per row, of shape (rows, 1), where ``uniform``, of that shape and in [0, 1), falls.

    Tokens are laid out by falling probability; only the shortest run of them with a mass of ``top_p`` can be drawn.
    """
    import torch

    sizes, order = (scores.float() / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    upto = sizes.cumsum(-1)
    kept = (upto - sizes < top_p).sum(-1, keepdim=True)
    mass = upto.gather(-1, kept - 1)
    place = torch.searchsorted(upto, uniform * mass, right=True)
    return order.gather(-1, place.minimum(kept - 1))
