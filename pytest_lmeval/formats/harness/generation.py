"""How a task has its texts written: where they end, how long they get, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import is_number

# Names of the same limit; the first that is given counts.
_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_OF_DRAWING = frozenset({"top_p", "top_k", "min_p", "typical_p"})
_DEFAULT_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Generation:
    """Stop texts, the most tokens, and the options of each request; a greedy answer has none."""

    stop: tuple[str, ...]
    limit: int
    options: Mapping[str, Any]


def generation_of(config: Config) -> Generation:
    """Return what ``generation_kwargs`` mean; raise RecordRefused for a value that cannot be."""
    given = dict(config.get("generation_kwargs", {}))
    until = given.pop("until", None)
    stop = [config.fewshot_delimiter] if until is None else until if isinstance(until, list) else [until]
    if not all(isinstance(each, str) for each in stop):
        raise _refused(config, "until", "texts", until)
    limits = [each for each in (given.pop(name, None) for name in _LIMITS) if each is not None]
    limit = limits[0] if limits else _DEFAULT_LIMIT
    if not is_number(limit) or limit < 1:
        raise _refused(config, "max_gen_toks", "a number from 1", limit)
    temperature = given.pop("temperature", 0.0)
    if not is_number(temperature) or temperature < 0:
        raise _refused(config, "temperature", "a number from 0", temperature)
    if given.pop("do_sample", None) is False or not temperature:
        # What else there is may change a greedy answer, too: beams, penalties.
        options = {name: value for name, value in given.items() if name not in _OF_DRAWING}
    else:
        options = {"temperature": float(temperature), **given}
    if options.get("num_beams") == 1:
        del options["num_beams"]
    return Generation(tuple(stop), int(limit), options)


def _refused(config: Config, key: str, expected: str, given: Any) -> RecordRefused:
    return RecordRefused(
        "bad_value", f"generation_kwargs.{key}", f"{config.name}: expected {expected}, got {given!r:.80}"
    )
