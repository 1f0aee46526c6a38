"""An adapter is made of a model and options; what cannot be used is a usage error that never shows a key."""

from __future__ import annotations

import builtins
import copy
import json
import pickle
import subprocess
import sys
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.adapters.openai.options import OpenAIOptions, read_options
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterDown, UsageError
from pytest_lmeval.types import Generate

from .asking import KEY

LOCAL = "http://127.0.0.1:8000/v1"


def refused(**options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        OpenAIAdapter("m", **{"base_url": LOCAL, **options})
    assert str(caught.value).startswith("adapter 'openai': ")
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_what_an_adapter_says_about_itself() -> None:
    adapter = OpenAIAdapter("vendor/m-1", base_url=LOCAL + "/", stop=["\n"], requests_per_minute=90, system="")
    assert "vendor/m-1" == adapter.name
    assert (90, None) == (adapter.requests_per_minute, adapter.tokens_per_minute)
    assert {"id": "vendor/m-1"} == adapter.manifest
    facts = AdapterFacts.of(adapter)
    assert (False, False) == (facts.exact, facts.trusted)
    expected = {
        "base_url": LOCAL,
        "api_key_env": "OPENAI_API_KEY",
        "endpoint": "chat",
        "system": "",
        "temperature": 0,
        "max_tokens_field": "max_tokens",
        "stop": ["\n"],
        "logprobs": False,
        "stream": False,
        "requests_per_minute": 90,
        "max_response_bytes": 8388608,
        "timeout": 3600,
    }
    assert expected == json.loads(json.dumps(adapter.options))


def test_the_default_server_is_that_of_openai() -> None:
    assert "https://api.openai.com/v1/chat/completions" == OpenAIOptions().url


@pytest.mark.parametrize("name", sorted(set(OpenAIOptions.__dataclass_fields__) - {"given"}))
def test_a_value_is_taken_or_refused_by_name(name: str) -> None:
    prices = {"price_input": 1, "price_output": 1}
    partner = {key: price for key, price in prices.items() if name.startswith("price_") and key != name}
    values: list[Any] = [None, 5, "x", "", [], {}, True, -1, float("nan"), float("inf"), {"a": {1}}]
    refusals = [(value, usage_error({name: value, **partner})) for value in values]
    assert [] == [(value, said) for value, said in refusals if said is not None and f"option {name} is " not in said]


def usage_error(options: dict[str, Any]) -> str | None:
    try:
        read_options(options)
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"base_url": "ftp://host/v1"}, "option base_url is a text of 13 characters; expected an http or https URL"),
        ({"base_url": "127.0.0.1:8000"}, "expected an http or https URL"),
        ({"base_url": "http://"}, "expected an http or https URL"),
        ({"base_url": "http://host:99999/v1"}, "expected an http or https URL"),
        ({"base_url": f"http://me:{KEY}@127.0.0.1/v1"}, "expected an http or https URL without user"),
        ({"base_url": f"http://127.0.0.1/v1?key={KEY}"}, "expected an http or https URL without user, query"),
        ({"base_url": f"http://127.0.0.1/v1#{KEY}"}, "expected an http or https URL without user, query"),
        ({"base_url": "http://127.0.0.1/v1\r\nX: y"}, "expected an http or https URL"),
        *(({"base_url": f"http://{name}/v1"}, "base_url") for name in ("\u00fc..x", "[::1]x", "\u0644a")),
        ({"base_url": f"http://127.0.0.1/{KEY}"}, "the API key itself is in"),
        ({"api_key_env": KEY}, "expected the name of the environment variable that holds the key, not a key"),
        ({"api_key_env": "AKIAIOSFODNN7EXAMPLE"}, "not a key"),
        ({"api_key_env": "hf_abcdefghijklmnopqrst"}, "not a key"),
        ({"api_key_env": "A1B2C3D4E5F6"}, "not a key"),
        ({"api_key": KEY}, "unknown option 'api_key'; a key is never an option"),
        ({"Open_AI_API_Key": KEY}, "unknown option 'Open_AI_API_Key'; a key is never an option"),
        ({KEY: 1}, "unknown option of 27 characters"),
        ({"temprature": 1}, "unknown option 'temprature'; did you mean 'temperature'?"),
        ({"model": "other"}, "unknown option 'model'"),
        ({"endpoint": "embeddings"}, "expected one of chat, completions"),
        ({"temperature": "hot"}, "option temperature is 'hot'; expected a number >= 0, or 'default'"),
        ({"temperature": KEY}, "option temperature is a text of 27 characters"),
        ({"top_p": 0}, "option top_p is 0; expected a number > 0 and <= 1"),
        ({"top_p": 1.5}, "expected a number > 0 and <= 1"),
        ({"max_tokens": 0}, "expected a whole number >= 1"),
        ({"max_tokens": True}, "option max_tokens is True; expected a whole number"),
        ({"stop": [""]}, "option stop is a list; expected a non-empty text or a list of them"),
        ({"seed": 1.5}, "expected a whole number >= 0"),
        ({"logprobs": 5}, "expected true or false"),
        ({"timeout": 0}, "expected a number > 0"),
        ({"system": "Be brief.", "endpoint": "completions"}, "option system cannot be combined"),
        ({"system": f"My key is {KEY}."}, "the API key itself is in"),
        ({"price_input": 1}, "option price_input and price_output expected both or neither"),
        ({"extra_body": "top_k"}, "expected a table"),
        ({"extra_body": {"max_tokens": 5}}, "no max_tokens in it: use the options with these names"),
        ({"extra_body": {"stream": True}}, "no stream in it: use the options with these names"),
        ({"extra_body": {"n": 3}}, "no n in it: a request returns one completion"),
        ({"extra_body": {"a": [{"API-Key": KEY}]}}, "no API-Key in it: name the variable of the key with api_key_env"),
        ({"extra_body": {"user": KEY}}, "the API key itself is in"),
        ({"extra_body": {"a": {1, 2}}}, "expected a table of JSON values"),
        ({"extra_body": {"a": float("nan")}}, "expected a table of JSON values"),
    ],
)
def test_what_cannot_be_used_is_refused_without_showing_a_key(options: dict[str, Any], what: str) -> None:
    assert what in refused(**options)


