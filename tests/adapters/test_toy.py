"""The toy model is right on every shipped example, honest elsewhere, and survives any text."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_lmeval.adapters.toy import UNKNOWN, ToyAdapter

TASKS = Path(__file__).parents[2] / "tasks"
Record = dict[str, Any]


def _records() -> list[Record]:
    lines = [line for path in sorted(TASKS.glob("*.jsonl")) for line in path.read_text("utf-8").split("\n")]
    return [json.loads(line) for line in lines if line and not line.startswith("#")]


def _name(record: Record) -> str:
    return str(record.get("task_id") or record.get("id") or record["prompt"][:30])


def _of_metric(*metrics: str) -> pytest.MarkDecorator:
    chosen = [record for record in _records() if (record.get("metric_name") or record["metric"]) in metrics]
    return pytest.mark.parametrize("record", [pytest.param(record, id=_name(record)) for record in chosen])


def _ask(*blocks: str) -> str:
    (answer,) = ToyAdapter().generate(["\n\n".join(blocks)])
    return answer


def _ask_record(record: Record) -> str:
    shots = [f"{shot['prompt']} {shot['completion']}" for shot in record.get("few_shot_examples", [])]
    return _ask(*shots, record["prompt"])


def _is_letter(record: Record) -> bool:
    return record.get("category") == "mcq" or record.get("metric") == "multiple_choice"


@_of_metric("exact_match", "accuracy", "f1", "rouge_l", "bleu_4", "multiple_choice")
def test_the_first_line_is_a_target_or_names_its_letter(record: Record) -> None:
    answer = _ask_record(record).strip().split("\n")[0]
    if _is_letter(record):
        (answer,) = re.findall(r"\b[A-E]\b", answer)
    assert answer.lower() in [target.lower() for target in record["targets"]]


@_of_metric("substring_contains")
def test_free_text_contains_a_target(record: Record) -> None:
    answer = _ask_record(record).lower()
    assert any(target.lower() in answer for target in record["targets"])


def _run(record: Record) -> tuple[Record, str]:
    answer = _ask_record(record)
    fenced = re.search(r"```python\n(.*?)```", answer, re.DOTALL)
    namespace: Record = {}
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        exec(fenced[1] if fenced else answer, namespace)
    return namespace, stdout.getvalue().rstrip()


@_of_metric("code_exec")
def test_code_meets_every_check(record: Record) -> None:
    namespace, printed = _run(record)
    extras = record.get("extras", {})
    function: Any = namespace.get(extras.get("entry_point", "f"))
    if "metric_name" in record:
        assert [True] * len(record["targets"]) == [eval(target, namespace) for target in record["targets"]]
    elif "io_pairs" in extras:
        assert [pair[-1] for pair in extras["io_pairs"]] == [function(*pair[:-1]) for pair in extras["io_pairs"]]
    elif "tests" in extras:
        exec(extras["tests"], namespace)
        namespace["check"](function)
    else:
        assert printed in record["targets"]


def test_only_the_last_block_is_answered() -> None:
    assert "9" == _ask("What is 1 + 1? 2", "What is 4 + 5?")


def test_a_pre_fabricated_few_shot_answer_is_not_echoed() -> None:
    assert UNKNOWN == _ask("What is 4 + 5? 9", "What is the meaning of life?")


@pytest.mark.parametrize(
    "question",
    [
        "",
        " ",
        "Why?",
        "What is 7 / 0?",
        "What is 7 // 0?",
        "2 ** 3 + 1",
        "12 / 34 + 5",
        "3.5 + 2",
        "(1 + 2",
        "1 + 2))",
        "What is the remainder when 5 is divided by 0?",
        "What is 7 percent of 3?",
        "Write a Python function f(n) that sings.",
        "Which fish sings?\nA) Cod\nB) Eel",
        "Label this word as noun or verb: run",
        "Write a Python function clamp(x) that returns x between low and high.",
    ],
)
def test_it_says_so_where_it_does_not_know(question: str) -> None:
    assert UNKNOWN == _ask(question)


_SUM = st.recursive(
    st.integers(-999, 999).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda parts: f"({' '.join(parts)})"),
    ),
    max_leaves=4,
).filter(lambda text: " " in text)


@given(_SUM)
@example("100 - 7 - 3 * 2 % 4 // 1")
def test_arithmetic_agrees_with_python(expression: str) -> None:
    try:
        expected = str(eval(expression))
    except ZeroDivisionError:
        expected = UNKNOWN
    assert expected == _ask(f"What is {expression}?")


_PIECES = st.sampled_from(
    [
        *'()+-*%/0123456789 .\n"',
        "//",
        "\n\n",
        "\nA) ",
        "\nB. ",
        "\u0663",
        "\u00b2",
        "\ud800",
        "Python",
        " function f(x)",
        " times three",
        "Label ",
        "positive",
        "Summarise this:",
        "first line",
        "Answer:",
        'Repeat "',
        "prime number",
        "largest number",
        "divided by 0",
        " percent of ",
        "sentence",
        "prints the word \u00e9 2 times on one line",
    ]
)


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=40).map("".join)))
@example("9" * 5000 + " + 1")
@example("(" * 5000 + "1 + 1")
@example("1 * " * 5000 + "1")
@example("function f(" * 5000 + "Python")
def test_any_text_gets_an_answer_and_always_the_same(prompt: str) -> None:
    (answer,) = ToyAdapter().generate([prompt])
    assert isinstance(answer, str)
    assert [answer, answer] == ToyAdapter().generate([prompt, prompt])


@pytest.mark.parametrize(
    "quoted",
    ["import os", "print(1)", "x; import os", "```\nimport os\n```", "import os\nprint(1)", "~~~\nimport os\n~~~"],
)
@pytest.mark.parametrize("prompt", ['Repeat: "{}"', "Summarise this: {}", "Summarise this, first line: {}"])
def test_code_in_a_prompt_is_not_made_its_own(prompt: str, quoted: str) -> None:
    answer = _ask(prompt.format(quoted))
    assert not re.search("```|~~~", answer)
    with contextlib.suppress(SyntaxError):
        assert not [node for node in ast.walk(ast.parse(answer)) if isinstance(node, ast.Call | ast.Import)]


def test_no_prompts_get_no_answers() -> None:
    assert [] == ToyAdapter().generate([])


def test_it_writes_a_function_whose_name_alone_is_given() -> None:
    (answer,) = ToyAdapter().generate(["python: write a function f that doubles its input"])
    assert "```python\ndef f(x):\n    return x * 2\n```" in answer
