"""What is secret, and that nothing of it is left where it is hidden."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.redaction import HIDDEN, Scrubber, is_secret_name, redact, redact_arguments, redact_options
from tests.tables import each_row

SECRET = "sk-CANARY-7f3a9b2c"
SECRET_NAMES = """
    pwd pass cookie session dsn pat private access connection_string headers key api_key apiKey API-Key X-Api-Key token
    accessToken secret client_secret password db_password passwd credentials auth Authorization bearer PASSWORD
    connectionString api_keys signature --api-key
"""
PLAIN_NAMES = """
    max_tokens tokens_per_minute keyboard api_key_env author monkey region model path compass accessible bypass
    passes_per_row session_count header_row prompt_cache_key temperature base_url n
"""


@each_row("name", SECRET_NAMES.split())
def test_a_name_is_secret_by_its_last_word(name: str) -> None:
    assert is_secret_name(name)
    assert {name: HIDDEN} == redact_options({name: SECRET})


@each_row("name", PLAIN_NAMES.split())
def test_a_name_that_only_sounds_like_one_is_not(name: str) -> None:
    assert not is_secret_name(name)
    assert {name: "west"} == redact_options({name: "west"})


@each_row(
    "text",
    [
        f"https://user:{SECRET}@host/v1",
        f"https://{SECRET}@host/v1",
        f"postgresql+psycopg://user:p@{SECRET}@host/db",
        f"https://host/v1?api-version=3&sig={SECRET}&x=1",
        f"https://host/v1?access_token={SECRET}",
        f"Server=host;User=me;Password={SECRET};Port=3",
        f"Server=host; Pwd='{SECRET}'; Port=3",
        f"Authorization: Bearer {SECRET}",
        f'{{"api_key": "{SECRET}", "n": 1}}',
    ],
)
def test_a_text_keeps_no_secret_and_all_else(text: str) -> None:
    hidden = redact(text)

    assert SECRET not in hidden
    assert hidden == redact(hidden)
    assert SECRET not in str(redact_options({"where": [{"inner": text}]}))
    assert SECRET not in "".join(redact_arguments(["pytest", f"--lm-adapter-arg=where={text}", f"--url={text}", text]))
    assert SECRET not in Scrubber.of_options({"where": text}).scrub(f"cannot reach it with {SECRET}")


@each_row("text", ["https://host/v1?x=1", "write the key: value pairs", "a@b.de", "key words", "1=1"])
def test_a_text_without_a_secret_stays(text: str) -> None:
    assert text == redact(text)


def test_switches_are_no_secrets() -> None:
    assert {"private": True, "session": None, "headers": HIDDEN} == redact_options(
        {"private": True, "session": None, "headers": {"Accept": "x"}}
    )


@each_row(
    ("given", "shown"),
    [
        (["--lm-adapter-arg", f"pwd={SECRET}"], ["--lm-adapter-arg", "pwd=***"]),
        ([f"--lm-adapter-arg=cookie={SECRET}"], ["--lm-adapter-arg=cookie=***"]),
        (["--password", SECRET, "-v"], ["--password", "***", "-v"]),
        (["--token", "-v"], ["--token", "-v"]),
        ([f"--dsn={SECRET}"], ["--dsn=***"]),
        (["-k", "token=1 or key"], ["-k", "token=1 or key"]),
        (["--lm-min-score", "access=0.5"], ["--lm-min-score", "access=0.5"]),
        ([f"--lm-adapter-arg=table={{pat = '{SECRET}'}}"], ["--lm-adapter-arg=table=***"]),
        (["tasks/t.jsonl::a"], ["tasks/t.jsonl::a"]),
    ],
)
def test_a_command_line_keeps_no_secret(given: list[str], shown: list[str]) -> None:
    assert shown == redact_arguments(given)


def test_a_known_secret_is_hidden_in_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_VARIABLE", SECRET)
    for options in (
        {"key_env": "MY_OWN_VARIABLE"},
        {"headers": {"X-Own": SECRET, "Accept": "application/json"}},
        {"table": [{"cookie": SECRET}]},
        {"auth": f"Bearer {SECRET}"},
        {"url": f"https://me:{SECRET}@host"},
    ):
        scrubber = Scrubber.of_options(options)
        assert {"a": ("got *** for application/json", 3)} == scrubber.scrub_all(
            {"a": (f"got {SECRET.upper()} for application/json", 3)}
        )
        assert SECRET not in repr(scrubber)


def test_a_known_secret_is_hidden_as_json_and_addresses_write_it() -> None:
    scrubber = Scrubber([secret := 'CANARY/7f3a+"9b2c'])
    written = f"{secret} {json.dumps(secret)} https://host/v1?q={quote(secret, safe='')}&r={quote(secret)}"

    assert '*** "***" https://host/v1?q=***&r=' in scrubber.scrub(written)


def test_a_short_secret_is_a_word_that_a_model_may_write() -> None:
    scrubber = Scrubber(["EMPTY"])

    assert ("***", "EMPTY") == (scrubber.scrub("EMPTY"), scrubber.scrub_answer("EMPTY"))


def test_nothing_known_changes_nothing() -> None:
    assert not Scrubber()
    assert not Scrubber.of_options({"key": "abc", "path": "long enough to be one 123456"})
    assert "text" == Scrubber().scrub("text") == Scrubber().scrub_answer("text")


@given(st.text(min_size=1, max_size=40))
def test_what_was_redacted_once_stays_as_it_is(text: str) -> None:
    assert redact(redact(text)) == redact(text)