LONGEST_NAME = "A" * 16 + ("_" + "B" * 15) * 3


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "MY_KEY", "KEY", "VLLM_API_KEY_2", "_KEY", LONGEST_NAME])
def test_names_of_environment_variables_are_taken(name: str) -> None:
    assert name == read_options({"api_key_env": name}).api_key_env


def test_a_name_of_more_than_64_characters_is_taken_for_a_key() -> None:
    assert "not a key" in refused(api_key_env=f"{LONGEST_NAME[:-2]}_BB")


def test_any_name_that_is_set_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("my-odd.key", KEY)
    assert "my-odd.key" == read_options({"api_key_env": "my-odd.key"}).api_key_env


@given(st.text("abcdefABCDEF0123456789-_", min_size=20, max_size=60))
def test_random_text_is_not_shown_as_the_name_of_a_variable(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        OpenAIAdapter("m", base_url=LOCAL, api_key_env="sk-" + value)
    assert value not in str(caught.value)


@pytest.mark.parametrize("base_url", ["https://api.example.com/v1", "http://10.0.0.5:8000/v1", "https://127.0.0.1/v1"])
def test_a_missing_key_is_named_where_one_is_needed(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "environment variable OPENAI_API_KEY holds no API key" in refused(base_url=base_url)
    OpenAIAdapter("m", base_url=base_url, api_key_env="")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "model.localhost", "127.9.9.9"])
def test_a_missing_key_is_fine_on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    OpenAIAdapter("m", base_url=f"http://{host}/v1")


