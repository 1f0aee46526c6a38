"""Runs whose prompts have images, audio and files: what the model gets, and which adapters refuse them at the start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, chat, json_reply, serving
from tests.conftest import BOTH, Project
from tests.pictures import CAT, DOG, PDF, WAV, media_in, sees

SEEN: dict[bytes | str, str] = {CAT: "cat", DOG: "dog", WAV: "hello", PDF: "42"}


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Write four examples with media and one without, and serve a model that knows them."""
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    for name, data in {"cat.png": CAT, "dog.png": DOG, "a.wav": WAV, "a.pdf": PDF}.items():
        project.write(f"tasks/{name}", data)
    parts = {"cat": {"image": "cat.png"}, "dog": {"image": "dog.png"}, "hello": {"audio": "a.wav"}}
    records = [_record(said, ["What?", part]) for said, part in {**parts, "42": {"file": "a.pdf"}}.items()]
    project.task("tasks/t.jsonl", *records, _record("nothing", "What?"))
    with serving([sees(SEEN)]) as served:
        profile = f"[tool.lmeval.adapters.m]\nadapter = 'openai:m'\nbase_url = '{served.base_url}'\n"
        project.write("pyproject.toml", profile)
        project.usual = ("--lm-adapter=m",)
        yield served


def _record(said: str, prompt: Any) -> dict[str, Any]:
    return {"id": said, "prompt": prompt, "targets": [said], "metric": "exact_match"}


@pytest.mark.parametrize("processes", BOTH)
def test_the_model_gets_the_bytes(project: Project, server: ScriptedServer, processes: str) -> None:
    result = project.run("tasks", processes)
    result.assert_outcomes(passed=5)
    assert sorted([CAT, DOG, PDF, WAV]) == sorted(one for seen in server.requests for one in media_in(seen.json))
    (contents,) = [
        seen.json["messages"][0]["content"] for seen in server.requests if next(media_in(seen.json), "") == PDF
    ]
    assert {"type": "text", "text": "What?"} == contents[0]
    assert "a.pdf" == contents[1]["file"]["filename"]
    assert "What?\n[image cat.png, PNG, 73 B]" == project.ledger()["t:cat"]["prompt"]


def test_an_adapter_without_pictures_is_not_asked(project: Project, server: ScriptedServer) -> None:
    project.task("tasks/plain.jsonl", project.record("blue", "blue"))
    result = project.run("tasks", "--lm-adapter=model:Model")
    assert 3 == result.ret
    result.stdout.fnmatch_lines(["*task 't': adapter * accepts no audio; it accepts text alone: examples hello"])
    assert [["say: blue"]] == project.calls()
    for adapter in ("toy", "none"):
        result = project.run("tasks/t.jsonl", f"--lm-adapter={adapter}")
        assert result.ret
    assert [] == server.requests


def test_a_picture_that_changes_after_collection_is_an_error(project: Project, server: ScriptedServer) -> None:
    project.write(
        "conftest.py",
        "import pathlib\ndef pytest_runtestloop(session):\n    pathlib.Path('tasks/cat.png').write_bytes(b'new')\n",
    )
    result = project.run("tasks", "-k", "cat")
    result.stdout.fnmatch_lines(["*[[]image cat.png, PNG, 73 B[]]: changed between collection and asking; run again*"])
    assert "error" == project.ledger()["t:cat"]["status"]
    assert [] == server.requests


def test_a_completions_server_has_no_pictures(project: Project, server: ScriptedServer) -> None:
    result = project.run("tasks", "--lm-adapter-arg=endpoint=completions")
    result.stderr.fnmatch_lines(["*adapter m accepts no audio; it accepts text alone: examples hello"])
    assert [] == server.requests


def test_a_function_asks_about_pictures(project: Project, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "dog.png").write_bytes(DOG)
    project.write(
        "test_f.py",
        f"""
        from pathlib import Path
        import pytest
        from pytest_lmeval import Audio, File, Image, UsageError, eval_task

        @eval_task("f")
        async def test_f(lm):
            assert "cat" == (await lm.ask(["What?", Image("tasks/cat.png", detail="low")])).text
            assert "dog" == (await lm.ask(["What?", Path({str(tmp_path / "dog.png")!r})])).text
            assert "hello" == (await lm.ask([Audio("tasks/a.wav")])).text
            document = File(Path("tasks/a.pdf").read_bytes())
            assert "42" == (await lm.ask([{{"role": "user", "content": [document]}}])).text
            for wrong in ({str(tmp_path / "dog.png")!r}, "gone.png", "tasks/a.wav"):
                with pytest.raises(UsageError, match="^Image: "):
                    Image(wrong)
            with pytest.raises(UsageError, match="expected texts, Image"):
                await lm.ask(["What?", {{"role": "user", "content": "x"}}])
        """.replace("\n        ", "\n"),
    )
    project.run("test_f.py").assert_outcomes(passed=1)
    first = server.requests[0].json["messages"][0]["content"][1]["image_url"]
    assert "low" == first["detail"]
    (step, *_) = project.ledger()["f:test_f"]["details"]["steps"]
    assert {"image": "tasks/cat.png", "type": "image/png", "size": 73, "detail": "low"}.items() <= (
        step["input"][0]["content"][1].items()
    )
    refused = project.run("test_f.py", "--lm-adapter=toy").stdout
    refused.fnmatch_lines(
        ["*adapter toy* accepts no image: *cat.png*", "*: What? [[]image tasks/cat.png, PNG, 73 B[]] -> error*"]
    )


