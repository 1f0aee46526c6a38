"""A task's stop texts end answers, not thoughts, whatever the server or the adapter does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, chat, json_reply, serving
from tests.conftest import BOTH, Project
from tests.yaml_tasks import harness_yaml

KEYS = """
doc_to_text: "{{said}}"
doc_to_target: "{{right}}"
generation_kwargs: {until: STOPS}
metric_list: [{metric: exact_match}]
"""
FOUR = 4


class Server:
    """Answers with the text after ``say: ``, of which it keeps what is before the first stop text, as servers do."""

    def __init__(self, *, field: bool = False, most: int = 99) -> None:
        self.field, self.most = field, most

    async def __call__(self, exchange: Exchange) -> None:
        asked = exchange.seen.json
        stops = asked.get("stop", [])
        if len(stops) > self.most:
            await json_reply({"error": {"message": "array too long", "param": "stop"}}, 400)(exchange)
            return
        text = asked["messages"][-1]["content"].removeprefix("say: ")
        ends = [text.find(stop) for stop in stops if stop in text]
        text = text[: min(ends)] if ends else text
        usage = {"prompt_tokens": 10, "completion_tokens": 1}
        thoughts, tag, answer = text.partition("</think>")
        if self.field and text.startswith("<think>"):
            message = {"reasoning_content": thoughts.removeprefix("<think>")}
            await json_reply({**chat(answer if tag else None, **message), "usage": usage})(exchange)
        else:
            await json_reply({**chat(text), "usage": usage})(exchange)


def write_task(project: Project, stops: list[str], *rows: tuple[str, str]) -> None:
    project.write("given/t.yaml", harness_yaml("t", KEYS.replace("STOPS", json.dumps(stops))))
    docs = [json.dumps({"said": f"say: {said}", "right": right}) + "\n" for said, right in rows]
    project.write("given/docs.jsonl", "".join(docs))
    project.write("tasks/t.yaml", "harness: {from: ../given, tasks: [t]}\n")


def ask(project: Project, server: ScriptedServer, *options: str) -> dict[str, Any]:
    url = f"--lm-adapter-arg=base_url={server.base_url}"
    result = project.run_pytest("tasks", "--lm-adapter=openai:m", url, "--lm-gate=none", *options)
    assert 0 == result.ret, result.stdout.str()
    (row,) = project.board()["tasks"]
    found: dict[str, Any] = row
    return found


THOUGHT = ("<think>one\n\ntwo</think>\n\nfour\n\nfive", "four")


@pytest.mark.parametrize("processes", BOTH)
@pytest.mark.parametrize("field", [False, True], ids=["tags", "field"])
def test_thoughts_may_contain_stop_texts(project: Project, processes: str, field: bool) -> None:
    write_task(project, ["\n\n"], *[THOUGHT] * 3)
    with serving([Server(field=field)]) as server:
        row = ask(project, server, processes, "--lm-concurrency=1")
        sent = [request.json.get("stop") for request in server.requests]
    assert (1.0, 3, 0) == (row["score"], row["correct"], row.get("cut_off", 0))
    assert ["one\n\ntwo"] == project.ledger()["t:0"]["thoughts"]
    # From the first answer on that a stop text ended in the thoughts, none is sent. Each worker finds out alone.
    assert sent.count(None) == 3
    assert sent.count(["\n\n"]) == (1 if processes == "-n0" else len(sent) - 3)
    assert 10 * len(sent) == sum(each["usage"]["prompt_tokens"] for each in project.ledger().values())


def test_a_model_that_does_not_think_gets_the_stop_texts(project: Project) -> None:
    write_task(project, ["\n\n"], ("four\n\nfive", "four"), ("six", "six"))
    with serving([Server()]) as server:
        assert 1.0 == ask(project, server)["score"]
        assert [["\n\n"]] * 2 == [request.json.get("stop") for request in server.requests]


def test_of_more_than_four_stop_texts_four_are_sent_and_the_answer_ends_at_any(project: Project) -> None:
    stops = ["</s>", "<|im_end|>", "\n\n", "Q:", "Question:", "##", "<end>"]
    write_task(
        project, stops, ("red##blue", "red"), ("green\n\ngrey", "green"), ("<think>a##b</think>white<end>", "white")
    )
    with serving([Server(most=FOUR)]) as server:
        assert 1.0 == ask(project, server)["score"]
        assert {tuple(stops[:4])} == {tuple(request.json["stop"]) for request in server.requests}
        server.requests.clear()
        assert 1.0 == ask(project, server, '--lm-adapter-arg=stop=["END"]')["score"]
        assert {(*stops[:3], "END")} == {tuple(request.json["stop"]) for request in server.requests}


STOPPING = """
class Model:
    name = "own"

    def generate_requests(self, requests):
        from pytest_lmeval import Completion

        texts = [each.text.removeprefix("say: ") for each in requests]
        with open("asked.txt", "a") as file:
            print(len(texts), file=file)
        return [Completion(min([text.split(stop)[0] for stop in one.stop] or [text], key=len))
                for one, text in zip(requests, texts)]
"""


def test_an_adapter_of_one_s_own_may_stop_in_thoughts_or_nowhere(project: Project) -> None:
    write_task(project, ["\n\n"], THOUGHT, ("six\n\nseven", "six"))
    project.write("own.py", STOPPING)
    assert 0 == project.run_pytest("tasks", "--lm-adapter=own:Model", "--lm-gate=examples").ret
    assert ["2", "1"] == (project.path / "asked.txt").read_text().split()
    # The project's usual model ignores stop texts.
    assert 0 == project.run("--lm-gate=examples").ret


def test_an_application_s_own_stop_texts_reach_the_server_as_they_are(project: Project, tmp_path: Path) -> None:
    project.write(
        "tests/test_app.py",
        """
        import json, urllib.request
        from pytest_lmeval import eval_task

        @eval_task("app")
        def test_app(lm):
            body = {"model": "m", "messages": [{"role": "user", "content": "say: <think>a b</think>c"}],
                    "stop": ["1", "2", "3", "4", " "]}
            headers = {"Content-Type": "application/json"}
            url = lm.base_url + "/chat/completions"
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
                answer = json.load(reply)
            assert not answer["choices"][0]["message"]["content"]
        """.replace("\n        ", "\n"),
    )
    with serving([Server()]) as server:
        url = f"--lm-adapter-arg=base_url={server.base_url}"
        result = project.run_pytest("tests", "--lm-adapter=openai:m", url, "--lm-gate=examples")
        assert 0 == result.ret, result.stdout.str()
        assert [["1", "2", "3", "4", " "]] == [request.json["stop"] for request in server.requests]
