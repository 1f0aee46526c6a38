"""Images, audio and files in requests of applications' own clients, in the shapes of three interfaces."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from typing import Any

import pytest

from pytest_lmeval.functions.asker import messages_of
from pytest_lmeval.functions.clients import chat_request, messages_request, responses_request
from pytest_lmeval.types import Media, Message
from tests.adapters.anthropic.messages_server import message, text
from tests.adapters.openai.scripted_server import json_reply, serving
from tests.conftest import Project
from tests.needs import installed
from tests.pictures import CAT, DOG, PDF, WAV, media_in, sees
from tests.tables import each_row

CAT64, PDF64 = b64encode(CAT).decode(), b64encode(PDF).decode()
HTTP = "https://pictures.example/cat.png"
SEEN: dict[bytes | str, str] = {CAT: "cat", DOG: "dog", PDF: "42", WAV: "hello", HTTP: "far"}
APP = f"""
import openai
from pytest_lmeval import eval_task

CLIENT = openai.OpenAI(api_key="unused", max_retries=0)
CAT, PDF, WAV, HTTP = {CAT64!r}, {PDF64!r}, {b64encode(WAV).decode()!r}, {HTTP!r}

def chat(lm, *parts):
    messages = [{{"role": "user", "content": [{{"type": "text", "text": "q"}}, *parts]}}]
    return lm.client(CLIENT).chat.completions.create(model="m", messages=messages).choices[0].message.content

@eval_task("chat")
def test_chat(lm):
    for url, said in (("data:image/jpeg;base64," + CAT, "cat"), (HTTP, "far")):
        assert said == chat(lm, {{"type": "image_url", "image_url": {{"url": url, "detail": "low"}}}})
    assert "hello" == chat(lm, {{"type": "input_audio", "input_audio": {{"data": WAV, "format": "wav"}}}})
    file = {{"filename": "a.pdf", "file_data": "data:application/pdf;base64," + PDF}}
    assert "42" == chat(lm, {{"type": "file", "file": file}})

