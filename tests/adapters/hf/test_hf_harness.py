"""``hf`` beside the model of lm-evaluation-harness itself, ``HFLM``, which ``.ci/large --only=lm-eval`` installs."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.formats.files import load_file
from pytest_lmeval.loading import default_registry
from pytest_lmeval.types import Generate, LogLikelihood, LogProb, Message
from tests.adapters.hf.tiny_model import FACTS, build_reciting_llama
from tests.conftest import Project
from tests.golden.harness.installed import NEEDS_HARNESS, PYTHON, ROWS, laid_out, published_root
from tests.needs import needs_file

CLOSE = 1e-4
CLOSE_FLOAT = 1e-6  # the harness adds up a long text in single precision
PAIRS = [
    *((question, f" {answer}") for question, answer in FACTS),
    *((question, f" {answer}") for (question, _), (_, answer) in pairwise(FACTS)),
    ("What do bees make? ", "honey"),  # a blank that moves to the continuation
    ("Say hello in French.\n", "bonjour"),
    ("", "the sun is larger"),
    ("Zürich, naïve café: ", "東京 🙂"),
]
TEXTS = [
    "the cat sat on the mat",
    "x",
    " ".join(f"the cat {number} sat on the mat and ate a fish" for number in range(40)),
    "Zürich, 東京 and 🙂\n\nare written so. " * 6,
]
TALKS = [
    *(([["user", question]], answer) for question, answer in FACTS[:4]),
    ([["system", "Shout."], ["user", FACTS[0][0]]], "PARIS"),
    ([["user", FACTS[0][0]], ["assistant", "Paris"], ["user", FACTS[1][0]]], "Rome"),
]
pytestmark = NEEDS_HARNESS


def said_by_harness(folder: Path, work: Path, talks: Any, pairs: Any = PAIRS, texts: Any = TEXTS) -> Any:
    talks = [[[{"role": role, "content": text} for role, text in talk], answer] for talk, answer in talks]
    asked = {"pairs": pairs, "texts": texts, "talks": talks}
    requests, answers = work / "requests.json", work / "answers.json"
    requests.write_text(json.dumps(asked), "utf-8")
    script = Path(__file__).with_name("hflm.py")
    subprocess.run([PYTHON, script, folder, requests, answers], check=True, timeout=300)
    return json.loads(answers.read_text("utf-8"))


def said(model: HfAdapter, requests: list[LogLikelihood]) -> list[LogProb]:
    found = model.loglikelihood(requests)
    assert [] == [each for each in found if not isinstance(each, LogProb)]
    return [each for each in found if isinstance(each, LogProb)]


def differing(expected: list[float], found: list[LogProb]) -> list[Any]:
    pairs = enumerate(zip(expected, [each.total for each in found], strict=True))
    return [
        (place, one, other)
        for place, (one, other) in pairs
        if not isclose(one, other, rel_tol=CLOSE_FLOAT, abs_tol=CLOSE)
    ]


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_totals_are_those_of_the_harness_s_own_model(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    model: HfAdapter = request.getfixturevalue(name)
    folder = request.getfixturevalue({"llama": "chat_llama", "gpt2": "plain_gpt2"}[name])
    theirs = said_by_harness(folder, tmp_path, TALKS if name == "llama" else [])

    pairs = said(model, [LogLikelihood(*pair, moves_blanks=True) for pair in PAIRS])
    assert [] == differing([total for total, _ in theirs["pairs"]], pairs)
    assert [is_greedy for _, is_greedy in theirs["pairs"]] == [each.greedy for each in pairs]

    whole = said(model, [LogLikelihood("", text, rolling=True) for text in TEXTS])
    assert [] == differing(theirs["texts"], whole)

    if theirs["talks"]:
        messages = [(tuple(Message(role, text) for role, text in talk), answer) for talk, answer in TALKS]
        talks = said(model, [LogLikelihood("", answer, messages=talk, moves_blanks=True) for talk, answer in messages])
        assert [] == differing([total for total, _ in theirs["talks"]], talks)


# Shapes of the templates of Llama 3, Gemma and Mistral.
HEADERS = (
    "{{ bos_token }}{% set first = messages[0] %}{% set has_system = first.role == 'system' %}"
    "<|system|>\n\nToday.\n\n{{ first.content | trim if has_system else '' }}<|end|>"
    "{% for message in (messages[1:] if has_system else messages) %}"
    "<|{{ message.role }}|>\n\n{{ message.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n\n{% endif %}"
)
ALTERNATING = (
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate between user and assistant') }}{% endif %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for message in messages %}" + ALTERNATING + "<|user|>"
    "{{ 'model' if message.role == 'assistant' else message.role }}\n{{ message.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|user|>model\n{% endif %}"
)
INSTRUCTIONS = (
    "{{ bos_token }}{% set has_system = messages[0].role == 'system' %}"
    "{% set system = messages[0].content + '\n\n' if has_system else '' %}"
    "{% for message in (messages[1:] if has_system else messages) %}" + ALTERNATING + "{% if message.role == 'user' %}"
    "[INST] {{ (system if loop.first else '') + message.content }} [/INST]"
    "{% else %} {{ message.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
WRITTEN = [
    *TALKS[:2],
    *TALKS[-2:],
    ([["user", " Which? \n"]], "  blue"),
    ([["user", FACTS[0][0]], ["assistant", "The answer is"]], " Paris"),
    ([["system", ""], ["user", "Zürich 🙂"]], "東京"),
]


@pytest.mark.parametrize("template", [HEADERS, NO_SYSTEM, INSTRUCTIONS], ids=["headers", "no system", "instructions"])
def test_prompts_and_tokens_of_a_template_are_those_of_the_harness(
    libraries: Any, template: str, tmp_path: Path
) -> None:
    folder = build_reciting_llama(tmp_path / "model", ())
    (folder / "chat_template.jinja").write_text(template)
    talks = [each for each in WRITTEN if template != NO_SYSTEM or each[0][0][0] != "system"]
    pairs = [("<s>What do bees make?", " honey"), *PAIRS[:2]]
    theirs = said_by_harness(folder, tmp_path, talks, pairs, [])

    model = HfAdapter(str(folder), device="cpu")
    messages = [(tuple(Message(role, text) for role, text in talk), answer) for talk, answer in talks]
    assert theirs["prompts"] == [model._prompts.read(Generate(talk))[0] for talk, _ in messages]
    requests = [LogLikelihood(*pair, moves_blanks=True) for pair in pairs]
    requests += [LogLikelihood("", answer, messages=talk, moves_blanks=True) for talk, answer in messages]
    found = [each for each in model._prompts.split_requests(requests) if not isinstance(each, AdapterError)]
    assert theirs["tokens"] == [[tokens[:-size], tokens[-size:]] for tokens, size in found]
    assert [] == differing([total for total, _ in theirs["talks"]], said(model, requests[len(pairs) :]))

    if template == NO_SYSTEM:
        # The harness drops the system message.
        refused = model.generate_requests([Generate((Message("system", "Shout."), Message("user", "?")))])
        assert "refuses a conversation of system, user: no system role" in str(refused[0])
    if template != HEADERS:
        twice = model.generate_requests([Generate((Message("user", "a"), Message("user", "b")))])
        assert "roles must alternate between user and assistant" in str(twice[0])


PAGE = Path(__file__).parents[3] / "docs" / "harness-tasks.md"


def right_texts(file: Path) -> list[tuple[str, str]]:
    """Return what every task of ``file`` asks, with the option that is right."""
    found = load_file(file, file.stem, default_registry(), is_named=True)
    assert [] == [error.detail for error in found.errors]
    texts = []
    for example in (each for task in found.tasks for each in task.examples):
        right = example.targets[0].strip()
        texts.append(next((context, text) for context, text in example.metadata["pairs"] if text.strip() == right))
    return texts


@needs_file(ROWS)
def test_published_tasks_are_named_in_three_lines_and_run_and_a_worse_model_is_found(
    libraries: Any, project: Project
) -> None:
    (lines,) = re.findall(r"# tasks/published.yaml\n(harness:\n(?:  .*\n){2})", PAGE.read_text("utf-8"))
    named = project.write(
        "tasks/published.yaml", lines.replace("harness:\n", f"harness:\n  from: {published_root()}\n")
    )
    laid_out(project.path / "data")
    build_reciting_llama(project.path / "good", right_texts(named))
    build_reciting_llama(project.path / "worse", ())
    gate = ("--lm-gate=baseline", "--lm-baseline=base.json")

    assert 0 == project.run_pytest("tasks", "--lm-adapter=hf:good", *gate, "--lm-update-baseline").ret
    rows = {row["task"]: row["score"] for row in project.board()["tasks"]}
    assert ["arc_easy", "boolq", "copa", "piqa", "sciq"] == sorted(rows)
    words = project.board()["groups"]["words"]["metrics"]["acc,none"]
    assert 27 == words["n"]
    assert isclose(words["value"], (rows["copa"] + rows["piqa"] + rows["sciq"]) / 3)

    worse = project.run_pytest("tasks", "--lm-adapter=hf:worse", *gate)
    assert 1 == worse.ret
    worse.stdout.fnmatch_lines(["gate baseline: REGRESSION", "*overall: regression:*"])
    page = (project.path / "reports" / "report.html").read_text("utf-8")
    assert [] == [name for name in (*rows, "words", "regression") if name not in page]

    part = ("--lm-gate=examples", "--lm-report-dir=part", "-kwords and not copa")
    chosen = project.run_pytest("tasks", "--lm-adapter=hf:worse", *part)
    assert {"piqa", "sciq"} == {row["task"] for row in project.board("part")["tasks"]}
    failed = chosen.parseoutcomes()["failed"]
    again = project.run_pytest("tasks", "--lm-adapter=hf:worse", "--lf", "--collect-only", "-q")
    assert failed == sum("::" in line for line in again.outlines)
