"""From a folder or a name to a model, and what is said of those that will not do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter, adapter
from pytest_lmeval.adapters.hf.loading import hash_files, weight_files
from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import Generate, LogLikelihood

from .tiny_model import FACTS


@pytest.fixture
def copy(chat_llama: Path, tmp_path: Path) -> Path:
    return shutil.copytree(chat_llama, tmp_path / "copy")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Provide the list of attempts to reach anything by network; each attempt fails."""
    attempts: list[Any] = []

    def refuse(*args: Any, **_: Any) -> None:
        attempts.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return attempts


def refusal(source: Path | str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        HfAdapter(str(source), **options)
    message = str(caught.value)
    assert message.startswith("adapter 'hf': ")
    assert "\n" not in message
    return message.removeprefix("adapter 'hf': ")


# What is there


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_without_a_library_the_install_command_is_named(
    library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, library, None)
    message = refusal(tmp_path)
    assert message.startswith("needs torch and transformers, which cannot be imported")
    assert message.endswith("pip install 'pytest-lmeval[hf]'")


@pytest.mark.parametrize("source", ["./nowhere", "/no/where", "~/no-where-at-all", "no/where/at/all", "nowhere/"])
def test_a_folder_that_is_not_there_is_named(source: str) -> None:
    assert f"there is no folder {source}" == refusal(source)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.touch()
    assert refusal(file).startswith(f"{file} is a file; expected the folder that holds config.json")


def test_a_folder_without_config_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(f"{tmp_path} holds no config.json; expected a model saved by")
    (tmp_path / "adapter_config.json").touch()
    assert refusal(tmp_path).endswith("merge the adapter into its base model first")


def test_a_folder_has_no_revision(chat_llama: Path) -> None:
    expected = f"option revision is 'main', but {chat_llama} is a folder: only hub names have revisions"
    assert expected == refusal(chat_llama, revision="main")


def test_a_config_that_cannot_be_read_is_named(copy: Path) -> None:
    (copy / "config.json").write_text("{")
    assert refusal(copy).startswith(f"{copy} cannot be loaded: ")


@pytest.mark.parametrize(
    ("model_type", "architectures", "kind"),
    [
        ("t5", ["T5ForConditionalGeneration"], "T5ForConditionalGeneration"),
        ("t5", None, "an encoder-decoder (t5)"),
        ("pix2struct", ["Pix2StructForConditionalGeneration"], "Pix2StructForConditionalGeneration"),
        ("bert", ["BertForMaskedLM"], "BertForMaskedLM"),
        ("llama", ["LlamaForSequenceClassification"], "LlamaForSequenceClassification"),
        ("llama", ["LlamaModel"], "LlamaModel"),
    ],
)
@pytest.mark.usefixtures("libraries")
def test_what_is_no_causal_model_is_named(tmp_path: Path, model_type: str, architectures: Any, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "architectures": architectures}))
    expected = f"{tmp_path} is not a causal language model but {kind}; expected one such as LlamaForCausalLM"
    assert expected == refusal(tmp_path)


