"""A request, and the key with it, goes nowhere but to the server that was named."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from pytest_lmeval.adapters.http.transport import redirected
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.types import Generate

from .asking import PATH, assert_no_key, fails, shown
from .scripted_server import ScriptedServer, redirects, says, status

HTTP = "http://host/v1/chat/completions"
HTTPS = "https://host/v1/chat/completions"


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        (HTTP, "/v2/chat/completions", "http://host/v2/chat/completions"),
        (HTTP, "completions/", "http://host/v1/chat/completions/"),
        (HTTP, "http://host/v2", "http://host/v2"),
        (HTTP, "http://HOST:80/v2", "http://host/v2"),
        (HTTP, "https://host/v2", "https://host/v2"),
        (HTTPS, "//host:443/v2", "https://host/v2"),
        ("http://host:8000/v1", "?again=1", "http://host:8000/v1?again=1"),
    ],
)
def test_the_same_server_is_followed(url: str, location: str, target: str) -> None:
    assert target == str(redirected(URL(url), 307, location))


@pytest.mark.parametrize(
    ("url", "location"),
    [
        (HTTPS, "http://host/v2"),
        (HTTPS, "https://host:8443/v2"),
        (HTTP, "https://host:8443/v2"),
        (HTTP, "http://host.example/v2"),
        (HTTP, "http://sub.host/v2"),
        (HTTP, "//other/v2"),
        (HTTP, "http://me@host/v2"),
        (HTTP, "http://me:word@host/v2"),
        (HTTP, "http://:word@host/v2"),
        ("http://host:8000/v1", "https://host/v1"),
        (HTTP, "javascript:alert(1)"),
    ],
)
def test_any_other_is_not(url: str, location: str) -> None:
    with pytest.raises(ValueError, match="redirect to another host") as caught:
        redirected(URL(url), 308, location)
    assert "word" not in str(caught.value)


@given(st.text(max_size=40) | st.from_regex(r"[a-z]*:?//?[a-z@:.]{0,9}(:[0-9]{1,6})?/[a-z?#]*", fullmatch=True))
def test_no_location_leads_elsewhere(location: str) -> None:
    try:
        target = redirected(URL(HTTPS), 307, location)
    except ValueError:
        return
    assert ("https", "host", 443, None) == (target.scheme, target.host, target.port, target.user)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_no_redirect_takes_the_key_to_another_host(code: int) -> None:
    async def talk() -> tuple[str, int, int]:
        other = ScriptedServer([says("stolen")])
        async with other, ScriptedServer([lambda exchange: step(exchange)]) as server:
            step = redirects(code, f"{other.base_url}/take?key=1")
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            with pytest.raises(AdapterError) as caught:
                await adapter.complete(Generate("2 + 2 ="))
            await adapter.aclose()
            assert not isinstance(caught.value, TransientError)
            assert_no_key(shown(caught.value))
            assert f"redirect to another host, http://127.0.0.1:{other.port}, is not followed" in str(caught.value)
            return str(caught.value)[:8], len(server.requests), other.connections

    assert (f"HTTP {code}", 1, 0) == asyncio.run(talk())


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_on_the_same_host_is_followed_with_the_whole_request(code: int) -> None:
    async def talk() -> None:
        async with ScriptedServer([redirects(code, "/moved"), says("4")]) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            assert "4" == (await adapter.complete(Generate("2 + 2 ="))).text
            await adapter.aclose()
            first, second = server.requests
            assert ("POST", "/moved") == (second.method, second.target)
            assert (first.body, first.headers["authorization"]) == (second.body, second.headers["authorization"])

    asyncio.run(talk())


def test_redirects_in_a_circle_end() -> None:
    fails(AdapterError, [redirects(307, PATH)], "more than 5 redirects", requests=6)


@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("file:///etc/passwd", "another host, file://"),
        ("//elsewhere.invalid/v1", "another host, http://elsewhere.invalid"),
        ("http://[", "redirect to an invalid URL"),
    ],
)
def test_a_redirect_to_nowhere_good_is_final(location: str, what: str) -> None:
    fails(AdapterError, [redirects(307, location)], "HTTP 307", what)


def test_a_redirect_that_drops_the_request_is_final() -> None:
    fails(AdapterError, [redirects(303, "/moved")], "HTTP 303", "drops the request's body")


def test_a_redirect_without_an_address_is_final() -> None:
    fails(AdapterError, [status(307, body="")], "redirect without a Location")
