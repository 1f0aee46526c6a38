"""Thoughts and tools of a local model, and the same model behind ``transformers serve``."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import ExampleResult, load_tasks, run_leaderboard
from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.adapters.hf.calls import parse_calls
from pytest_lmeval.adapters.hf.options import read_options
from pytest_lmeval.adapters.hf.prompts import Prompts
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.asking.ask import ask
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, Message, ToolCall
from tests import needs

from .tiny_model import FACTS, TOOL

WEATHER = "How is the weather in Riga?"
BOTH = "How is the weather in Riga and in Rome?"
RIGA, ROME = ({"arguments": {"city": city}, "name": "weather"} for city in ("Riga", "Rome"))
RECORDS: dict[str, Sequence[dict[str, Any]]] = {
    "facts": [
        {"id": "france", "prompt": FACTS[0][0], "targets": ["Paris"], "metric": "exact_match"},
        {"id": "italy", "prompt": FACTS[1][0], "targets": ["A city"], "metric": "exact_match"},
    ],
    "calls": [
        {"id": id, "prompt": prompt, "metric": "tool_calls", "extras": {"tools": [TOOL], "calls": calls}}
        for id, prompt, calls in [("riga", WEATHER, [RIGA]), ("both", BOTH, [RIGA, ROME])]
    ],
    "turns": [
        {
            "id": "riga",
            "turns": [{"user": WEATHER, "targets": ["rain"], "metric": "substring_contains"}],
            "extras": {"tools": [TOOL], "responses": {"weather": "rain"}},
        }
    ],
}


def results(folder: Path, adapter: Any) -> dict[str, ExampleResult]:
    for name, records in RECORDS.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    board = run_leaderboard(load_tasks(folder), adapter, timeout=300)
    return {f"{row.task}:{result.id}": result for row in board.tasks for result in row.per_example}


def check(found: dict[str, ExampleResult]) -> None:
    """Hold the results to what the model was taught."""
    assert {} == {key: one.error for key, one in found.items() if one.error}
    france, italy = found["facts:france"], found["facts:italy"]
    assert (1.0, ("Paris",), ("A city.",)) == (france.score, france.outputs, france.thoughts)
    assert (0.0, ("",), True, True) == (italy.score, italy.outputs, italy.cut_off, italy.unparsed)
    for id, calls in [("riga", [RIGA]), ("both", [RIGA, ROME])]:
        called = found[f"calls:{id}"]
        assert (1.0, {"text": "", "tool_calls": calls}) == (called.score, json.loads(called.outputs[0]))
    turns = found["turns:riga"]
    assert (1.0, 2) == (turns.score, len(turns.exchanges))
    assert ["assistant", "tool", "assistant"] == [said["role"] for said in turns.details["turns"][0]["said"]]


@pytest.mark.slow
def test_a_local_model_thinks_calls_and_is_answered(talking_qwen: Path, tmp_path: Path) -> None:
    adapter = HfAdapter(str(talking_qwen), device="cpu", max_new_tokens=200)
    found = results(tmp_path, adapter)
    adapter.close()
    check(found)
    assert 0 < found["facts:france"].usage["reasoning_tokens"] < found["facts:france"].usage["completion_tokens"]


@pytest.fixture(scope="module")
def served(talking_qwen: Path) -> Iterator[str]:
    """Provide the address of ``transformers serve`` with the model."""
    for name in ("accelerate", "fastapi", "openai", "uvicorn"):
        needs.module(name, "server", "needs transformers serve: pip install -e '.[test-server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(talking_qwen)]
    log = talking_qwen.parent / "serve.log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            [*command, "--device", "cpu", "--port", str(port), "--host", "127.0.0.1"], stdout=file, stderr=file
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(server, address, log)
        yield f"{address}/v1"
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait_until_ready(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    ends = time.monotonic() + 240
    while time.monotonic() < ends:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    pytest.fail(f"the server did not begin: {log.read_text()}")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_real_server_thinks_calls_and_is_answered(
    served: str, talking_qwen: Path, tmp_path: Path, stream: bool
) -> None:
    options = {"base_url": served, "api_key_env": "", "max_tokens": 200, "temperature": 0, "stream": stream}
    check(results(tmp_path, OpenAIAdapter(str(talking_qwen), **options)))


@pytest.mark.slow
def test_a_real_server_without_log_probabilities_gives_none_and_no_wrong_ones(served: str, talking_qwen: Path) -> None:
    options = {"base_url": served, "api_key_env": "", "max_tokens": 8}
    for endpoint in ("chat", "completions"):
        adapter = OpenAIAdapter(str(talking_qwen), logprobs=True, endpoint=endpoint, **options)
        (answer,) = asked(adapter, Generate(FACTS[0][0]))
        assert isinstance(answer, Completion), endpoint
        assert (8, ()) == (answer.completion_tokens, answer.logprobs), endpoint
    (refused,) = asked(OpenAIAdapter(str(talking_qwen), endpoint="completions", **options), LogLikelihood("a", " b"))
    assert isinstance(refused, AdapterError)


def asked(adapter: OpenAIAdapter, request: Any) -> list[Any]:
    engine = Engine(adapter, Policy(retries=0, timeout_s=300))
    try:
        return list(engine.respond(0, lambda key: [request]))
    except AdapterError as error:
        return [error]
    finally:
        engine.close()


# How a conversation is put to a template, and what is read of the answer; without a model


QWEN = (
    "{% if tools %}<tool_call>{% for tool in tools %}{{ tool.function.name }}{% endfor %}{% endif %}"
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function.arguments.city }}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% if think is defined %}<think>\n{% endif %}{% endif %}"
)
LLAMA = QWEN.replace("<tool_call>", '{"parameters"')
PLAIN = "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def tokenizer(libraries: Any) -> Any:
    from .tiny_model import _tokenizer

    return _tokenizer(byte_level=True, vocabulary=400)


def prompts(tokenizer: Any, template: str, **options: Any) -> Prompts:
    tokenizer.chat_template = template
    made = Prompts(tokenizer, read_options(options))
    made.think_tags = ("<think>", "</think>")
    return made


def test_a_template_is_given_tools_and_the_arguments_of_calls_by_name(tokenizer: Any) -> None:
    made = prompts(tokenizer, QWEN)
    call = ToolCall("x", "weather", '{"city": "Riga"}')
    talk = (Message("user", "?"), Message("assistant", "", (call,)), Message("tool", "rain", tool_call_id="x"))
    tokens, opened = made.read(Generate(talk, tools=(TOOL,)))
    assert "<tool_call>weather[user]?[assistant]Riga[tool]rain[assistant]" == made.decode(tokens)
    assert not opened


def test_a_request_that_moves_blanks_moves_those_at_the_end_of_the_template(tokenizer: Any) -> None:
    made = prompts(
        tokenizer, "{% for message in messages %}<|user|>{{ message.content }}{% endfor %}<|assistant|>\n\n\n"
    )
    # Jinja drops the last line break of a template.
    for moves_blanks, scored in ((False, "b"), (True, "\n\nb")):
        request = LogLikelihood("", "b", messages=(Message("user", "a"),), moves_blanks=moves_blanks)
        (found,) = made.split_requests([request])
        assert not isinstance(found, AdapterError)
        tokens, size = found
        assert scored == made.decode(tokens[-size:])


def test_a_text_that_begins_with_the_first_token_gets_no_second_one(tokenizer: Any) -> None:
    made = prompts(tokenizer, PLAIN)
    assert made.plain("a") == made.plain("<s>a")


@pytest.mark.parametrize(
    ("template", "options", "request_of", "problem"),
    [
        (PLAIN, {}, Generate("?", tools=(TOOL,)), "the chat template does not support tools"),
        (QWEN, {"chat": False}, Generate("?", tools=(TOOL,)), "tools need a chat template"),
        (QWEN, {}, Generate("?", tools=(TOOL,), tool_choice="required"), "a chat template accepts only auto"),
        (QWEN.replace("<tool_call>", "call"), {}, Generate("?", tools=(TOOL,)), "set the option tool_parser"),
    ],
)
def test_what_a_template_cannot_do_is_an_error(
    tokenizer: Any, template: str, options: dict[str, Any], request_of: Generate, problem: str
) -> None:
    with pytest.raises(AdapterError, match=problem):
        prompts(tokenizer, template, **options).read(request_of)


@pytest.mark.parametrize(
    ("template", "written", "expected"),
    [
        (QWEN, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', [("f", {"a": 1})]),
        (LLAMA, '{"name": "f", "parameters": {"a": 1}}', [("f", {"a": 1})]),
    ],
)
def test_calls_are_read_as_the_family_of_the_template_writes_them(
    tokenizer: Any, template: str, written: str, expected: Any
) -> None:
    text = f"<think>{written}</think>{written}"
    made = prompts(tokenizer, template)
    thoughts, answer = made.split_thoughts(text, opened=False)
    rest, calls = parse_calls(answer, made.tools_family)
    assert (written, "", expected) == (thoughts, rest, [(call.name, call.values) for call in calls])


def test_a_prompt_that_ends_within_thoughts_is_noticed(tokenizer: Any) -> None:
    made = prompts(tokenizer, QWEN, chat_template_kwargs={"think": True})
    assert made.read(Generate("?"))[1]
    assert ("so", "") == made.split_thoughts("so", opened=True)


def test_tags_that_are_special_tokens_are_not_lost(tokenizer: Any) -> None:
    made = prompts(tokenizer, QWEN)
    made.think_tags = ("<|user|>", "<|system|>")
    tokens = tokenizer("<|user|>a<|system|>b<|end|>", add_special_tokens=False)["input_ids"]
    assert "<|user|>a<|system|>b" == made.decode(tokens)


def test_tags_that_a_batch_adapter_leaves_beside_thoughts_of_its_own_are_taken_off() -> None:
    class Own:
        name = "own"

        def generate_requests(self, requests: list[Generate]) -> list[Completion]:
            return [Completion("<think>again</think>yes", thoughts="hm") for _ in requests]

    (answer,) = ask(Own(), [Generate("?")])
    assert isinstance(answer, Completion)
    assert ("yes", True) == (answer.text, answer.thoughts.startswith("hm"))
