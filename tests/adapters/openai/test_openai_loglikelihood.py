"""How probable a text is, by a server that repeats the prompt with the log-probability of each token."""

from __future__ import annotations

import asyncio
import codecs
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.http.reply import parse
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.adapters.openai.echo import echo_fields, echoed
from pytest_lmeval.adapters.openai.options import read_options
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.types import LogLikelihood, LogProb
from tests.conftest import Project
from tests.tables import each_row

from .scripted_server import Exchange, ScriptedServer, Step, json_reply, serving, status

ASKED = LogLikelihood("Bees make", " honey")
TOKENS = ("Be", "es", " make", " hon", "ey")
LOGPROBS = (None, -1.0, -2.0, -0.5, -0.25)
BEST = (None, {"es": -1.0}, {" do": -0.1}, {" hon": -0.5, " wax": -2.0}, {"ey": -0.25})


def reply(
    tokens: Sequence[str] = TOKENS,
    logprobs: Sequence[Any] = LOGPROBS,
    best: Sequence[Any] = BEST,
    written: str = "!",
    offsets: bool = True,
) -> dict[str, Any]:
    """Return a reply that repeats ``tokens`` and goes on with one more token, ``written``."""
    places, place = [], 0
    for token in tokens:
        places.append(place)
        place += len(token)
    more = int(bool(written))
    fields: dict[str, Any] = {
        "tokens": [*tokens, *[written] * more],
        "token_logprobs": [*logprobs, *[-3.0] * more],
        "top_logprobs": [*best, *[{"?": -1.0}] * more],
    }
    if offsets:
        fields["text_offset"] = [*places, *[place] * more]
    return {"choices": [{"text": "".join(tokens) + written, "logprobs": fields}], "usage": {"completion_tokens": more}}


def read(document: Any, request: LogLikelihood = ASKED) -> LogProb:
    body = json.dumps(document).encode()
    return echoed(parse(body, "HTTP 200 from /v1/completions", ApiKey("")), request, 2.0)


def refuses(document: Any, request: LogLikelihood = ASKED) -> str:
    with pytest.raises(AdapterError) as caught:
        read(document, request)
    return str(caught.value)


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        del document["choices"][0]["logprobs"][name]
    return document


