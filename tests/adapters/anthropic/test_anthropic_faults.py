"""Whatever a server refuses ends in the right error without the key, and what is no option is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pytest_lmeval.adapters.anthropic import AnthropicAdapter, make
from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError, UsageError
from pytest_lmeval.loading import make_adapter
from tests.adapters.openai.asking import KEY, assert_no_key
from tests.adapters.openai.scripted_server import Exchange, redirects, serving

from .asking import ask, refused
from .messages_server import fault, message, speaks, text

FAULTS = {
    400: ("invalid_request_error", AdapterError, ""),
    401: ("authentication_error", AdapterError, "HTTP 401 from /v1/messages"),
    402: ("billing_error", AdapterError, "HTTP 402 from /v1/messages"),
    403: ("permission_error", AdapterError, "HTTP 403 from /v1/messages"),
    404: ("not_found_error", AdapterError, "HTTP 404 from /v1/messages"),
    413: ("request_too_large", AdapterError, ""),
    429: ("rate_limit_error", TransientError, ""),
    500: ("api_error", TransientError, ""),
    504: ("timeout_error", TransientError, ""),
    529: ("overloaded_error", TransientError, ""),
}


@pytest.mark.parametrize("code", FAULTS)
def test_an_error_is_retried_or_final_and_says_what_the_server_said(code: int) -> None:
    kind, expected, cause = FAULTS[code]
    error = refused(fault(code, kind, "what it was"))
    assert expected is type(error)
    assert f"HTTP {code} from /v1/messages" in str(error)
    assert {"type": kind, "message": "what it was"} == error.said
    assert (code, cause) == (error.status, error.cause)


def test_a_prompt_that_is_too_long_is_of_that_request_alone() -> None:
    said = "prompt is too long: 213462 tokens > 200000 maximum"
    assert isinstance(refused(fault(400, "invalid_request_error", said)), RequestRefused)


@pytest.mark.parametrize("how", ["body", "redirect", "message"])
def test_a_server_that_repeats_the_key_does_not_spread_it(how: str) -> None:
    async def step(exchange: Exchange) -> None:
        key = exchange.seen.headers["x-api-key"]
        if how == "redirect":
            await redirects(307, f"http://elsewhere.invalid/{key}")(exchange)
        elif how == "body":
            await fault(401, "authentication_error", f"not {key}")(exchange)
        else:
            await speaks(message({"type": key}))(exchange)

    outcome, _ = ask([step])
    assert outcome.error is not None
    assert_no_key(outcome.text)


# Options


def test_a_key_is_needed_and_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (KEY,) == AnthropicAdapter("m").known_secrets
    assert_no_key(repr(AnthropicAdapter("m")))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(UsageError, match="environment variable ANTHROPIC_API_KEY holds no API key"):
        make("m")
    assert () == make("m", base_url="http://127.0.0.1:1").known_secrets


def test_the_address_is_the_option_or_the_variable_or_anthropics(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "https://api.anthropic.com" == make_adapter("anthropic:m").base_url
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
    assert "http://127.0.0.1:1" == make_adapter("anthropic:m").base_url
    assert "http://127.0.0.1:2" == make_adapter("anthropic:m", options={"base_url": "http://127.0.0.1:2"}).base_url
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "nowhere")
    with pytest.raises(UsageError, match="base_url is the environment variable ANTHROPIC_BASE_URL"):
        make_adapter("anthropic:m")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": 2}, "expected a number from 0 to 1, or 'default'"),
        ({"max_tokens": 0}, "option max_tokens is 0; expected a whole number >= 1"),
        ({"top_k": 1.5}, "option top_k is 1.5"),
        ({"thinking": 100}, "option thinking is 100; expected a whole number >= 1024, or 'adaptive'"),
        ({"thinking": "much"}, "expected a whole number >= 1024, or 'adaptive'"),
        ({"thinking": 2000, "temperature": 0.5}, "options temperature and top_k cannot be combined with thinking"),
        ({"thinking": 2000, "top_k": 5}, "options temperature and top_k cannot be combined with thinking"),
        ({"price_input": 1}, "option price_input and price_output expected both or neither"),
        ({"price_cache_read": 1}, "expected price_input and price_output"),
        ({"extra_body": {"system": "x"}}, "no system in it: use the options with these names"),
        ({"seed": 1}, "unknown option 'seed'"),
        ({"anthropic_api_key": "x"}, "a key is never an option"),
        ({"x_api_key": "x"}, "unknown option 'x_api_key'"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make("m", **options)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", [" ", "a\nb"])
def test_a_model_has_a_name(name: str) -> None:
    with pytest.raises(UsageError, match="anthropic:MODEL"):
        make(name)


def test_it_survives_pickling_and_closes() -> None:
    with serving([speaks(message(text("4")))]) as server:
        adapter = AnthropicAdapter("m", base_url=server.base_url, thinking=2048, price_input=1, price_output=2)
        other = pickle.loads(pickle.dumps(adapter))
    assert (adapter.options, adapter.tells_cost) == (other.options, True)
    assert {"thinking": 2048, "max_tokens": 4096} == {name: other.options[name] for name in ("thinking", "max_tokens")}
