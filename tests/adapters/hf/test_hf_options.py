"""What the adapter can be told, and what it says to what it cannot use; none of it needs the libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.hf.adapter import HfAdapter
from pytest_lmeval.adapters.hf.batches import BatchLimits, batches
from pytest_lmeval.adapters.hf.options import HfOptions, choose_device, read_options, share_threads, worker_number
from pytest_lmeval.adapters.hf.prompts import shared_length
from pytest_lmeval.adapters.hf.rows import Prompted, RowFamily, rows_of
from pytest_lmeval.errors import UsageError


@pytest.mark.parametrize(
    ("given_options", "said"),
    [
        ({"dtyp": "auto"}, "unknown option 'dtyp'; did you mean 'dtype'? (choices: batch_tokens, chat, "),
        (
            {"dtype": "bfloat61"},
            "option dtype is 'bfloat61'; expected one of auto, bfloat16, float16, float32; did you",
        ),
        ({"device": "gpu"}, "option device is 'gpu'; expected auto, cpu, cuda or cuda:N; did you mean 'cpu'?"),
        ({"device": "cuda:"}, "expected auto, cpu, cuda or cuda:N"),
        ({"device": 0}, "option device is 0; expected"),
        ({"max_new_tokens": 0}, "option max_new_tokens is 0; expected a whole number >= 1"),
        ({"max_new_tokens": True}, "option max_new_tokens is True; expected a whole number >= 1"),
        ({"temperature": -1}, "option temperature is -1; expected a number >= 0"),
        ({"temperature": float("nan")}, "option temperature is nan; expected a number >= 0"),
        ({"temperature": 1, "top_p": 0}, "option top_p is 0; expected a number > 0 and <= 1"),
        ({"temperature": 1, "top_p": 1.1}, "option top_p is 1.1; expected a number > 0 and <= 1"),
        ({"top_p": 0.9}, "option top_p has no effect at temperature 0"),
        ({"seed": -1}, "option seed is -1; expected a whole number >= 0"),
        ({"seed": 2**63}, "expected a whole number >= 0"),
        ({"chat": "yes"}, "option chat is 'yes'; expected auto, true or false"),
        ({"system": 5}, "option system is 5; expected text"),
        (
            {"chat": False, "system": "Be brief."},
            "options system and chat_template_kwargs cannot be combined with chat=false",
        ),
        ({"chat_template_kwargs": "x"}, "expected a table such as {enable_thinking = false}"),
        ({"chat": False, "chat_template_kwargs": {"a": 1}}, "cannot be combined with chat=false"),
        ({"logprobs": 1}, "option logprobs is 1; expected true or false"),
        ({"batch_tokens": 0}, "option batch_tokens is 0; expected a whole number >= 1"),
        ({"request_window": 0}, "option request_window is 0; expected a whole number >= 1"),
        ({"threads": 0}, "option threads is 0; expected a whole number >= 1"),
        ({"revision": 1234567}, "option revision is 1234567; expected text"),
        ({"trust_remote_code": "true"}, "option trust_remote_code is 'true'; expected true or false"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_what_was_expected(given_options: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        HfAdapter("a-name-nobody-looks-up", **given_options)
    assert str(caught.value).startswith("adapter 'hf': ")
    assert said in str(caught.value)


@pytest.mark.parametrize("source", ["", "  "])
def test_an_adapter_without_a_model_is_refused(source: str) -> None:
    with pytest.raises(UsageError, match="needs a model folder or name"):
        HfAdapter(source)


def test_without_options_it_is_greedy_and_picks_the_rest_itself() -> None:
    options = read_options({})
    assert (0, 256, "auto", "auto", "auto") == (
        options.temperature,
        options.max_new_tokens,
        options.chat,
        options.device,
        options.dtype,
    )
    assert not options.trust_remote_code


def test_public_options_are_json_and_leave_out_what_is_not_set() -> None:
    public = HfOptions(temperature=0.5, chat_template_kwargs={"enable_thinking": False}).public()
    assert public == json.loads(json.dumps(public))
    assert {"enable_thinking": False} == public["chat_template_kwargs"]
    assert set() == public.keys() & {"system", "threads", "revision"}


@pytest.mark.parametrize(
    ("wanted", "gpus", "worker", "device"),
    [
        ("auto", 0, 3, "cpu"),
        ("cpu", 4, 3, "cpu"),
        ("auto", 1, 3, "cuda:0"),
        ("auto", 4, 0, "cuda:0"),
        ("auto", 4, 3, "cuda:3"),
        ("auto", 4, 6, "cuda:2"),
        ("cuda", 2, 3, "cuda:1"),
        ("cuda:0", 2, 3, "cuda:0"),
        ("cuda:1", 2, 0, "cuda:1"),
    ],
)
def test_worker_k_computes_on_gpu_k_modulo_their_number(wanted: str, gpus: int, worker: int, device: str) -> None:
    assert device == choose_device(wanted, gpus, worker)


@pytest.mark.parametrize(
    ("wanted", "gpus", "said"),
    [
        ("cuda", 0, "'cuda', but torch sees no CUDA device at all"),
        ("cuda:0", 0, "'cuda:0', but torch sees no CUDA device at all"),
        ("cuda:1", 1, "'cuda:1', but torch sees cuda:0"),
        ("cuda:4", 4, "'cuda:4', but torch sees cuda:0 to cuda:3"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(wanted: str, gpus: int, said: str) -> None:
    with pytest.raises(UsageError, match="option device is") as caught:
        choose_device(wanted, gpus, 0)
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize(("worker", "number"), [("gw0", 0), ("gw13", 13), ("", 0), ("master", 0), ("gw1x", 0)])
def test_the_worker_is_read_off_the_environment(worker: str, number: int) -> None:
    assert number == worker_number({"PYTEST_XDIST_WORKER": worker})
    assert 0 == worker_number({})


@pytest.mark.parametrize(
    ("threads", "workers", "share"), [(8, "2", 4), (8, "3", 2), (2, "5", 1), (8, "1", 8), (8, "0", 8), (8, "", 8)]
)
def test_workers_share_the_processor(threads: int, workers: str, share: int) -> None:
    assert share == share_threads(threads, {"PYTEST_XDIST_WORKER_COUNT": workers})
    assert threads == share_threads(threads, {})


def test_importing_the_adapter_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'tokenizers', 'numpy', 'huggingface_hub'}"
    code = f"import sys, pytest_lmeval.adapters.hf as hf; hf.HfAdapter; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "set()\n" == done.stdout


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 20)), max_size=20),
    st.integers(1, 400),
    st.none() | st.just(45),
)
def test_batches_hold_every_row_once_within_the_limits_and_are_padded_by_half_at_most(
    sizes: list[tuple[int, int]], most: int, window: int | None
) -> None:
    rows = [Prompted([number] * length, room, number=number) for number, (length, room) in enumerate(sizes)]
    limits = BatchLimits(most, 10, window)
    parts = [rows_of(batch) for batch in batches([RowFamily([row]) for row in rows], limits)]
    assert rows == sorted((row for part in parts for row in part), key=lambda row: row.number)
    for part in parts:
        longest, room = max(len(row.tokens) for row in part), max(row.room for row in part)
        padded = len(part) * (longest + room)
        assert len(part) == 1 or padded <= min(most, 2 * sum(len(row.tokens) + row.room for row in part))
        assert len(part) == 1 or window is None or longest + room <= window
    lengths = [len(row.tokens) + row.room for part in parts for row in part]
    assert lengths == sorted(lengths, reverse=True)


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_shared_length_is_that_of_the_longest_common_beginning(first: list[int], second: list[int]) -> None:
    length = shared_length(first, second)
    assert first[:length] == second[:length]
    assert first[: length + 1] != second[: length + 1] or length == len(first) == len(second)