@pytest.mark.parametrize("value", ["sk-CANARY\r\nX-Evil: 1", "sk-CANARY\x07", "sk-CANARY-ü", "sk-CANARY 1"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    message = refused()
    assert "OPENAI_API_KEY" in message
    assert "CANARY" not in message


@pytest.mark.parametrize("model", ["  ", "a\nb"])
def test_a_model_needs_a_name(model: str) -> None:
    with pytest.raises(UsageError, match="needs the name of a model"):
        OpenAIAdapter(model)


def test_the_key_as_the_name_of_the_model_is_refused_unseen() -> None:
    with pytest.raises(UsageError) as caught:
        OpenAIAdapter(KEY)
    assert KEY not in str(caught.value)


def test_neither_key_nor_adapter_show_the_key() -> None:
    adapter = OpenAIAdapter("m", base_url=LOCAL)
    parts = [adapter, *vars(adapter).values(), ApiKey(KEY), ApiKey(KEY).header(), [ApiKey(KEY).header()]]
    assert KEY not in "".join(f"{part!r}" for part in parts)
    assert KEY not in f"{adapter}{ApiKey(KEY)}{adapter.options}{adapter.manifest}"
    assert "OpenAIAdapter('m', base_url='http://127.0.0.1:8000/v1')" == repr(adapter)


def test_a_pickled_adapter_reads_the_key_again() -> None:
    adapter = OpenAIAdapter("m", base_url=LOCAL, temperature="default", stop=["a"], extra_body={"top_k": 5})
    pickled = pickle.dumps(adapter)
    assert KEY.encode() not in pickled
    assert adapter.options == pickle.loads(pickled).options
    assert adapter.options == copy.copy(adapter).options
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(ApiKey(KEY))


@given(st.text("abcXYZ019-_/+=", min_size=4, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_no_message_keeps_a_key(key: str, before: str, after: str) -> None:
    scrubbed = ApiKey(key).scrub(f"{before}{key}{after}")
    assert key not in scrubbed.replace("***", "\n")


@given(st.text("abcXYZ019-_", min_size=4, max_size=40), st.binary(max_size=9), st.integers(0, 99))
def test_what_was_cut_off_keeps_no_beginning_of_a_key(key: str, before: bytes, length: int) -> None:
    scrubbed = ApiKey(key).scrub_bytes(before + key.encode()[:length], cut_off=True)
    assert len(scrubbed) <= max(len(before), len(b"***"))


@pytest.mark.parametrize("escaped", [r"abcdef\/0123456789xyz\u003d", "abcdef%2F0123456789xyz%3D"])
def test_an_escaped_key_is_masked_too(escaped: str) -> None:
    assert "0123456789xyz" not in ApiKey("abcdef/0123456789xyz=").scrub(escaped)


def test_without_aiohttp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "aiohttp", raising=False)
    monkeypatch.setattr("pytest_lmeval.adapters.http.adapter.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install aiohttp"):
        OpenAIAdapter("m", base_url=LOCAL)


def test_an_aiohttp_that_cannot_be_imported_ends_the_run_with_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def with_broken_aiohttp(name: str, *args: Any) -> Any:
        if name.startswith("pytest_lmeval.adapters.http.transport"):
            raise ImportError("libssl is missing")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", with_broken_aiohttp)
    adapter = OpenAIAdapter("m", base_url=LOCAL)
    adapter.cancelled_after_s = 60.0
    engine = Engine(adapter, Policy())
    with pytest.raises(AdapterDown, match=r"cannot be imported \(libssl is missing\): pip install aiohttp"):
        engine.respond("e", lambda key: [Generate("p")])
    assert engine.stopped.startswith("stopped: adapter 'openai' needs aiohttp")
    engine.close()


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_making_an_adapter_imports_neither_aiohttp_nor_asyncio(name: str) -> None:
    # Where a process of its own asks, the one with the items needs neither.
    code = (
        f"import sys, pytest_lmeval; pytest_lmeval.make_adapter('{name}:m', options={{'base_url': '{LOCAL}'}}); "
        "print({'aiohttp', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert "set()" == done.stdout.strip()