def test_a_folder_without_weights_is_named(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    assert refusal(copy).startswith(f"{copy} holds no weights; expected model.safetensors")


def test_damaged_weights_are_named(copy: Path) -> None:
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert refusal(copy).startswith(f"{copy} cannot be loaded: ")


def test_missing_weights_are_not_made_up(copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    expected = f"{copy} lacks 1 of the model's weights (lm_head.weight); its answers would be random"
    assert expected == refusal(copy)


def test_a_folder_without_tokenizer_is_named(copy: Path) -> None:
    for file in copy.glob("tokenizer*"):
        file.unlink()
    assert refusal(copy).startswith(f"{copy} cannot be loaded: ")


def test_code_of_a_folder_is_not_run_unless_asked_for(copy: Path, tmp_path: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "made_up", "auto_map": {"AutoConfig": "made_up.Config"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "made_up.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert refusal(copy).startswith(f"{copy} cannot be loaded: ")
    assert not (tmp_path / "ran").exists()


def test_a_gpu_is_refused_where_there_is_none(
    libraries: Any, chat_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries.cuda, "device_count", lambda: 0)
    assert "option device is 'cuda', but torch sees no CUDA device at all" == refusal(chat_llama, device="cuda")


# What is loaded


def test_a_folder_is_loaded_and_answers_without_any_network(chat_llama: Path, offline: list[Any]) -> None:
    model = HfAdapter(str(chat_llama))
    (completion,) = model.generate_requests([Generate(FACTS[0][0])])
    assert "Paris" == getattr(completion, "text", completion)
    assert [] == offline


def test_it_is_called_like_its_folder(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy.parent)
    assert ["copy", "copy", "copy"] == [HfAdapter(source).name for source in ("copy", "./copy/", str(copy))]
    monkeypatch.chdir(copy)
    assert "copy" == HfAdapter(".").name


@pytest.mark.parametrize(("dtype", "loaded"), [("auto", "bfloat16"), ("float32", "float32"), ("float16", "float16")])
def test_the_dtype_is_the_folders_own_or_the_one_asked_for(
    libraries: Any, chat_llama: Path, tmp_path: Path, dtype: str, loaded: str
) -> None:
    import transformers

    folder = shutil.copytree(chat_llama, tmp_path / "half")
    transformers.AutoModelForCausalLM.from_pretrained(chat_llama, dtype=libraries.bfloat16).save_pretrained(folder)
    model = HfAdapter(str(folder), dtype=dtype)
    assert f"torch.{loaded}" == str(next(model._open().model.parameters()).dtype)
    (completion,) = model.generate_requests([Generate(FACTS[0][0])])
    assert "Paris" == getattr(completion, "text", completion)


def test_what_the_tokenizer_ends_a_text_with_ends_it_whatever_the_config_says(copy: Path) -> None:
    (copy / "generation_config.json").unlink()
    settings = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps(settings | {"eos_token": "<|end|>"}))
    model = HfAdapter(str(copy))
    assert {"</s>", "<|end|>"} == set(model._open().tokenizer.convert_ids_to_tokens(list(model._open().ends)))
    (completion,) = model.generate_requests([Generate(FACTS[0][0])])
    assert "Paris" == getattr(completion, "text", completion)


STATE = """
import os, sys, torch, transformers, warnings
from concurrent.futures import ThreadPoolExecutor
from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.types import Completion, Generate, LogLikelihood
log = transformers.utils.logging
def state():
    shown = log.get_verbosity(), log.is_progress_bar_enabled(), [kept[0] for kept in warnings.filters]
    return *shown, dict(os.environ), torch.get_num_threads()
before = state()
model = HfAdapter(sys.argv[1], threads=1)
assert torch.get_num_threads() == 1
asked = [Generate("Hi", max_tokens=5), Generate("Which animal barks?", max_tokens=9, stop=("x",))]
with ThreadPoolExecutor() as pool:
    assert 1 == pool.submit(torch.get_num_threads).result()
    assert all(isinstance(answer, Completion) for answer in pool.submit(model.generate_requests, asked).result())
assert model.loglikelihood([LogLikelihood("a", "b" * 500)])
model.close()
assert before == state(), (before, state())
"""


@pytest.mark.slow
def test_loading_and_asking_print_nothing_and_leave_the_library_as_it_was(chat_llama: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STATE, str(chat_llama)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_worker_takes_its_share_of_the_threads_until_it_is_closed(
    libraries: Any, chat_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    before = libraries.get_num_threads()
    libraries.set_num_threads(4)
    try:
        model = HfAdapter(str(chat_llama), device="cpu")
        assert 2 == libraries.get_num_threads()
        model.close()
        assert 4 == libraries.get_num_threads()
    finally:
        libraries.set_num_threads(before)


def test_a_closed_adapter_says_so(chat_llama: Path) -> None:
    model = HfAdapter(str(chat_llama))
    model.close()
    model.close()
    with pytest.raises(AdapterError, match="adapter chat-llama is closed"):
        model.generate_requests([Generate("a")])
    with pytest.raises(AdapterError, match="adapter chat-llama is closed"):
        model.loglikelihood([LogLikelihood("a", "b")])


# What it is


def test_the_manifest_names_the_model_and_the_digest_of_its_weights(chat_llama: Path) -> None:
    digest = hashlib.sha256((chat_llama / "model.safetensors").read_bytes()).hexdigest()
    assert {"id": "chat-llama", "revision": None, "sha256": digest} == HfAdapter(str(chat_llama)).manifest


def test_the_weights_are_hashed_when_asked_for_and_once(chat_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[list[Path]] = []

    def hash_them(files: list[Path]) -> str:
        hashed.append(files)
        return "0"

    monkeypatch.setattr(adapter, "hash_files", hash_them)
    model = HfAdapter(str(chat_llama))
    assert [] == hashed
    assert model.manifest is model.manifest
    assert [[chat_llama / "model.safetensors"]] == hashed


def test_other_weights_have_another_digest(copy: Path) -> None:
    before = HfAdapter(str(copy)).manifest["sha256"]
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert before != HfAdapter(str(copy)).manifest["sha256"]


def test_the_digest_is_over_all_parts_in_the_order_of_their_names(chat_llama: Path, tmp_path: Path) -> None:
    import transformers

    folder = shutil.copytree(chat_llama, tmp_path / "parts")
    (folder / "model.safetensors").unlink()
    transformers.AutoModelForCausalLM.from_pretrained(chat_llama).save_pretrained(folder, max_shard_size="100KB")
    parts = sorted(folder.glob("model-*.safetensors"))
    assert len(parts) > 2
    whole = b"".join(part.read_bytes() for part in parts)
    assert hashlib.sha256(whole).hexdigest() == HfAdapter(str(folder)).manifest["sha256"]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (
            ["pytorch_model-2-of-2.bin", "pytorch_model-1-of-2.bin"],
            ["pytorch_model-1-of-2.bin", "pytorch_model-2-of-2.bin"],
        ),
        (["model.safetensors", "consolidated.safetensors", "training_args.bin"], ["model.safetensors"]),
        (["tokenizer.json"], []),
    ],
)
def test_only_the_files_that_are_loaded_are_weights(tmp_path: Path, names: list[str], chosen: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert chosen == [file.name for file in weight_files(tmp_path)]


@pytest.mark.parametrize("sizes", [[], [0], [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]])
def test_files_of_any_size_are_hashed_whole(tmp_path: Path, sizes: list[int]) -> None:
    contents = [bytes([number]) * size for number, size in enumerate(sizes)]
    files = [tmp_path / str(number) for number in range(len(sizes))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    assert hashlib.sha256(b"".join(contents)).hexdigest() == hash_files(files)


HUB = """
import json, sys
from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.errors import UsageError
from pytest_lmeval.types import Generate
model = HfAdapter("someone/tiny")
print(json.dumps([model.name, model.manifest, model.generate_requests([Generate(sys.argv[1])])[0].text]))
try:
    HfAdapter("someone/unknown")
except UsageError as error:
    print(error)
"""


def test_a_name_is_taken_from_the_hubs_cache_with_its_commit(chat_llama: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(chat_llama, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HUB, FACTS[0][0]],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert 0 == done.returncode, done.stderr
    first, refused = done.stdout.splitlines()
    digest = hashlib.sha256((chat_llama / "model.safetensors").read_bytes()).hexdigest()
    assert ["someone/tiny", {"id": "someone/tiny", "revision": commit, "sha256": digest}, "Paris"] == json.loads(first)
    assert refused.startswith(
        "adapter 'hf': there is no folder someone/unknown, and the Hugging Face hub's model of that name"
    )
