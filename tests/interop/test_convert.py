"""Published data sets become task files that can be run, and recordings that can be scored again."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval import validate_file
from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.convert import KINDS
from pytest_lmeval.interop.convert.gsm8k import convert_gsm8k
from pytest_lmeval.interop.convert.programs import convert_humaneval
from pytest_lmeval.postprocess import post_process
from pytest_lmeval.records.recording import read_recording
from tests import needs

if TYPE_CHECKING:
    from tests.conftest import Project

Record = dict[str, Any]
GSM8K = needs.DATA / "gsm8k/example_model_solutions.jsonl"
HUMANEVAL = needs.DATA / "humaneval/HumanEval.jsonl.gz"
PUBLISHED = {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}

needs_gsm8k = needs.needs_file(GSM8K)
needs_humaneval = needs.needs_file(HUMANEVAL)


def _lines(*records: Any) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def _problem(answer: str = "1 + 1 = 2\nA: 2", **solutions: str) -> Record:
    models = {model: {"is_correct": True, "solution": solution} for model, solution in solutions.items()}
    return {"question": "How much is it?", "ground_truth": answer, **models}


def _program(**changed: str) -> Record:
    fixed = {
        "task_id": "Test/0",
        "prompt": 'def double(n):\n    """Return twice n."""\n',
        "entry_point": "double",
        "canonical_solution": "    return 2 * n\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    }
    return {**fixed, **changed}


ARC: Record = {
    "id": "1",
    "question": {"stem": "What is wet?", "choices": [{"text": "Fire", "label": "1"}, {"text": "Water", "label": "2"}]},
    "answerKey": "2",
}
SWAG: Record = {"ind": 4, "ctx": "A man sits on a roof. He", "endings": ["flies.", "fixes it."], "label": 1}
SUM: Record = {
    "task_id": 7,
    "text": "Write a function that adds.",
    "code": "def one():\r\n    return 1\r\ndef plus(a, b):\r\n    return a + b",
    "test_setup_code": "x = 2",
    "test_list": ["assert plus(1, 1) == x", "assert plus(-1, 1) == 0"],
}
TRUTHS = (
    b"Type,Question,Best Answer,Best Incorrect Answer\n"
    b'Plain,Is snow black?,"No, white",Yes\nPlain,Is ice hot?,No,Yes\nPlain,Is coal red?,No,Yes\n'
)
SOURCES = {
    "gsm8k": _lines(_problem(small="A: 2", large="A: 3"), _problem(small="A: 2", large="A: 2")),
    "humaneval": _lines(_program()),
    "arc": _lines(ARC, {**ARC, "id": "2", "answerKey": "1"}),
    "hellaswag": _lines(SWAG, SWAG),
    "ifeval": _lines(
        {"key": 7, "prompt": "Be brief.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    ),
    "mbpp": _lines(SUM),
    "mmlu": b"What is wet?,Fire,Water,Sand,Air,B\n",
    "truthfulqa": TRUTHS,
    "bfcl": _lines(
        {
            "id": "irrelevance_0",
            "question": [[{"role": "user", "content": "Hello."}]],
            "function": [{"name": "f", "parameters": {"type": "dict", "properties": {}}}],
        }
    ),
}


def _source(folder: Path, data: bytes, name: str = "source.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_questions_with_options_ask_for_a_letter(tmp_path: Path) -> None:
    (arc,) = KINDS["arc"](_source(tmp_path, SOURCES["arc"]), tmp_path / "out")
    (swag,) = KINDS["hellaswag"](_source(tmp_path, SOURCES["hellaswag"]), tmp_path / "out")
    assert [[], []] == [validate_file(path)[1] for path in (arc, swag)]
    assert [["B"], ["A"]] == [record["targets"] for record in _read(arc)]
    assert _read(arc)[0]["prompt"].startswith("What is wet?\nA. Fire\nB. Water\n\nAnswer with the letter")
    assert ["B"] == _read(swag)[0]["targets"]
    assert "A man sits on a roof. He\nA. flies.\nB. fixes it." in _read(swag)[0]["prompt"]


def test_a_question_whose_right_option_is_unknown_is_refused(tmp_path: Path) -> None:
    question = {**ARC["question"], "choices": ARC["question"]["choices"] * 3}
    cases = [
        ("arc", {**ARC, "answerKey": "C"}, ":1: 'answerKey' must be one of 1, 2, got 'C'"),
        ("arc", {**ARC, "question": "What?"}, ":1: 'question' must be an object with 'stem' and 'choices'"),
        ("arc", {**ARC, "question": {"stem": "?", "choices": ["a"]}}, ":1: 'choices' must be objects"),
        ("arc", {**ARC, "question": question}, ":1: expected 2 to 5 options, got 6"),
        ("hellaswag", {**SWAG, "label": True}, ":1: 'label' must be 0 to 1, got True"),
        ("hellaswag", {**SWAG, "label": ""}, "the test split has none"),
        ("hellaswag", {**SWAG, "endings": "flies"}, ":1: 'endings' must be a list of strings"),
    ]
    for kind, record, message in cases:
        with pytest.raises(UsageError, match=re.escape(message)):
            KINDS[kind](_source(tmp_path, _lines(record)), tmp_path / "out")


# --- gsm8k -----------------------------------------------------------------------------------------------------------


def test_gsm8k_becomes_a_task_and_a_recording_per_model(tmp_path: Path) -> None:
    written = convert_gsm8k(_source(tmp_path, SOURCES["gsm8k"]), tmp_path / "out/gsm8k")
    assert ["gsm8k.jsonl", "large.replay.jsonl", "small.replay.jsonl"] == [path.name for path in written]
    examples, errors = validate_file(written[0])
    assert [] == errors
    assert ["gsm8k-0000", "gsm8k-0001"] == [example.id for example in examples]
    assert [{"id": "gsm8k-0000", "output": "A: 3"}, {"id": "gsm8k-0001", "output": "A: 2"}] == _read(written[1])


def test_a_gsm8k_prompt_is_the_question_and_how_to_answer(tmp_path: Path) -> None:
    (path,) = convert_gsm8k(_source(tmp_path, _lines(_problem())), tmp_path)
    (record,) = _read(path)
    assert record["prompt"].startswith("How much is it?\n\n")
    assert "A: <number>" in record["prompt"]
    assert ("exact_match", {"post_process": "extract_answer"}) == (record["metric"], record["extras"])


@pytest.mark.parametrize(
    ("answer", "target"),
    [("A: 18", "18"), ("A: 5\nA: 1,250,000", "1250000"), ("half of it\nA:  -7 \n", "-7"), ("sum\n#### 1,024", "1024")],
)
def test_a_gsm8k_target_is_the_last_marked_answer_without_commas(tmp_path: Path, answer: str, target: str) -> None:
    (path,) = convert_gsm8k(_source(tmp_path, _lines(_problem(answer))), tmp_path)
    assert [[target]] == [record["targets"] for record in _read(path)]


def test_a_gsm8k_file_without_solutions_is_a_task_alone(tmp_path: Path) -> None:
    answers = ["He has 3 * 6 = <<3*6=18>>18 dollars.\n#### 18", "Twice that.\n#### 1,250"]
    source = _source(tmp_path, _lines(*({"question": "How much?", "answer": answer} for answer in answers)))
    (path,) = convert_gsm8k(source, tmp_path / "out")
    assert [["18"], ["1250"]] == [record["targets"] for record in _read(path)]
    assert [] == validate_file(path)[1]


@given(st.text())
def test_a_solution_may_be_any_text(solution: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = _source(Path(folder), _lines(_problem(model=solution)))
        _, recording = convert_gsm8k(source, Path(folder))
        assert [(None, "gsm8k-0000", (solution,))] == list(read_recording(recording))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"ground_truth": "A: 1"}], ":1: 'question' is missing; got 'ground_truth'"),
        ([_problem(), {"question": "?"}], ":2: 'ground_truth' is missing"),
        ([_problem(), {**_problem(), "question": 7}], ":2: 'question' must be a string, got 7"),
        ([_problem("it is 18")], ":1: 'ground_truth' has no line that starts with A:"),
        ([{"question": "?", "answer": "18"}], ":1: 'answer' has no line that starts with ####"),
        ([{"question": "?", "answer": 18}], ":1: 'answer' must be an object with a 'solution', got 18"),
        ([_problem("A: ")], ":1: 'ground_truth' has no line that starts with A:"),
        ([{**_problem(), "model": "A: 1"}], ":1: 'model' must be an object"),
        ([{**_problem(), "model": {"is_correct": True}}], ":1: model: 'solution' is missing; got 'is_correct'"),
        ([_problem(a="A: 1", b="A: 1"), _problem(a="A: 1")], ":2: 'b' is on some lines and missing on others"),
        ([_problem(a="A: 1"), _problem(a="A: 1", b="A: 1")], ":2: 'b' is on some lines and missing on others"),
        ([{**_problem(), "../up": {"solution": ""}}], ":1: the model name '../up' is not a file name"),
    ],
)
def test_a_gsm8k_file_of_another_shape_is_refused_by_line_and_key(
    tmp_path: Path, records: list[Record], message: str
) -> None:
    source = _source(tmp_path, _lines(*records))
    with pytest.raises(UsageError) as caught:
        convert_gsm8k(source, tmp_path / "out")
    assert f"{source}{message}" in str(caught.value)
    assert not (tmp_path / "out").exists()


# --- humaneval -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["source.jsonl", "source.jsonl.gz"])
def test_humaneval_becomes_a_task_and_the_canonical_recording(tmp_path: Path, name: str) -> None:
    data = _lines(_program(), _program(task_id="Test/1"))
    source = _source(tmp_path, gzip.compress(data, mtime=0) if name.endswith(".gz") else data, name)
    written = convert_humaneval(source, tmp_path / "out")
    assert ["humaneval.jsonl", "canonical.replay.jsonl"] == [path.name for path in written]
    examples, errors = validate_file(written[0])
    assert [] == errors
    assert ["Test/0", "Test/1"] == [example.id for example in examples]
    assert examples[0].prompt.endswith(f"one python code block.\n\n{_program()['prompt']}")
    assert {"tests": _program()["test"], "entry_point": "double"} == examples[0].metadata
    assert ["Test/0", "Test/1"] == [record["id"] for record in _read(written[1])]


@pytest.mark.parametrize("solution", ["    return 2 * n\n", "    '''\n```\n````'''\n    return 2 * n"])
def test_a_canonical_solution_survives_its_fence(tmp_path: Path, solution: str) -> None:
    written = convert_humaneval(_source(tmp_path, _lines(_program(canonical_solution=solution))), tmp_path)
    (recorded,) = _read(written[1])
    program = (_program()["prompt"] + solution).rstrip()
    assert program == post_process("extract_code_block", recorded["output"])


@pytest.mark.parametrize("key", ["task_id", "prompt", "entry_point", "canonical_solution", "test"])
def test_a_humaneval_file_without_a_key_is_refused_by_line_and_key(tmp_path: Path, key: str) -> None:
    bad = {name: value for name, value in _program(task_id="Test/1").items() if name != key}
    source = _source(tmp_path, _lines(_program(), bad))
    with pytest.raises(UsageError) as caught:
        convert_humaneval(source, tmp_path / "out")
    assert f"{source}:2: '{key}' is missing" in str(caught.value)


# --- every kind ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"mmlu", "truthfulqa"}))
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b"", ": holds no record"),
        ("a.jsonl", b"\n# nothing\n", ": holds no record"),
        ("a.jsonl", b"\n{\n", ":2: not JSON: "),
        ("a.jsonl", b"\xff\n", ":1: not JSON: not UTF-8"),
        ("a.jsonl", b"[]\n", ":1: expected an object, got []"),
        ("a.jsonl.gz", b"{}\n", ": not a gzip file"),
        ("a.jsonl.gz", gzip.compress(b"{}\n" * 99, mtime=0)[:-9], ": not a gzip file"),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20, ": not a gzip file"),
    ],
)
def test_a_source_that_is_not_jsonl_is_refused(tmp_path: Path, kind: str, name: str, data: bytes, message: str) -> None:
    source = _source(tmp_path, data, name)
    with pytest.raises(UsageError) as caught:
        KINDS[kind](source, tmp_path / "out")
    assert str(caught.value).startswith(f"{source}{message}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", ["gone.jsonl", "gone.jsonl.gz", "."])
def test_a_source_that_cannot_be_read_is_refused_by_name(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        KINDS[kind](tmp_path / name, tmp_path / "out")
    assert str(caught.value).startswith(f"{tmp_path / name}: cannot be read: ")


def test_a_question_of_mmlu_and_truthfulqa_asks_for_a_letter(tmp_path: Path) -> None:
    (mmlu,) = KINDS["mmlu"](_source(tmp_path, SOURCES["mmlu"], "wet_test.csv"), tmp_path / "out")
    (truths,) = KINDS["truthfulqa"](_source(tmp_path, TRUTHS), tmp_path / "out")
    assert ("wet_test.jsonl", [], []) == (mmlu.name, validate_file(mmlu)[1], validate_file(truths)[1])
    assert ["B"] == _read(mmlu)[0]["targets"]
    assert "What is wet?\nA. Fire\nB. Water\nC. Sand\nD. Air\n" in _read(mmlu)[0]["prompt"]
    right = ["No, white", "No", "No"]
    assert right == [_named(record["prompt"], record["targets"][0]) for record in _read(truths)]


def _named(prompt: str, letter: str) -> str:
    return next(line.removeprefix(f"{letter}. ") for line in prompt.splitlines() if line.startswith(f"{letter}. "))


def test_rows_and_programs_that_are_not_as_published_are_refused(tmp_path: Path) -> None:
    for kind, data, message in [
        ("mmlu", b"What?,a,b,c,d,E\n", ":1: the last cell must be A, B, C or D, got 'E'"),
        ("mmlu", b"What?,a,b,A\n", ":1: 4 cells; expected 6: question, A, B, C, D, answer"),
        ("mmlu", b'"What?', ":1: a quote that does not end"),
        ("mmlu", b"", ": holds no record"),
        ("truthfulqa", b"Question,Answer\na,b\n", ":2: 'Best Answer' is missing; got 'Question', 'Answer'"),
        ("truthfulqa", b"\xff", ":1: not UTF-8; save the file as UTF-8"),
        ("mbpp", _lines(SUM, SUM), ":2: task_id 'mbpp-007' is already used at "),
        ("mbpp", _lines({**SUM, "task_id": "7"}), ":1: 'task_id' must be a number, got '7'"),
        ("mbpp", _lines({**SUM, "test_list": []}), ":1: 'test_list' must be a list of strings, got []"),
        ("mbpp", _lines({**SUM, "test_list": ["assert abs(1)"]}), ":1: 'test_list' calls no function of 'code'"),
        ("mbpp", _lines({**SUM, "code": "def"}), ":1: 'code' or 'test_list' is not Python: "),
    ]:
        source = _source(tmp_path, data)
        with pytest.raises(UsageError) as caught:
            KINDS[kind](source, tmp_path / "out")
        assert str(caught.value).startswith(f"{source}{message}")


# --- through pytest --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("folder", "task"), [("elsewhere", "gsm8k"), ("tasks/grade-school", "grade-school/gsm8k")])
def test_a_recording_answers_wherever_the_task_lies(project: Project, folder: str, task: str) -> None:
    convert_gsm8k(_source(project.path, SOURCES["gsm8k"]), project.path / folder)
    adapter = f"--lm-adapter=replay:{folder}/large.replay.jsonl"
    project.run_pytest(folder, adapter, "--lm-include-per-example").assert_outcomes(passed=1, failed=1)
    scores = {name: record["score"] for name, record in project.examples().items()}
    assert {f"{task}:gsm8k-0000": 0.0, f"{task}:gsm8k-0001": 1.0} == scores


@needs_gsm8k
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=[] if model == "175b_verification" else pytest.mark.slow)
        for model in sorted(PUBLISHED)
    ],
)
def test_every_published_gsm8k_verdict_is_reproduced(project: Project, model: str) -> None:
    written = convert_gsm8k(GSM8K, project.path / "gsm8k")
    recording = project.path / f"gsm8k/{model}.replay.jsonl"
    assert recording in written
    project.run_pytest(
        "gsm8k", f"--lm-adapter=replay:{recording}", "--lm-include-per-example", "-q", "--tb=no", timeout=120
    )
    (row,) = project.board()["tasks"]
    verdicts = {record["id"]: record["score"] == 1.0 for record in row["per_example"]}
    published = [record[model]["is_correct"] for record in _read(GSM8K)]
    assert {f"gsm8k-{index:04}": correct for index, correct in enumerate(published)} == verdicts
    assert (PUBLISHED[model], 1319) == (row["correct"], row["total"])


@needs_humaneval
@pytest.mark.parametrize("count", [24, pytest.param(164, marks=pytest.mark.slow)])
def test_every_canonical_humaneval_solution_passes_its_tests(project: Project, count: int) -> None:
    _, recording = convert_humaneval(HUMANEVAL, project.path / "humaneval")
    options = (f"--lm-adapter=replay:{recording}", f"--lm-sample={count}", "-q")
    project.run_pytest("humaneval", *options, timeout=300).assert_outcomes(passed=count)
    (row,) = project.board()["tasks"]
    assert (count, count, 1.0) == (row["correct"], row["total"], row["score"])


def test_the_solutions_of_mbpp_pass_its_tests(project: Project) -> None:
    other = {**SUM, "task_id": 8, "code": "def plus(a, b):\n    return a - b"}
    _, recording = KINDS["mbpp"](_source(project.path, _lines(SUM, other), "mbpp.source"), project.path / "mbpp")
    project.run_pytest("mbpp", f"--lm-adapter=replay:{recording}", "-q").assert_outcomes(passed=1, failed=1)


def test_the_printed_command_runs_the_converted_task_alone_under_the_name_of_its_file(project: Project) -> None:
    readme = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")
    project.write("published.jsonl", _lines(_problem(big="1 + 1 = 2\nA: 2")).decode())
    project.task("tasks/other.jsonl", project.record("a", "Say yes", "yes"))
    (command,) = re.findall(r"`lmeval (convert gsm8k FILE .*?)`", readme)
    done = project.lmeval(*command.replace("FILE", "published.jsonl").split())
    (paths,) = re.findall(r"^now: pytest (.*)$", done.stdout.str(), re.MULTILINE)
    assert 0 == project.run_pytest(*paths.split()).ret
    assert ["gsm8k"] == [row["task"] for row in project.board()["tasks"]]