def with_field(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    document["choices"][0]["logprobs"].update(fields)
    return document


def test_the_continuations_tokens_are_found_in_the_echo() -> None:
    expected = LogProb(-0.75, (-0.5, -0.25), True, 2.0, (" hon", "ey"))
    assert expected == read(reply())
    assert expected == read(reply(offsets=False))
    assert expected == read(reply(written=""))


def test_without_counts_the_text_tells_whether_more_was_written() -> None:
    for written in ("!", ""):
        assert -0.75 == read(reply(written=written) | {"usage": None}).total


def test_a_token_that_is_not_the_likeliest_is_not_greedy() -> None:
    assert not read(reply(best=[*BEST[:3], {" wax": -0.4}, BEST[4]])).greedy
    assert not read(reply(best=[*BEST[:4], {"eys": -0.2}])).greedy


def test_a_token_over_the_border_is_the_continuations() -> None:
    answer = read(reply(["Bees", " make", " honey"], [None, -1.0, -2.0], [None, {"a": -1.0}, {"b": 0.0}]))
    assert (" honey",) == answer.ids
    over = LogLikelihood("Bees make ", "honey")
    assert answer == read(reply(["Bees", " make", " honey"], [None, -1.0, -2.0], [None, {"a": -1.0}, {"b": 0.0}]), over)


def test_a_letter_of_many_tokens_in_the_context_upsets_nothing() -> None:
    request = LogLikelihood("\u00fc is", " honey")
    document = reply(
        ["bytes:\\xc3", "bytes:\\xbc", " is", " honey"], [None, -1, -1, -2], [None, {}, {}, {" honey": -2}]
    )
    document["choices"][0]["text"] = "\u00fc is honey!"
    document["choices"][0]["logprobs"]["top_logprobs"][1:3] = [{"a": -1}, {"a": -1}]
    assert (-2.0, (" honey",)) == (read(document, request).total, read(document, request).ids)


def test_a_letter_of_many_tokens_in_the_continuation_is_found_by_what_comes_before_it() -> None:
    request = LogLikelihood("He ate", " \U0001f642")
    document = with_field(
        reply(["He", " ate", " \ufffd", "\ufffd"], [None, -1, -2, -3], [None, *[{"a": -1}] * 3]),
        text_offset=[0, 2, 6, 7, 8],
    )
    document["choices"][0]["text"] = "He ate \U0001f642!"
    assert (-2.0, -3.0) == read(document, request).tokens
    assert (-2.0, -3.0) == read(without(document, "text_offset"), request).tokens


BEGUN = ("<s>", "He", " said")


@each_row(
    ("context", "continuation", "tokens", "offsets", "own"),
    [
        # What was put before the text is counted, and each part of a letter as one.
        ("He said", " \u7a7a", (*BEGUN, " ", *["\ufffd"] * 3), [0, 3, 5, 10, 11, 12, 13, 14], 4),
        ("He said", " \u7a7a", ("<|begin|>", *BEGUN[1:], " ", *["\ufffd"] * 3), [0, 9, 11, 16, 17, 18, 19, 20], 4),
        ("He said", " \u7a7a", (*BEGUN[1:], " ", *["\ufffd"] * 3), None, 4),
        # Parts in the context, too: by offsets, where they end with the text.
        ("\u7a7a?", " \u7a7a", ("<s>", *["\ufffd"] * 3, "?", " \ufffd", "\ufffd"), [0, 3, 3, 3, 4, 5, 6, 7], 2),
        ("\u7a7a?", " \u7a7a", ("<s>", *["\ufffd"] * 3, "?", " \ufffd", "\ufffd"), [0, 0, 0, 0, 1, 2, 3, 4], 2),
        ("\u7a7a?", " \u7a7a", ("<s>", *["\ufffd"] * 3, "?", " \ufffd", "\ufffd"), [0, 3, 4, 5, 6, 7, 9, 10], None),
        ("\u7a7a?", " \u7a7a", (*["\ufffd"] * 3, "?", " \ufffd", "\ufffd"), None, None),
        # The text of a letter with the last of its parts.
        ("He said", "\u7a7a", (*BEGUN[1:], "", "", "\u7a7a"), None, 3),
        ("He said", "\u7a7a", ("", *BEGUN[1:], "", "", "\u7a7a"), None, 3),
        # Other signs for blanks, and texts that are not those of the prompt.
        ("He said", " so well", ("\u2581He", "\u2581said", "\u2581so", "\u2581well"), None, 2),
        ("He said", " so\n", ("He", "\u0120said", "\u0120so", "\u010a"), None, 2),
        ("He said", " so well", (*BEGUN, "so", "we", "ll"), [0, 3, 5, 10, 12, 14, 16], 3),
        ("He said", " so well", ("<s>", "He", "said", "so", "we", "ll"), [0, 3, 5, 9, 11, 13, 15], None),
        ("", "\u7a7a", ("<s>", *["\ufffd"] * 3), [0, 3, 4, 5, 6], 3),
    ],
)
def test_the_border_is_found_or_the_reply_is_refused(
    context: str, continuation: str, tokens: Sequence[str], offsets: Sequence[int] | None, own: int | None
) -> None:
    logprobs = [None, *range(-1, -len(tokens), -1)]
    document = reply(tokens, logprobs, [None, *[{"a": -9}] * (len(tokens) - 1)])
    document["choices"][0]["text"] = f"{context}{continuation}!"
    document = with_field(document, text_offset=offsets) if offsets else without(document, "text_offset")
    request = LogLikelihood(context, continuation)
    if own is None:
        assert "use another server, or hf:MODEL" in refuses(document, request)
    else:
        assert tuple(logprobs[-own:]) == read(document, request).tokens


@pytest.mark.parametrize("usage", [None, {"completion_tokens": 0}, {"completion_tokens": 1}])
def test_an_end_of_the_text_that_the_model_wrote_is_not_the_continuation_s(usage: Any) -> None:
    document = reply(written="")
    for name, value in (("tokens", ""), ("token_logprobs", -7.0), ("top_logprobs", {"": -7.0}), ("text_offset", 15)):
        document["choices"][0]["logprobs"][name].append(value)
    assert (-0.5, -0.25) == read(document | {"usage": usage}).tokens


# Letters of one to four bytes, and a character that servers write in the place of a part of one.
LETTERS = st.text(st.sampled_from("ab \u7a7a\u00fc\U0001f642\ufffd<"), max_size=6)


@given(
    LETTERS,
    LETTERS.filter(bool),
    st.lists(st.booleans(), min_size=60, max_size=60),
    st.sampled_from(["parts", "held", "escaped"]),
    st.sampled_from(["none", "of the texts", "of the text"]),
    st.sampled_from(["", "<s>", "nameless"]),
    st.sampled_from(["!", "", "nothing"]),
    st.booleans(),
)
def test_no_token_of_the_context_is_ever_counted(
    context: str, continuation: str, cuts: list[bool], texts: str, offsets: str, begin: str, written: str, counts: bool
) -> None:
    data, border = (context + continuation).encode(), len(context.encode())
    ends = [number for number in range(1, len(data)) if cuts[number] or number == border] + [len(data)]
    pieces = [data[first:last] for first, last in pairwise([0, *ends])]
    decoder = codecs.getincrementaldecoder("utf-8")()
    write: dict[str, Callable[[bytes], str]] = {
        "parts": lambda piece: piece.decode("utf-8", "replace"),
        "held": decoder.decode,
        "escaped": lambda piece: piece.decode("utf-8", "backslashreplace"),
    }
    shown = [write[texts](piece) for piece in pieces]
    places = [
        0,
        *accumulate(
            map(
                len,
                shown
                if offsets == "of the texts"
                else [
                    data[:last].decode("utf-8", "ignore")[len(data[:first].decode("utf-8", "ignore")) :]
                    for first, last in pairwise([0, *ends])
                ],
            )
        ),
    ]
    if begin:
        name = begin if begin == "<s>" else ""
        shown, places = [name, *shown], [0, *(place + len(name) for place in places)]
    own = len([end for end in ends if end > border])
    logprobs = [None, *(-float(number) for number in range(1, len(shown)))]
    document = reply(shown, logprobs, [None, *[{"a": -0.5}] * (len(shown) - 1)], "", offsets=False)
    fields = document["choices"][0]["logprobs"]
    if written != "nothing":
        for field, value in (("tokens", written), ("token_logprobs", -99.0), ("top_logprobs", {"a": -0.5})):
            fields[field].append(value)
    if offsets != "none":
        fields["text_offset"] = places[: len(fields["tokens"])]
    document["choices"][0]["text"] = context + continuation + written.removesuffix("nothing")
    document["usage"] = {"completion_tokens": int(written != "nothing")} if counts else None
    try:
        answer = read(document, LogLikelihood(context, continuation))
    except AdapterError:
        return
    assert tuple(logprobs[-own:]) == answer.tokens


@each_row(
    ("document", "named"),
    [
        ({"choices": [{"text": " honey", "logprobs": None}]}, "was not repeated"),
        ({"choices": [{"text": None}]}, "was not repeated"),
        ({"choices": []}, "no choices"),
        (reply() | {"error": {"message": "no echo here"}}, "error object"),
        ({"choices": [{"text": "Bees make honey!", "logprobs": None}]}, "no logprobs of the prompt"),
        (without(reply(), "top_logprobs"), "no logprobs of the prompt"),
        (without(reply(), "token_logprobs"), "no logprobs of the prompt"),
        (with_field(reply(), tokens=["Bees"]), "no logprobs of the prompt"),
        (with_field(reply(), tokens=[1, 2, 3, 4, 5, 6]), "a token without text"),
        (reply(logprobs=[None, -1.0, -2.0, "many", -1.0]), "a token without text"),
        (reply(best=[None, {}, *BEST[2:]]), "a token without text"),
        (reply(best=[None, None, *BEST[2:]]), "a token without text"),
        (reply(logprobs=[None, -1.0, -2.0, None, -1.0]), "no log-probability of the continuation's first token"),
    ],
)
def test_a_reply_without_an_answer_is_an_error_that_says_why(document: Any, named: str) -> None:
    assert named in refuses(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=9,
)
FIELDS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_comes_it_is_an_answer_or_an_error(fields: Mapping[str, Any]) -> None:
    try:
        answer = read(with_field(reply(), **fields))
    except AdapterError:
        return
    assert answer.tokens
    assert len(answer.tokens) == len(answer.ids)


def test_the_body_asks_for_the_prompt_again() -> None:
    options = read_options({"endpoint": "completions", "extra_body": {"add_special_tokens": True}, "stop": ["x"]})
    expected = {"model": "m", "prompt": "Bees make honey", "max_tokens": 1, "temperature": 0, "echo": True}
    assert expected | {"logprobs": 1, "add_special_tokens": True} == (echo_fields("m", options, ASKED))


# The adapter


def ask(
    script: Sequence[Step], requests: int = 1, asked: LogLikelihood = ASKED, **options: Any
) -> tuple[list[LogProb], ScriptedServer]:
    async def talk() -> tuple[list[LogProb], ScriptedServer]:
        async with ScriptedServer(script) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url, timeout=60, endpoint="completions", **options)
            try:
                return await adapter.loglikelihood([asked] * requests), server
            finally:
                await adapter.aclose()

    return asyncio.run(talk())


