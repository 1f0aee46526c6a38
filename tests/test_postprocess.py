"""Post-process rules: every rule's decisions, the laws they share, the published GSM8K verdicts; applied metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import ScoringError, UnknownName
from pytest_lmeval.metrics import exact_match_normalized
from pytest_lmeval.postprocess import (
    RULES,
    Extraction,
    apply_metric,
    extract,
    post_process,
    predicted,
    share_of,
)
from pytest_lmeval.types import Completion, Metric, Score, ToolCall
from tests import needs
from tests.conftest import Project
from tests.examples import examples
from tests.tables import each_row

GSM8K = needs.DATA / "gsm8k" / "example_model_solutions.jsonl"
PUBLISHED_CORRECT = {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}

# Fences, blanks, line ends, letters and markers are what the rules look at; plain text would seldom hold any.
TRICKY = st.lists(
    st.sampled_from(["`", "```", "````", "```py", "~~~", "\n", "\r\n", "\r", " ", "    ", "\t", "A", "c", "B)", "A:"])
    | st.sampled_from(["#### ", "1,", "234", "def f():", "\u2028", "é"])
    | st.text(max_size=3)
).map("".join)
many = examples(500)


def test_the_rules_cannot_be_changed_by_an_importer() -> None:
    with pytest.raises(TypeError):
        RULES["none"] = RULES["lower"]  # type: ignore[index]


def test_an_unknown_rule_is_refused_with_the_choices() -> None:
    with pytest.raises(UnknownName, match=r"post-process rule 'extract_leter'; did you mean 'extract_letter'\?.*none"):
        post_process("extract_leter", "A")


@each_row(
    ("rule", "text", "expected"),
    [
        ("none", " Aa \n", " Aa \n"),
        ("none", "", ""),
        ("strip_whitespace", " \t A b \r\n", "A b"),
        ("strip_whitespace", "", ""),
        ("lower", "  ÀB \n", "  àb \n"),
    ],
)
def test_rules_that_only_tidy_up_always_find_something(rule: str, text: str, expected: str) -> None:
    assert (expected, True) == extract(rule, text)


@each_row(
    ("text", "letter"),
    [
        ("B", "B"),
        ("(C)", "C"),
        ("Definitely C", "C"),
        ("Answer: D.", "D"),
        ("**E**", "E"),
        ("CAB", "C"),
        ("BAD, so E", "E"),
        ("Before", "B"),
        ("A1", "A"),
        ("éAé", "A"),
        ("_B_", "B"),
        ("b or c, then A", "A"),
    ],
)
def test_extract_letter_prefers_a_letter_that_stands_alone(text: str, letter: str) -> None:
    assert (letter, True) == extract("extract_letter", text)


@each_row("text", ["", "none of these", "F", "\u0391 \uff21"])
def test_extract_letter_finds_no_lowercase_or_foreign_letter(text: str) -> None:
    assert ("", False) == extract("extract_letter", text)


@each_row(
    ("text", "line"),
    [
        ("one", "one"),
        ("\n \t\n  one  \ntwo", "one"),
        ("\r\n one \r\ntwo", "one"),
        ("one\rtwo", "one"),
        ("one\u2028two", "one\u2028two"),
    ],
)
def test_extract_first_line_skips_blank_lines_and_strips(text: str, line: str) -> None:
    assert (line, True) == extract("extract_first_line", text)


@pytest.mark.parametrize("text", ["", " \r\n\t\n\u2003"])
def test_extract_first_line_finds_nothing_in_blank_text(text: str) -> None:
    assert ("", False) == extract("extract_first_line", text)


@each_row(
    ("text", "body"),
    [
        pytest.param("```\nx = 1\n```", "x = 1", id="no info string"),
        pytest.param("Sure:\n\n```python\nx = 1\n```\nDone.", "x = 1", id="text around"),
        pytest.param('```{.py title="a b"} c++\nx = 1\n```', "x = 1", id="any info string"),
        pytest.param("```a\n1\n```\n```b\n2\n```", "1", id="first of two"),
        pytest.param("```\na\n\n  b\n\n```", "a\n\n  b\n", id="blank lines are kept"),
        pytest.param("```\n    return 1\n```", "    return 1", id="an indented body alone is kept"),
        pytest.param("```py\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2", id="crlf"),
        pytest.param("````\n```\nx\n```\n````", "```\nx\n```", id="a longer fence holds a shorter one"),
        pytest.param("```\nx\n`````", "x", id="closed by a longer fence"),
        pytest.param("```\nx\n```py\ny\n```", "x\n```py\ny", id="an info string does not close"),
        pytest.param("```\nx\n```  \nmore", "x", id="blanks after the closing fence"),
        pytest.param("```\n~~~\nx\n~~~\n```", "~~~\nx\n~~~", id="tildes are text"),
        pytest.param("```\n```", "", id="empty but closed"),
        pytest.param("Here: ```python\nx = 1\n```", "x = 1", id="text before the opening fence"),
        pytest.param("use ```x``` so\n```\ny\n```", "y", id="inline code is no fence"),
        pytest.param("  ```\n  if x:\n    y\n  ```", "if x:\n  y", id="indented fence"),
        pytest.param("1. ```py\n   if x:\n       y\n   ```", "if x:\n    y", id="fence in a list item"),
        pytest.param("    ```\n\n  x\n    y\n    ```", "\nx\n  y", id="body indented less than its fence"),
        pytest.param(
            'Q\n```\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```\nend',
            'def f():\n    """\n    ```\n    f()\n    ```\n    """',
            id="fences inside an indented docstring do not close",
        ),
        pytest.param("```py\nx = 1\ny =", "x = 1\ny =", id="unclosed: to the end"),
        pytest.param("```py\nx = 1\n", "x = 1", id="unclosed before a stop sequence"),
        pytest.param("```py\nx = 1```", "x = 1", id="closed at the end of a line of code"),
        pytest.param("```py\nx = 1\n``` Hope it helps!", "x = 1", id="closed by a fence with text behind it"),
        pytest.param("```py\r\nx = 1\r\n```Done.\r\nBye", "x = 1", id="the same with crlf, and no blank"),
        pytest.param("```py\nx = 1\n``` So.\n``` Or so.", "x = 1", id="the first of them closes"),
        pytest.param("```py\nx\n``` y\n```\nend", "x\n``` y", id="a bare fence after it closes"),
        pytest.param("  ```py\n  x\n ``` So.", "x", id="text behind an indented fence"),
        pytest.param("````py\nx\n``` y\n```` So.", "x\n``` y", id="text behind a fence as long as the first"),
        pytest.param("```py\nx\n    ``` y", "x\n    ``` y", id="text behind a fence that is indented too far"),
        pytest.param("```py\ns = '``` y'\nx", "s = '``` y'\nx", id="a fence within a line of code"),
        pytest.param("```py\nx = 1```\n``` So.", "x = 1", id="the end of a line of code before it"),
        pytest.param("```py\nx = 1\n``` So.\ny = 2```", "x = 1", id="the end of a line of code after it"),
        pytest.param("```py\nx\n~~~ y", "x\n~~~ y", id="tildes do not close"),
        pytest.param("````py\nx = '```' ```\ny ````\nend", "x = '```' ```\ny", id="closed there by a fence as long"),
    ],
)
def test_extract_code_block_returns_the_body_of_the_first_block(text: str, body: str) -> None:
    assert (body, True) == extract("extract_code_block", text)


def test_a_right_program_whose_fence_has_text_behind_it_passes(project: Project) -> None:
    program = "```python\ndef f(x):\n    return 2 * x\n``` Hope it helps!"
    extras = {"io_pairs": [[1, 2], [3, 6]]}
    asked = {"id": "a", "prompt": f"say: {program}", "targets": [""], "metric": "code_exec", "extras": extras}
    project.task("tasks/t.jsonl", asked)
    assert 0 == project.run().ret


@each_row(
    ("text", "body"),
    [
        ("```bash\npip install x\n```\n```python\ncode\n```", "code"),
        ("```bash\npip install x\n```\n```\ncode\n```", "code"),
        ("```\nan example\n```\n``` Py\ncode\n```", "code"),
        ("```bash\na\n``` and then\n```python3\ncode", "code"),
        ("```python-repl\n>>> 1\n```\n```{.python}\ncode\n```", "code"),
        ("```json\n{}\n```\n```cpp\nx\n```", "{}"),
        ("```python\ncode\n```\n```python\nf(1)\n```", "code"),
        ("````markdown\n```python\nquoted\n```\n````\n```python\ncode\n```", "code"),
    ],
)
def test_extract_code_block_prefers_python(text: str, body: str) -> None:
    assert (body, True) == extract("extract_code_block", text)


@each_row(
    "text",
    [
        pytest.param("def f():\n    return 1\n", id="no fence"),
        pytest.param("", id="empty"),
        pytest.param("~~~\nx\n~~~", id="tildes"),
        pytest.param("``\nx\n``", id="two backticks"),
        pytest.param("```x = 1```", id="one line"),
        pytest.param("x = 1\r\n```\r\n", id="a closing fence only"),
        pytest.param("```python", id="an opening fence only"),
    ],
)
def test_extract_code_block_returns_the_whole_text_where_there_is_no_block(text: str) -> None:
    assert (text, False) == extract("extract_code_block", text)


@each_row(
    ("text", "answer"),
    [
        ("2 + 2 = 4\nA: 4", "4"),
        ("so\n#### 18\n", "18"),
        ("A: 4\nno:\nA: 5\nbye", "5"),
        ("#### 1\nA: 2\n#### 3", "3"),
        ("A:$1,234,567.50 \r\nok", "$1234567.50"),
        ("A: 1, 2", "1, 2"),
        ("A: yes, no", "yes, no"),
        ("A: 7 A: 8", "7 A: 8"),
    ],
)
def test_extract_answer_returns_what_follows_the_last_marker(text: str, answer: str) -> None:
    assert (answer, True) == extract("extract_answer", text)


@each_row("text", ["", "18", "the A: 18", " A: 18", "a: 18", "### 18", "A: 18\nA:  \nbye", "Q\n####"])
def test_extract_answer_finds_nothing_without_a_marker_that_opens_a_line_and_text_after_it(text: str) -> None:
    assert ("", False) == extract("extract_answer", text)


@many
@given(TRICKY)
def test_every_rule_is_deterministic_and_never_adds_text(text: str) -> None:
    for name, rule in RULES.items():
        first = rule(text)
        assert first == rule(text)
        assert name == "lower" or len(first.text) <= len(text)


@many
@given(TRICKY)
def test_a_second_pass_of_a_rule_that_marks_nothing_off_changes_nothing(text: str) -> None:
    for rule in RULES.keys() - {"extract_code_block", "extract_answer"}:
        once = post_process(rule, text)
        assert once == post_process(rule, once)


@many
@given(TRICKY, st.sampled_from(["", "py", " any info "]))
def test_a_block_around_any_text_without_backticks_gives_that_text_back(text: str, info: str) -> None:
    body = text.replace("`", "'").replace("\r", "")
    assert (body, True) == extract("extract_code_block", f"Answer:\n```{info}\n{body}\n```\n")


@many
@given(TRICKY)
def test_line_ends_do_not_decide_what_a_block_holds(text: str) -> None:
    unified = text.replace("\r", "")
    expected = extract("extract_code_block", unified)
    found = extract("extract_code_block", unified.replace("\n", "\r\n"))
    assert expected.found == found.found
    assert expected.text == found.text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "piece", ["`", "``` ", "```\n", "\n", " ", "\r\n", "A", "b", "#", "A:\n", "1,", " \n", "x```\n", "```\nx "]
)
def test_a_long_text_of_anything_is_read_in_one_pass(piece: str) -> None:
    """A search that starts over at every character would take hours here, and ends by the time limit of the run."""
    text = "````\nA: 1" + piece * (2**18 // len(piece))
    for name in ("none", "strip_whitespace", "lower", "extract_code_block", "extract_first_line", "extract_answer"):
        assert len(post_process(name, text)) <= len(text)
    assert "A" == post_process("extract_letter", text)


@needs.needs_file(GSM8K)
@pytest.mark.parametrize("model", PUBLISHED_CORRECT)
def test_extract_answer_reproduces_every_published_gsm8k_verdict(model: str) -> None:
    problems: list[dict[str, Any]] = [json.loads(line) for line in GSM8K.read_bytes().split(b"\n") if line]
    recorded = [problem[model]["is_correct"] for problem in problems]
    computed = [_gsm8k_verdict(problem[model]["solution"], problem["ground_truth"]) for problem in problems]
    assert 1319 == len(recorded)
    assert recorded == computed
    assert PUBLISHED_CORRECT[model] == sum(computed)


def _gsm8k_verdict(solution: str, ground_truth: str) -> bool:
    target = extract("extract_answer", ground_truth)
    assert target.found
    return exact_match_normalized(post_process("extract_answer", solution), [target.text], {}) == 1.0


def test_a_metric_sees_the_text_after_the_rule_or_the_output_with_the_calls() -> None:
    completion = Completion(" A ", tool_calls=(ToolCall("1", "f", "{}"),))
    strip = RULES["strip_whitespace"]
    assert Extraction("A", True) == predicted(completion, strip, Metric("text", len))
    assert Extraction(completion.output, True) == predicted(completion, strip, Metric("calls", len, takes_calls=True))


def test_only_a_metric_that_needs_the_sandbox_is_given_it() -> None:
    def given(*arguments: Any) -> Score:
        return Score(1.0, {"given": len(arguments)})

    for needs_sandbox, count in ((False, 3), (True, 4)):
        score = apply_metric(Metric("m", given, needs_sandbox=needs_sandbox), Extraction("a", True), (), {})
        assert {"given": count} == score.details


@each_row(
    ("value", "found", "unparsed"),
    [
        (1.0, True, False),
        (1.0, False, True),
        (Score(0.5, unparsed=True), True, True),
        (Score(0.5, {"code_status": "syntax_error"}), False, True),
        (Score(0.5, {"code_status": "pass"}), False, False),
    ],
)
def test_what_a_rule_or_metric_could_not_read_is_unparsed_unless_python_could(
    value: Any, found: bool, unparsed: bool
) -> None:
    score = apply_metric(Metric("m", lambda *_: value), Extraction("text", found), (), {})
    assert ("text", unparsed) == (score.prediction, score.unparsed)


@each_row(("value",), [(float("nan"),), (1.5,), (-0.1,), ("1",), (None,)])
def test_nothing_else_is_a_score(value: Any) -> None:
    with pytest.raises(ScoringError, match=r"metric 'm' gave .*; expected a finite number in \[0, 1\]"):
        share_of(value, "m")