def test_judges_see_the_picture(project: Project, server: ScriptedServer) -> None:
    rubric = {"id": "cat", "prompt": ["What?", {"image": "cat.png"}], "metric": "rubric"}
    project.task("tasks/t.jsonl", {**rubric, "extras": {"rubric": "Is it a cat?"}})
    judge = json.dumps({"reason": "it is", "score": 1})
    judged = (*project.usual, "--lm-judge=openai:j", f"--lm-judge-arg=base_url={server.base_url}")
    server.script = [sees(SEEN), sees({CAT: judge})]
    project.run_pytest("tasks", *judged).assert_outcomes(passed=1)
    asked, question = server.requests
    assert ["m", "j"] == [asked.json["model"], question.json["model"]]
    assert [CAT] == [*media_in(question.json)]
    result = project.run("tasks", "--lm-judge=model:Model")
    result.stderr.fnmatch_lines(["*task 't': judge * accepts no image; it accepts text alone: examples cat"])


def test_the_ledger_has_the_media_and_a_resumed_run_goes_by_their_bytes(
    project: Project, server: ScriptedServer
) -> None:
    assert 0 == project.run("tasks").ret
    record = {"image": "cat.png", "type": "image/png", "sha256": sha256(CAT).hexdigest(), "size": len(CAT)}
    assert [{"role": "user", "content": ["What?", record]}] == project.ledger()["t:cat"]["messages"]
    assert "messages" not in project.ledger()["t:nothing"]
    (project.path / "tasks" / "cat.png").rename(project.path / "tasks" / "pet.png")
    task = (project.path / "tasks" / "t.jsonl").read_text()
    project.write("tasks/t.jsonl", task.replace("cat.png", "pet.png"))
    assert 0 == project.run("tasks", "--lm-resume").ret
    assert 5 == len(server.requests), "the bytes are the same"
    project.write("tasks/pet.png", DOG)
    assert project.run("tasks", "--lm-resume").ret
    assert [DOG] == [*media_in(server.requests[5].json)]


DECLARATIVE = """
key: KEY
display_name: Pets
definition:
  dataset: {path: pets.csv}
  solver: SOLVER
  scorers: [{type: string_equals, ground_truth: "{{ sample.said }}"}]
"""
PARTS = '["What is {{ sample.id }}?", {image: "{{ sample.path }}", detail: low}]'
ONE_TURN = "{role: system, content: Be brief.}, {role: user, content: PARTS}".replace("PARTS", PARTS)
SOLVERS = {
    "asked": f"{{type: single_turn_solver, input_builder: {{type: chat_completion, input_messages: [{ONE_TURN}]}}}}",
    "talk": f"{{type: multi_turn_solver, turns: [{{user: Hello}}, {{user: {PARTS}}}]}}",
}


def test_a_declarative_task_asks_about_the_pictures_of_its_rows(project: Project, server: ScriptedServer) -> None:
    project.write("tasks/pets.csv", "id,path,said\nx,cat.png,cat\ny,dog.png,dog\n")
    for key, solver in SOLVERS.items():
        project.write(f"tasks/{key}.yaml", DECLARATIVE.replace("KEY", key).replace("SOLVER", solver))
    project.run("tasks/asked.yaml", "tasks/talk.yaml").assert_outcomes(passed=4)
    assert sorted([CAT, CAT, DOG, DOG]) == sorted(one for seen in server.requests for one in media_in(seen.json))
    contents = [seen.json["messages"][-1]["content"] for seen in server.requests]
    assert {"Hello", "What is x?", "What is y?"} == {
        one if isinstance(one, str) else one[0]["text"] for one in contents
    }
    assert {"low"} == {one[1]["image_url"]["detail"] for one in contents if isinstance(one, list)}
    ledger = project.ledger()
    assert "Be brief.\n\nWhat is x?\n[image cat.png, PNG, 73 B]" in ledger["asked:x"]["prompt"]
    record = {"image": "cat.png", "type": "image/png", "sha256": sha256(CAT).hexdigest(), "size": 73, "detail": "low"}
    shown = ["What is x?", record]
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": shown}]
    assert talk == ledger["asked:x"]["messages"]
    assert [None, shown] == [turn.get("parts") for turn in ledger["talk:x"]["details"]["turns"]]
    refused = project.run("tasks/talk.yaml", "--lm-adapter=toy")
    refused.stderr.fnmatch_lines(["*task 'talk': adapter toy* accepts no image*examples x, y"])