def test_it_asks_the_completions_endpoint_and_notes_the_model() -> None:
    answers, server = ask([json_reply(reply() | {"model": "m-2"})], requests=2)
    assert [-0.75, -0.75] == [answer.total for answer in answers]
    assert ["/v1/completions"] * 2 == [seen.target for seen in server.requests]
    assert all(answer.latency_ms is not None and answer.latency_ms > 0 for answer in answers)


def test_a_whole_text_follows_what_the_model_begins_with() -> None:
    text = LogLikelihood("", "Bees make honey", rolling=True)
    begun = reply(("<s>", *TOKENS), (None, -4.0, *LOGPROBS[1:]), (None, {"Be": -4.0}, *BEST[1:]))
    (answer,), server = ask([json_reply(begun)], asked=text, begin="<s>")
    assert (-7.75, TOKENS) == (answer.total, answer.ids)
    assert "<s>Bees make honey" == json.loads(server.requests[0].body)["prompt"]
    with pytest.raises(AdapterError, match="first token; name the model's first token: --lm-adapter-arg=begin="):
        ask([json_reply(reply())], asked=text)


@pytest.mark.parametrize(("code", "kind"), [(503, TransientError), (400, AdapterError)])
def test_a_servers_fault_is_raised(code: int, kind: type[AdapterError]) -> None:
    with pytest.raises(AdapterError) as caught:
        ask([status(code)])
    assert kind is type(caught.value)


