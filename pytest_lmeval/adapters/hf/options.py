"""Check the ``hf`` adapter's options before it imports torch, and choose a device."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from pytest_lmeval.adapters.hf.calls import FAMILIES
from pytest_lmeval.adapters.options import Check, checked, choice, flag, table, text
from pytest_lmeval.adapters.options import fault as adapter_fault
from pytest_lmeval.errors import AdapterError, UsageError, nearest
from pytest_lmeval.numbers import Number


@dataclass(frozen=True, slots=True)
class HfOptions:
    """Options for loading and querying the model.

    If ``temperature`` is 0, the model takes the most probable token. At a higher temperature, the model draws, with
    ``seed``, from the most probable tokens whose combined probability reaches ``top_p``. ``max_new_tokens`` applies to
    requests without ``max_tokens``. ``batch_tokens`` limits the number of tokens in a pass through the model, including
    padding and tokens to generate. The adapter forms batches from up to ``request_window`` requests. ``tool_parser`` is
    the tool-call format; by default, the chat template determines it. ``threads`` is the number of torch's CPU threads,
    by default a worker's share of torch's default.
    """

    device: str = "auto"
    dtype: str = "auto"
    max_new_tokens: int = 256
    temperature: float = 0
    top_p: float = 1
    seed: int = 0
    chat: bool | str = "auto"
    system: str | None = None
    chat_template_kwargs: Mapping[str, object] = field(default_factory=dict)
    logprobs: bool = False
    tool_parser: str = "auto"
    batch_tokens: int = 16384
    request_window: int = 512
    threads: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    def public(self) -> dict[str, object]:
        """Return the options that have a value, as JSON values."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != {}}


def _device(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", value, re.ASCII):
        raise ValueError(f"auto, cpu, cuda or cuda:N{nearest(str(value), ('auto', 'cpu', 'cuda'))}")
    return value


def _chat(value: Any) -> Any:
    if not isinstance(value, bool) and value != "auto":
        raise ValueError("auto, true or false")
    return value


_CHECKS: Mapping[str, Check] = {
    "device": _device,
    "dtype": choice("auto", "bfloat16", "float16", "float32"),
    "max_new_tokens": Number(1, whole=True).check,
    "temperature": Number(0).check,
    "top_p": Number(above=0, high=1).check,
    "seed": Number(0, whole=True).check,
    "chat": _chat,
    "system": text,
    "chat_template_kwargs": table("{enable_thinking = false}"),
    "logprobs": flag,
    "tool_parser": choice("auto", *FAMILIES),
    "batch_tokens": Number(1, whole=True).check,
    "request_window": Number(1, whole=True).check,
    "threads": Number(1, whole=True).check,
    "revision": text,
    "trust_remote_code": flag,
}


def read_options(given: Mapping[str, object]) -> HfOptions:
    """Check the options; raise a UsageError that names an invalid option and the expected value."""
    options = HfOptions(**checked("hf", _CHECKS, given))
    if options.top_p < 1 and options.temperature == 0:
        raise fault("option top_p has no effect at temperature 0; expected a temperature above 0 with it")
    if options.chat is False and (options.system is not None or options.chat_template_kwargs):
        raise fault("options system and chat_template_kwargs cannot be combined with chat=false")
    return options


def sampling_of(given: Mapping[str, Any], taken: Collection[str], options: HfOptions) -> tuple[tuple[str, float], ...]:
    """Return a request's options whose names are in ``taken``; raise AdapterError for an invalid value."""
    own = {name: given[name] for name in taken if given.get(name) is not None} if given else {}
    if not own:
        return ()
    if own.get("temperature", options.temperature) == 0:
        own.pop("top_p", None)
    try:
        read_options({"temperature": options.temperature, **own})
    except UsageError as error:
        raise AdapterError(f"an option of the request: {error}") from None
    return tuple(sorted(own.items()))


fault = partial(adapter_fault, "hf")


def worker_number(environment: Mapping[str, str]) -> int:
    """Return K in the pytest-xdist worker ``gwK``, and 0 in a process that is not a worker."""
    worker = re.fullmatch(r"gw(\d{1,6})", environment.get("PYTEST_XDIST_WORKER", ""), re.ASCII)
    return int(worker[1]) if worker else 0


def share_threads(threads: int, environment: Mapping[str, str]) -> int:
    """Return a worker's share of ``threads``, at least one; without workers, return ``threads``.

    If every process has a thread for every core, the processes wait for one another at every step. On two cores, two
    processes with two threads each took nine times as long as two processes with one thread each.
    """
    workers = re.fullmatch(r"[1-9]\d{0,5}", environment.get("PYTEST_XDIST_WORKER_COUNT", ""), re.ASCII)
    return max(1, threads // int(workers[0])) if workers else threads


def choose_device(wanted: str, gpus: int, worker: int) -> str:
    """Return ``cpu`` or ``cuda:N``; by default, worker K uses the GPU K modulo ``gpus``.

    ``wanted`` is ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Raise UsageError for a GPU that does not exist.

    >>> choose_device("auto", gpus=2, worker=3)
    'cuda:1'
    """
    if wanted == "cpu" or (wanted == "auto" and gpus == 0):
        return "cpu"
    number = wanted.partition(":")[2]
    if gpus == 0 or (number and int(number) >= gpus):
        there = f"cuda:0 to cuda:{gpus - 1}" if gpus > 1 else "cuda:0" if gpus else "no CUDA device at all"
        raise fault(f"option device is {wanted!r}, but torch sees {there}")
    return f"cuda:{int(number) if number else worker % gpus}"
