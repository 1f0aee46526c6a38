"""``lm.judge`` and ``lm.grade``: a judgment is a label, values are judged as JSON, and a missing judge is refused."""

from __future__ import annotations

import pytest

from tests.conftest import Project

MODEL = """
import json

class Model:
    name = "stub"

    def generate(self, prompts):
        with open("asked.txt", "a") as file:
            file.writelines(json.dumps(prompt) + "\\n" for prompt in prompts)
        return ['{"reason": "it is", "label": "yes"}' if "JSON" in prompt else "yes" for prompt in prompts]
"""


def judged(project: Project, body: str, *options: str) -> pytest.RunResult:
    project.write("model.py", MODEL)
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import Judgment, eval_task\n"
        "@eval_task('x', data=[{'id': 'a', 'person': 'yes'}, {'id': 'b', 'person': 'no'}])\n"
        f"def test_x(row, lm):\n{body}",
    )
    return project.run("tests", "--lm-adapter=model:Model", *options)


def test_a_judgment_is_its_label_and_has_a_reason(project: Project) -> None:
    result = judged(
        project,
        "    plain, reasoned = lm.judge('Polite?', 'Hi'), lm.judge('Polite?', 'Hi', reason=True)\n"
        "    assert isinstance(plain, Judgment) and plain == 'yes' == plain.label and plain.reason == ''\n"
        "    assert reasoned == 'yes' and (reasoned.label, reasoned.reason) == ('yes', 'it is')\n"
        "    assert {'yes': 1}[reasoned] and [plain, plain.label] == ['yes', 'yes']\n",
        "--lm-judge=model:Model",
    )
    assert 0 == result.ret, result.stdout.str()


def test_a_judgment_is_no_condition(project: Project) -> None:
    judged(project, "    assert lm.judge('Polite?', 'Hi', reason=True)\n", "--lm-judge=model:Model")
    assert "the label 'yes' is neither true nor false" in project.ledger()["x:a"]["error"]


def test_a_persons_labels_make_agreement_on_the_board(project: Project) -> None:
    body = "    lm.score('s', lm.judge('Polite?', 'Hi', human_label=row['person']) == 'yes')\n"
    result = judged(project, body, "--lm-judge=model:Model")
    assert 0 == result.ret, result.stdout.str()
    (row,) = project.board()["tasks"]
    assert 0.5 == row["metrics"]["judgment.agreement"]
    assert (2, 2) == tuple(row["notes"]["judges"]["judgment"][name] for name in ("rows", "labelled"))


@pytest.mark.parametrize(
    ("given", "shown"),
    [("{'a': [1, None]}", '{"a": [1, null]}'), ("[1.5, 'ü']", '[1.5, "ü"]'), ("'text'", "text"), ("7", "7")],
)
def test_a_value_is_judged_as_its_json(project: Project, given: str, shown: str) -> None:
    result = judged(project, f"    lm.score('s', lm.judge('Good?', {given}) == 'yes')\n", "--lm-judge=model:Model")
    assert 0 == result.ret, result.stdout.str()
    assert any(f">\n{shown}\n<" in prompt for prompt in project.asked())


@pytest.mark.parametrize("call", ["lm.judge('Good?', {})", "lm.grade('Good.', {})"])
@pytest.mark.parametrize("given", ["None", "b'x'", "object()", "float('nan')"])
def test_a_value_without_json_is_an_error_before_the_judge_is_asked(project: Project, call: str, given: str) -> None:
    result = judged(project, f"    {call.format(given)}\n", "--lm-judge=model:Model")
    assert 3 == result.ret
    assert "text: expected a text, or values that JSON has" in project.ledger()["x:a"]["error"]
    assert not (project.path / "asked.txt").exists()


def test_a_label_of_people_outside_of_the_labels_is_an_error(project: Project) -> None:
    judged(project, "    lm.judge('Good?', 'x', human_label='maybe')\n", "--lm-judge=model:Model")
    assert "human_label: expected one of yes, no, got 'maybe'" in project.ledger()["x:a"]["error"]


@pytest.mark.parametrize("call", ["lm.judge('Good?', 'x')", "lm.grade('Good.', 'x')"])
def test_a_run_without_a_judge_is_refused_before_the_application_is_asked(project: Project, call: str) -> None:
    result = judged(project, f"    lm.ask('first'); {call}\n")
    assert 0 != result.ret
    assert (
        "asks a judge, and the run has no judge: name a model with --lm-judge SPEC"
        in result.stdout.str() + result.stderr.str()
    )
    assert not (project.path / "asked.txt").exists()


def test_options_of_a_request_reach_the_adapter_and_an_option_given_twice_is_refused(project: Project) -> None:
    project.write(
        "model.py",
        "from pytest_lmeval import Completion\nclass Model:\n    name = 'stub'\n"
        "    request_options = ('seed', 'temperature')\n"
        "    async def complete(self, request): return Completion(str(request.options))\n",
    )
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import eval_task\n@eval_task('x')\ndef test_x(lm):\n"
        "    assert lm.ask('q', options={'seed': 1}, temperature=0.5).text == \"{'seed': 1, 'temperature': 0.5}\"\n"
        "@eval_task('twice')\ndef test_twice(lm):\n    lm.ask('q', options={'temperature': 1}, temperature=0.5)\n",
    )
    project.run("tests", "--lm-adapter=model:Model")
    found = project.ledger()
    assert "passed" == found["x:test_x"]["status"], found
    assert "lm.ask: temperature is given twice, also in options" in found["twice:test_twice"]["error"]


def test_the_simulated_users_adapter_takes_options(project: Project) -> None:
    project.write(
        "model.py",
        "class Model:\n    name = 'stub'\n    def generate(self, prompts): return ['Hello.' for _ in prompts]\n"
        "class Player:\n    def __init__(self, word='none'): self.name, self.word = 'player', word\n"
        '    def generate(self, prompts): return [\'{"say": "%s", "done": false}\' % self.word for _ in prompts]\n',
    )
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import eval_task\n@eval_task('x')\ndef test_x(lm):\n"
        "    user = lm.user('A customer.', 'Buys tea.', 1)\n    for said in user:\n"
        "        lm.note('said', said); user.reply('Yes.')\n    assert user.ended == 'max_turns'\n",
    )
    options = ("--lm-adapter=model:Model", "--lm-user=model:Player")
    result = project.run("tests", *options, "--lm-user-arg=word=tea")
    assert 0 == result.ret, result.stdout.str()
    assert "tea" in project.ledger()["x:test_x"]["details"]["notes"]["said"]
    refused = project.run("tests", "--lm-adapter=model:Model", "--lm-user-arg=word=tea")
    assert "--lm-user-arg needs --lm-user SPEC" in refused.stdout.str() + refused.stderr.str()


def test_lm_answers_questions_about_calls(project: Project) -> None:
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import eval_task\n@eval_task('x')\ndef test_x(lm):\n"
        "    lm.step('tool', 'search', {'q': 'tea'})\n    lm.step('tool', 'open', {'id': 3})\n"
        "    assert lm.in_order('search', 'open') and lm.never_called('delete') and lm.max_steps(2)\n"
        "    assert lm.called('search', times=1) and lm.match([], 'subset')\n"
        "    assert not lm.in_order('open', 'search')\n",
    )
    assert 0 == project.run("tests", "--lm-adapter=none").ret