def test_a_chat_has_no_log_likelihoods() -> None:
    chat, plain = (OpenAIAdapter("m", base_url="http://127.0.0.1:9", endpoint=kind) for kind in ("chat", "completions"))
    assert not hasattr(chat, "loglikelihood")
    assert hasattr(pickle.loads(pickle.dumps(plain)), "loglikelihood")


async def _by_bytes(exchange: Exchange) -> None:
    """Repeat a prompt, a token for each byte, as a server that counts what it puts before the text."""
    text = exchange.seen.json["prompt"]
    shown = ["<s>", *(bytes([byte]).decode("ascii", "replace") for byte in text.encode()), "!"]
    logprobs = [None, *[-9.0] * len("Sea:"), *(-2.0 if token.isascii() else -1.0 for token in shown[5:])]
    table = {"tokens": shown, "token_logprobs": logprobs, "top_logprobs": [{"a": -0.5}] * len(shown)}
    table["text_offset"] = [0, *accumulate(map(len, shown[:-1]))]
    choice = {"text": f"{text}!", "logprobs": table}
    await exchange.reply(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": 1}}).encode())


def test_a_choice_in_japanese_does_not_pay_for_the_question(project: Project) -> None:
    entry = {"label": "sea", "dataset_uri": "sea.jsonl", "num_fewshot": 0, "icl_task_type": "multiple_choice"}
    project.write("tasks/core.yaml", json.dumps({"icl_tasks": [entry]}))
    project.write("tasks/eval_data/sea.jsonl", json.dumps({"query": "Sea:", "choices": ["\u6d77", "salt"], "gold": 0}))
    project.write("tasks/eval_meta_data.csv", "Eval Task,Random baseline\nsea,50\n")
    with serving([_by_bytes]) as server:
        options = [f"--lm-adapter-arg=base_url={server.base_url}", "--lm-adapter-arg=endpoint=completions"]
        ran = project.run_pytest(
            "tasks/core.yaml", "--lm-adapter=openai:m", *options, "--lm-adapter-arg=api_key_env=''"
        )
    assert 0 == ran.ret, ran.stdout.str()
