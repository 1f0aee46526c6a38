"""The tiny models, built once per process; whatever asks for one is skipped where the libraries are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter
from tests import needs

from . import tiny_model

NEEDED = "needs torch and transformers: pip install 'pytest-lmeval[hf]'"


@pytest.fixture(scope="session")
def libraries() -> Iterator[Any]:
    """Provide torch, on one thread: several processes with two each would wait for one another."""
    torch = needs.module("torch", "torch", NEEDED)
    transformers = needs.module("transformers", "torch", NEEDED)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    yield torch
    transformers.utils.logging.enable_progress_bar()
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def chat_llama(libraries: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the folder of a Llama with BOS and a chat template."""
    return tiny_model.build_chat_llama(tmp_path_factory.mktemp("hf") / "chat-llama")


@pytest.fixture(scope="session")
def plain_gpt2(libraries: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the folder of a GPT-2 with neither."""
    return tiny_model.build_plain_gpt2(tmp_path_factory.mktemp("hf") / "plain-gpt2")


@pytest.fixture(scope="session")
def talking_qwen(libraries: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the folder of a Qwen2 that thinks and calls a tool."""
    return tiny_model.build_talking_qwen(tmp_path_factory.mktemp("hf") / "talking-qwen")


@pytest.fixture(scope="session")
def seeing_llava(libraries: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the folder of a LLaVA that sees a cat, a dog and the sky."""
    needs.module("PIL", "torch", NEEDED)
    return tiny_model.build_seeing_llava(tmp_path_factory.mktemp("hf") / "seeing-llava")


@pytest.fixture(scope="session")
def llama(chat_llama: Path) -> Iterator[HfAdapter]:
    """Provide the Llama, answering greedily."""
    adapter = HfAdapter(str(chat_llama), device="cpu")
    yield adapter
    adapter.close()


@pytest.fixture(scope="session")
def gpt2(plain_gpt2: Path) -> Iterator[HfAdapter]:
    """Provide the GPT-2, answering greedily."""
    adapter = HfAdapter(str(plain_gpt2), device="cpu")
    yield adapter
    adapter.close()