def test_the_judge_of_a_declarative_task_sees_the_picture(project: Project, server: ScriptedServer) -> None:
    project.write("tasks/pets.csv", "id,path\nx,cat.png\n")
    graded = DECLARATIVE.partition("  scorers")[0] + "  scorers: [{type: rubric, extras: {rubric: Is a cat.}}]\n"
    project.write("tasks/g.yaml", graded.replace("KEY", "g").replace("SOLVER", SOLVERS["asked"]))
    server.script = [sees(SEEN), sees({CAT: json.dumps({"reason": "it is", "score": 1})})]
    given = ("--lm-judge=openai:j", f"--lm-judge-arg=base_url={server.base_url}")
    project.run("tasks/g.yaml", *given).assert_outcomes(passed=1)
    question = server.requests[1].json
    assert [CAT] == [*media_in(question)]
    assert "What is x?\n[image cat.png, PNG, 73 B]" in question["messages"][-1]["content"][0]["text"]


def test_the_ledger_has_the_media_of_later_turns(project: Project, server: ScriptedServer) -> None:
    turns = [{"user": "Hello."}, {"user": ["What?", {"image": "cat.png"}], "targets": ["cat"]}, {"user": "Thanks."}]
    project.task("tasks/t.jsonl", {"id": "a", "turns": turns})
    project.run("tasks/t.jsonl")
    first, second, third = project.ledger()["t:a"]["details"]["turns"]
    assert sha256(CAT).hexdigest() == second["parts"][1]["sha256"]
    assert "parts" not in first.keys() | third.keys()


def test_a_changed_picture_is_a_changed_example(project: Project, server: ScriptedServer) -> None:
    kept = ("--lm-baseline=base.json", "--lm-gate=baseline")
    project.run("tasks", *kept, "--lm-update-baseline").assert_outcomes(passed=5)
    project.write("tasks/cat.png", DOG)
    project.run("tasks", *kept).stdout.fnmatch_lines(
        ["*not compared: 1 changed (1 passed before); compared: 4 of*", "*1 of 1 changed differ in the prompt alone*"]
    )
    by_id = project.run("tasks", *kept, "--lm-pair-by=id", "--lm-strict")
    by_id.stdout.fnmatch_lines(["*worse: t: cat*"])
    assert by_id.ret


def test_several_models_a_report_and_a_dry_run_name_the_picture(project: Project, server: ScriptedServer) -> None:
    project.run("tasks", "-k", "cat", "--lm-adapter=m", "--lm-adapter=n=m").assert_outcomes(passed=2)
    for model in "mn":
        assert "[image cat.png, PNG, 73 B]" in (project.path / f"reports/{model}/report.html").read_text()
    shown = project.lmeval("test", "tasks/t.jsonl", "--lm-adapter=m", "-n1").stdout.str()
    assert "cat.png" in shown
    assert sha256(CAT).hexdigest() in shown


def test_a_function_has_a_picture_graded(project: Project, server: ScriptedServer) -> None:
    project.write(
        "test_f.py",
        """
from pytest_lmeval import Image, eval_task

@eval_task("f")
async def test_f(lm):
    picture = Image("tasks/cat.png")
    assert 1 == (await lm.grade("Names the animal.", [picture, "a cat"])).score
    assert "yes" == await lm.judge("Is it a cat?", [picture, "a cat"])
""",
    )
    replies = iter([json.dumps({"reason": "it is", "score": 1}), "yes"])

    async def judge(exchange: Exchange) -> None:
        assert [CAT] == [*media_in(exchange.seen.json)]
        await json_reply(chat(next(replies)))(exchange)

    server.script = [judge]
    given = ("--lm-judge=openai:j", f"--lm-judge-arg=base_url={server.base_url}")
    project.run("test_f.py", *given).assert_outcomes(passed=1)
    project.run("test_f.py", "--lm-judge=toy").stdout.fnmatch_lines(["*adapter toy.v1 accepts no image*cat.png*"])