@eval_task("responses")
def test_responses(lm):
    image = {{"type": "input_image", "image_url": "data:image/png;base64," + CAT, "detail": "auto"}}
    file = {{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64," + PDF}}
    asked = [{{"role": "user", "content": [{{"type": "input_text", "text": "q"}}, image, file]}}]
    assert "cat 42" == lm.client(CLIENT).responses.create(model="m", input=asked).output_text
"""


def test_a_client_sends_media_in_chat_completions_and_responses(project: Project) -> None:
    installed("openai")
    project.write("test_app.py", APP)
    with serving([sees(SEEN)]) as served:
        given = (f"--lm-adapter-arg=base_url={served.base_url}", "--lm-cache=cache")
        for number in range(2):
            result = project.run("test_app.py", "--lm-adapter=openai:m", *given)
            assert 0 == result.ret, result.stdout.str()
            result.stdout.fnmatch_lines(["*1 request of clients had addresses of media, which m read: no hash covers*"])
            assert 5 == len(served.requests), f"run {number}: later runs take the answers out of the cache"
    sent = [one for seen in served.requests for one in media_in(seen.json)]
    assert Counter([CAT, HTTP, WAV, PDF, CAT, PDF]) == Counter(sent)
    assert 2 == sum(b'"low"' in seen.body for seen in served.requests)
    ledger = project.ledger()
    inputs = [step["input"][0]["content"][1] for step in ledger["chat:test_chat"]["details"]["steps"]]
    assert [("image", "image/png"), ("image", None), ("audio", "audio/wav"), ("file", "application/pdf")] == [
        (next(iter(each)), each.get("type")) for each in inputs
    ]
    assert ["data:image/jpeg", HTTP, "audio", "a.pdf"] == [next(iter(each.values())) for each in inputs]
    project.edit("test_app.py", '"cat 42"', '"changed"')
    again = project.run("test_app.py", "--lm-adapter=replay:reports/ledger.jsonl", "-k", "test_chat")
    assert 0 == again.ret, "a replay finds the answers by the bytes"
    project.write("test_app.py", APP.replace(CAT64, b64encode(DOG).decode()))
    again = project.run("test_app.py", "--lm-adapter=replay:reports/ledger.jsonl", "-k", "test_chat")
    again.stdout.fnmatch_lines(["*holds no * for *test_chat*"])


ANTHROPIC = f"""
import http.client
import json

from pytest_lmeval import eval_task

def reply_of(lm, *blocks):
    host, _, base = lm.base_url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": list(blocks)}}]}}
    connection.request("POST", f"/{{base}}/messages", json.dumps(body))
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found["content"][0]["text"]

@eval_task("messages")
def test_messages(lm):
    cat = {{"type": "base64", "media_type": "image/png", "data": {CAT64!r}}}
    pdf = {{"type": "base64", "media_type": "application/pdf", "data": {PDF64!r}}}
    plain = {{"type": "text", "media_type": "text/plain", "data": "words"}}
    blocks = [{{"type": "image", "source": cat}}, {{"type": "text", "text": "q"}}]
    blocks.append({{"type": "document", "source": pdf}})
    more = [{{"type": "document", "source": plain, "title": "notes"}}]
    far = [{{"type": "image", "source": {{"type": "url", "url": {HTTP!r}}}}}]
    assert "seen" == reply_of(lm, *blocks, *more, *far)
"""


def test_a_client_sends_media_in_the_messages_interface(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    project.write("test_app.py", ANTHROPIC)
    with serving([json_reply(message(text("seen")))]) as served:
        given = f"--lm-adapter-arg=base_url={served.base_url}"
        result = project.run("test_app.py", "--lm-adapter=anthropic:m", given)
        assert 0 == result.ret, result.stdout.str()
        ((turn,),) = (seen.json["messages"] for seen in served.requests)
    kinds = [(block["type"], block.get("source", {}).get("type")) for block in turn["content"]]
    expected = [("image", "base64"), ("text", None), ("document", "base64"), ("document", "text"), ("image", "url")]
    assert expected == kinds
    assert CAT64 == turn["content"][0]["source"]["data"]
    assert "words" == turn["content"][3]["source"]["data"]
    result.stdout.fnmatch_lines(["*dropped between clients and m: document.title (1)*"])


def test_an_anthropic_model_gets_pictures_of_records(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    project.write("tasks/cat.png", CAT)
    record = {"prompt": ["What?", {"image": "cat.png"}], "targets": ["cat"], "metric": "exact_match"}
    project.task("tasks/t.jsonl", record)
    project.write("tasks/a.wav", WAV)
    project.task("tasks/u.jsonl", {**record, "prompt": ["What?", {"audio": "a.wav"}]})
    with serving([json_reply(message(text("cat")))]) as served:
        given = f"--lm-adapter-arg=base_url={served.base_url}"
        result = project.run("tasks", "--lm-adapter=anthropic:m", given)
    assert "passed" == project.ledger()["t:ex-1"]["status"]
    result.stdout.fnmatch_lines(["*task 'u': adapter m accepts no audio; it accepts file, image: examples ex-1*"])
    ((turn,),) = (seen.json["messages"] for seen in served.requests)
    source = {"type": "base64", "media_type": "image/png", "data": CAT64}
    assert [{"type": "text", "text": "What?"}, {"type": "image", "source": source}] == turn["content"]


def _chat(part: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": [part]}]}).encode()


def _block(block: Any) -> bytes:
    return json.dumps({"max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}).encode()


def _input(part: Any) -> bytes:
    return json.dumps({"input": [{"role": "user", "content": [part]}]}).encode()


NOT_STORED = "expected its data or an address: a file that a server stores (file_id) is not supported"


@each_row(
    ("body", "fault"),
    [
        (
            _chat({"type": "image_url", "image_url": {"url": "cat.png"}}),
            "[0]: expected a data: or http address, got 'c",
        ),
        (_chat({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}), "[0]: expected a data: or http"),
        (
            _chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,*"}}),
            "[0]: data:image/png;base64: not",
        ),
        (_chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}), "[0]: data:image/png: empty"),
        (
            _chat({"type": "image_url", "image_url": {"url": HTTP, "detail": 5}}),
            "[0]: detail 5: expected one of low, high, auto, for an image",
        ),
        (_chat({"type": "file", "file": {"file_id": "file-1"}}), f"[0]: {NOT_STORED}"),
        (_chat({"type": "input_audio", "input_audio": "x"}), f"[0]: {NOT_STORED}"),
        (_chat({"type": "video_url", "video_url": {"url": HTTP}}), ": expected text content"),
    ],
)
def test_bad_media_of_a_client_is_refused_with_its_place(body: bytes, fault: str) -> None:
    with pytest.raises(ValueError) as found:  # the text is compared below
        chat_request.read_request(body)
    assert str(found.value).startswith(f"messages[0].content{fault}")


def test_the_other_interfaces_refuse_files_that_servers_store() -> None:
    with pytest.raises(ValueError, match=r"^input\[0\].content\[0\]: expected its data or an address"):
        responses_request.read_request(_input({"type": "input_file", "file_id": "file-1"}), {})
    block = {"type": "image", "source": {"type": "file", "file_id": "file-1"}}
    with pytest.raises(ValueError, match=r"^messages\[0\].content\[0\]: expected its data or an address"):
        messages_request.read_request(_block(block))


def test_results_of_tools_may_have_pictures() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": CAT64}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [text("seen:"), {"type": "image", "source": source}],
    }
    (found,) = messages_request.read_request(_block(result)).messages
    assert ("tool", "t1", ["seen:", "image"]) == (
        found.role,
        found.tool_call_id,
        [part if isinstance(part, str) else part.kind for part in found.parts],
    )
    output = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": HTTP}]}
    (found,) = responses_request.read_request(json.dumps({"input": [output]}).encode(), {}).messages
    assert ("tool", "c1", HTTP) == (found.role, found.tool_call_id, found.media[0].source)


def test_the_result_of_a_tool_in_parts_keeps_its_call() -> None:
    given = {"role": "tool", "tool_call_id": "c1", "content": ["seen:", Media("image", "", "", 0, HTTP)], "more": 1}
    found = messages_of([given])[0]
    assert isinstance(found, Message)
    assert ("c1", HTTP) == (found.tool_call_id, found.media[0].source)
    assert found.extra


def test_an_adapter_without_pictures_answers_400(project: Project) -> None:
    installed("openai")
    project.write("test_app.py", APP)
    result = project.run("test_app.py", "-k", "test_chat")
    result.stdout.fnmatch_lines(["*BadRequestError: *400*accepts no image*"])
    assert "error" == project.ledger()["chat:test_chat"]["status"]
