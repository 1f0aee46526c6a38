"""Mistakes of people who are new here: each is said with the place, what is wrong, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pytest

# Imported once: pytester forgets what a test imported, and yaml's part in C cannot be imported twice.
import yaml as _yaml  # type: ignore[import-untyped]  # noqa: F401  # for that alone

from pytest_lmeval.cli import main

if TYPE_CHECKING:
    from tests.conftest import Project

GOOD = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'
STRICT = (
    '{"task_id": "a", "category": "arithmetic", "prompt": "say: x", "targets": ["x"], "metric_name": "exact_match", '
    '"post_process": "none"}\n'
)
YAML = """
key: capitals
display_name: Capitals
definition:
  dataset: {path: rows.csv}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "say: {{ sample.question }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.answer }}"}]
"""
JSON_ROWS = '{"question": "x", "answer": "x"}\n'
ROWS = "question,answer\nx,x\n"
CLASS = """
from pytest_lmeval.tasks import BaseTask, AccuracyCompletion

class Words(BaseTask):
    NAME = "words"
    DATASET_PATH = "rows"
    SAMPLE_SPLIT = "rows"
    METRICS = [AccuracyCompletion]

    def _get_instruction_text(self, item):
        return "say: x"

    def _get_ground_truth(self, item):
        return "x"
"""
LM_EVAL = "task: gsm8k\ndataset_path: gsm8k\ndoc_to_text: 'x'\ndoc_to_target: 'y'\n"
TALKS = """
import json
from pathlib import Path
from pytest_lmeval.tasks import Task

ROWS = [json.loads(line) for line in Path(__file__).with_suffix(".json" + "l").read_text().splitlines()]

class T(Task):
    eval_type = "generative"

    def num_examples(self):
        return len(ROWS)

    def get_example(self, i):
        return {"messages": [{"role": "user", "content": "say: x"}, {"role": "assistant", "content": "x"}]}

    def evaluate(self, conversation, answer):
        return answer == "x"
"""
FIXTURE = """
import pytest

@pytest.fixture{}
def lm_adapter():
    return lambda prompts: prompts
"""
OWN_METRIC = """
def pytest_lmeval_register(registry):
    registry.add_metric("own_metric", lambda prediction, targets, extras: 1.0)
"""
VALIDATE = "lmeval validate tasks"
RUN = "pytest tasks --lm-adapter=model:Model"
T = "tasks/t.jsonl"


class Mistake(NamedTuple):
    """Files and a command as their author left them, and the parts of the message that teach."""

    files: Mapping[str, str | bytes]
    command: str
    code: int
    says: tuple[str, ...]


def compact(old: str, new: str, *says: str) -> Mistake:
    return Mistake({T: GOOD.replace(old, new)}, VALIDATE, 1, says)


def strict(old: str, new: str, *says: str) -> Mistake:
    return Mistake({T: STRICT.replace(old, new)}, VALIDATE, 1, says)


def yaml(old: str, new: str, *says: str) -> Mistake:
    assert old in YAML
    return Mistake({"tasks/t.yaml": YAML.replace(old, new), "tasks/rows.csv": ROWS}, VALIDATE, 1, says)


def klass(old: str, new: str, *says: str) -> Mistake:
    assert old in CLASS
    return Mistake({"tasks/task_t.py": CLASS.replace(old, new), "tasks/rows.csv": ROWS}, VALIDATE, 1, says)


def command(command: str, code: int, *says: str, **files: str | bytes) -> Mistake:
    return Mistake({T: GOOD, **files}, command, code, says)


MISTAKES = {
    "promt": compact('"prompt"', '"promt"', "t.jsonl:1: missing_required prompt", "did you mean 'prompt' by 'promt'?"),
    "extra": compact("}", ', "extra": {}}', "t.jsonl:1: unknown_field extra", "did you mean 'extras'?"),
    "expected": compact('"targets"', '"expected"', "missing_required targets", "required: prompt, targets, metric"),
    "metadata": compact("}", ', "metadata": {}}', "in this dialect it is called 'extras'"),
    "threshold in the record": compact(
        "}", ', "threshold": 0.5}', 'write it into extras: "extras": {"threshold": ...}'
    ),
    "prompts": compact('"say: x"', '["say: x"]', "bad_type prompt", "one text per record", "docs/conversations.md"),
    "messages": compact('"say: x"', '[{"role": "user", "content": "x"}]', "bad_type prompt", "docs/conversations.md"),
    "targets is text": compact('["x"]', '"x"', "bad_type targets", 'write ["..."]'),
    "a target is a number": compact('["x"]', "[4]", "at index 0", 'write "4"'),
    "metric misspelt": compact("exact_match", "exact_mach", "did you mean 'exact_match'?", "choices: accuracy"),
    "threshold in percent": compact("}", ', "extras": {"threshold": 80}}', "expected a number in [0, 1], got 80"),
    "threshhold": compact("}", ', "extras": {"threshhold": 0.8}}', "t.jsonl:1: unknown_field", "mean 'threshold'?"),
    "two metrics": compact(
        GOOD,
        GOOD + GOOD.replace("exact_match", "rouge_l").replace('"a"', '"b"'),
        "t.jsonl:2: bad_value metric",
        "use one file for each metric",
    ),
    "trailing comma": compact("}", ",}", "t.jsonl:1: bad_json", "remove the comma before the bracket"),
    "commas between lines": compact("}\n", "},\n" + GOOD, "remove the comma at the end of the line"),
    "single quotes": compact('"', "'", "t.jsonl:1: bad_json", "JSON has double quotes"),
    "True": compact("}", ', "extras": {"must_pass": True}}', "JSON writes true"),
    "array": compact(GOOD, f"[{GOOD.strip()},\n{GOOD.strip()}]\n", "t.jsonl:1: ", "one JSON array of 2", "1 bad"),
    "pretty object": compact(GOOD, json.dumps(json.loads(GOOD), indent=2), "one JSON object over several", "1 bad"),
    "half an object": compact(
        '"metric": "exact_match"}', "", "the line ends here, and an object has to be on one line"
    ),
    "UTF-16": Mistake({T: GOOD.encode("utf-16")}, VALIDATE, 1, ("t.jsonl:1: ", "UTF-16; save it as UTF-8", "1 bad")),
    "Latin-1": Mistake(
        {T: GOOD.replace("say", "\xe9").encode("latin-1")}, VALIDATE, 1, ("byte 0xe9 at column 24", "as UTF-8")
    ),
    "BOM": Mistake({T: b"\xef\xbb\xbf" + GOOD.encode()}, VALIDATE, 0, ("1 valid record(s), 0 bad",)),
    "OpenAI's evals": compact(GOOD, '{"input": [], "ideal": "x"}\n', "OpenAI's evals: https://"),
    "question and answer": compact(
        GOOD,
        '{"question": "x", "answer": "x"}\n',
        "a row of a data set: name its file in a data file with a prompt: https://",
    ),
    "input and target": compact(GOOD, '{"input": "x", "target": "x"}\n', "inspect_ai: https://"),
    "a conversation": compact(GOOD, '{"messages": []}\n', "a conversation: https://"),
    "instruction and output": compact(
        GOOD, '{"instruction": "x", "input": "", "output": "x"}\n', "a record to train on: https://"
    ),
    "csv called JSONL": compact(
        GOOD, "question,answer\nx,y\n", "an object in braces on one line, got 'question,answer'"
    ),
    "csv for pytest": Mistake(
        {"rows.csv": ROWS},
        "pytest rows.csv --lm-adapter=model:Model",
        4,
        ("rows.csv: not a task file; expected one of .jsonl, .py, .yaml", "/docs/questions.md"),
    ),
    "csv for validate": Mistake(
        {"rows.csv": ROWS}, "lmeval validate rows.csv", 2, ("expected one of .jsonl", "/docs/questions.md")
    ),
    "json, validated": Mistake({"tasks/t.json": GOOD}, VALIDATE, 1, ("not a task: tasks/t.json", "end in .jsonl")),
    "json, run": Mistake({"tasks/t.json": GOOD}, RUN, 5, ("not a task: tasks/t.json", "no task file in tasks")),
    "yml": Mistake({"tasks/t.yml": YAML}, VALIDATE, 1, ("tasks/t.yml (task files in YAML end in .yaml)",)),
    "folder misspelt": command("lmeval validate taks", 2, "taks: no such file or folder; did you mean 'tasks'?"),
    "categry": strict('"category"', '"categry"', "t.jsonl:1: ", "did you mean 'category' by 'categry'?"),
    "tags in a strict record": strict("}", ', "tags": ["a"]}', 'write it into metadata: "metadata": {"tags": ...}'),
    "no post_process": strict(', "post_process": "none"', "", "missing_required post_process"),
    "category unknown": strict('"arithmetic"', '"maths"', "'maths' is not one of arithmetic"),
    "pair": strict('"exact_match"', '"rouge_l"', "category 'arithmetic' allows exact_match, f1; got 'rouge_l'"),
    "id with a blank": strict('"a"', '"a b"', "task_id: 'a b' has characters other than"),
    "few-shots": strict(
        "}", ', "few_shot_examples": [{"question": "x", "answer": "y"}]}', "expected exactly {prompt, completion}"
    ),
    "definitoin": yaml("definition:", "definitoin:", "t.yaml:4: ", "did you mean 'definition'?"),
    "tab": yaml("  dataset:", "\tdataset:", "t.yaml:5: ", "indent with blanks, not tabs"),
    "template without quotes": yaml('"{{ sample.answer }}"}', "{{ sample.answer }}}", "t.yaml:9: ", "quote a template"),
    "string_equal": yaml("string_equals", "string_equal", "t.yaml:9: ", "did you mean 'string_equals'?"),
    "column misspelt": yaml("sample.answer", "sample.anwser", "no column 'anwser'; did you mean 'answer'?"),
    "no such rows": yaml("rows.csv", "row.csv", "t.yaml:5: ", "row.csv: cannot be read"),
    "no key": yaml("key: capitals\n", "", "t.yaml:1: ", "the field 'key' is required here"),
    "lm-eval, named": Mistake(
        {"tasks/t.yaml": LM_EVAL},
        "lmeval validate tasks/t.yaml",
        1,
        ("t.yaml:1: ", "gsm8k: expected test_split or validation_split"),
    ),
    "lm-eval, in a folder": Mistake({"tasks/t.yaml": LM_EVAL}, VALIDATE, 0, ("with the key harness: https://",)),
    "promptfoo": Mistake(
        {"t.yaml": "prompts: [x]\nproviders: [y]\ntests: []\n"},
        "lmeval validate t.yaml",
        1,
        ("t.yaml:1: ", "promptfoo: https://"),
    ),
    "METRIC": klass("    METRICS =", "    METRIC =", "task_t.py:4: ", "did you mean 'METRICS' by 'METRIC'?"),
    "_get_instruction": klass("_get_instruction_text", "_get_instruction", "did you mean '_get_instruction_text'"),
    "SAMPLE_SPLITS": klass("SAMPLE_SPLIT =", "SAMPLE_SPLITS =", "did you mean 'SAMPLE_SPLIT' by 'SAMPLE_SPLITS'?"),
    "Name": klass("    NAME =", "    Name =", "expected a BaseTask class with a NAME", "found only helpers: Words"),
    "no such data": klass('DATASET_PATH = "rows"', 'DATASET_PATH = "r.csv"', "task_t.py:4: ", "Words.DATASET_PATH"),
    "import": klass("class Words", "import no_such\nclass Words", "task_t.py:4: import_error", "'no_such'"),
    "name of a metric": klass("AccuracyCompletion\n", "Acuracy\n", "cannot import name 'Acuracy'"),
    "key of an item": klass('return "x"', 'return item["anwser"]', "KeyError: 'anwser'", "has question, answer"),
    "name of a Python file": Mistake(
        {"tasks/words.py": CLASS, "tasks/rows.csv": ROWS}, RUN, 5, ("no task file in tasks", "task_*.py")
    ),
    "evalute": Mistake(
        {"tasks/task_t.py": TALKS.replace("def evaluate", "def evalute"), "tasks/task_t.jsonl": '{"q": 1}\n'},
        VALIDATE,
        1,
        ("required: eval_type", "did you mean 'evaluate' by 'evalute'?"),
    ),
    "no adapter": command("pytest tasks", 4, "no adapter: name the model with --lm-adapter=SPEC"),
    "bare pytest": command("pytest", 5, "the tasks in tasks were not collected", "pytest tasks --lm-adapter=SPEC"),
    "adapter is a file": command("pytest tasks --lm-adapter=model.py:Model", 4, "a name, not a path: model:Model"),
    "adapter is a module": command("pytest tasks --lm-adapter=model", 4, "did you mean the object 'model:NAME'"),
    "adapter is a model": command("pytest tasks --lm-adapter=gpt-4o", 4, "OpenAI's interface, write openai:MODEL"),
    "slash for colon": command("pytest tasks --lm-adapter=openai/gpt-4o", 4, "did you mean 'openai:gpt-4o'?"),
    "no API key": command("pytest tasks --lm-adapter=openai:gpt-4o", 4, "OPENAI_API_KEY", "api_key_env"),
    "adapter option": command(
        "pytest tasks --lm-adapter=openai:m --lm-adapter-arg=base_ulr=x", 4, "did you mean 'base_url'?"
    ),
    "toy has no options": command("pytest tasks --lm-adapter=toy --lm-adapter-arg=t=0", 4, "takes no arguments"),
    "floor of an unknown task": command(RUN + " --lm-min-score=tt=0.8", 4, "'tt'; did you mean 't'?"),
    "threshold of an unknown metric": command(RUN + " --lm-threshold=exact_mach=1", 4, "did you mean 'exact_match'?"),
    "limit 0": command(RUN + " --lm-limit=0", 4, "--lm-limit", "expected a whole number >= 1, got '0'"),
    "gate misspelt": command(RUN + " --lm-gate=basline", 4, "--lm-gate", "choose from", "examples"),
    "gate without baseline": command(RUN + " --lm-gate=baseline", 4, "needs --lm-baseline PATH"),
    "option of nobody": command(RUN + " --lm-zebra=3", 4, "unrecognized arguments: --lm-zebra=3"),
    "-k": command(RUN + " -k nothing", 5, "-k 'nothing' matches none of 1", "--collect-only"),
    "-m": command(RUN + " -m hard", 5, "-m 'hard' matches none of 1", "--collect-only"),
    "node id": command(
        "pytest tasks/t.jsonl::b --lm-adapter=toy", 4, "t.jsonl::b", "pytest --collect-only -q tasks/t.jsonl lists"
    ),
    "baseline is a task": command(RUN + f" --lm-baseline={T}", 4, "t.jsonl: a task file; expected a leaderboard.json"),
    "baseline is other JSON": command(
        RUN + " --lm-baseline=x.json", 4, "expected a leaderboard.json", **{"x.json": "{}"}
    ),
    "update of what": command(RUN + " --lm-update-baseline", 4, "needs --lm-baseline PATH, the file to write"),
    "scope of a fixture": command(
        "pytest tasks",
        4,
        "conftest.py:4: the fixture lm_adapter",
        "scope='session'",
        **{"conftest.py": FIXTURE.format("")},
    ),
    "fixture gives a function": command(
        "pytest tasks",
        3,
        "complete, generate_requests, generate",
        **{"conftest.py": FIXTURE.format("(scope='session')")},
    ),
    "adapter returns a text": command(
        "pytest tasks --lm-adapter=own:Model",
        3,
        "adapter Model returned str",
        "expected a list",
        **{"own.py": "class Model:\n    def generate(self, prompt):\n        return 'x'\n"},
    ),
    "generate of one prompt": command(
        "pytest tasks --lm-adapter=own:Model",
        3,
        "no attribute 'upper'",
        "generate receives a list of prompts and returns a list of answers",
        **{"own.py": "class Model:\n    def generate(self, prompt):\n        return [prompt.upper()]\n"},
    ),
    "complete of a text": command(
        "pytest tasks --lm-adapter=own:Model",
        3,
        "'Generate' is not iterable",
        "it receives a request, whose text is request.text",
        **{"own.py": "class Model:\n    async def complete(self, prompt):\n        return 'x' in prompt\n"},
    ),
    "complete is not async": Mistake(
        {
            T: GOOD + GOOD.replace('"a"', '"b"'),
            "own.py": "class Model:\n    def complete(self, request):\n        return 'x'\n",
        },
        "pytest tasks --lm-adapter=own:Model",
        3,
        (
            "  stopped because no answer can be used: adapter Model: complete returned str",
            "(error): the reason is under the leaderboard",
        ),
    ),
    "hook in a test file": command(
        "pytest test_own.py -Wdefault",
        0,
        "pytest_lmeval_register is a hook: pytest calls it in a conftest.py or a plugin, never in a test file",
        **{"test_own.py": f"{OWN_METRIC}\ndef test_it():\n    pass\n"},
    ),
    "key of a judge": command(
        "pytest tasks --lm-adapter=toy --lm-judge=openai:gpt-4o",
        4,
        "--lm-judge=openai:gpt-4o: adapter 'openai': environment variable OPENAI_API_KEY",
        "--lm-judge-arg=NAME=VALUE gives the judge an option",
    ),
    "backslash": command("pytest tasks\\t.jsonl --lm-adapter=toy", 4, "did you mean tasks/t.jsonl?"),
    "only data": Mistake(
        {"tasks/rows.csv": ROWS}, RUN, 5, ("tasks/rows.csv is data: lmeval init --from tasks/rows.csv makes a task",)
    ),
    "adapter without a method": command(
        "pytest tasks --lm-adapter=own:Model",
        4,
        "without any of the methods complete, generate_requests, generate",
        **{"own.py": "class Model:\n    def ask(self, prompt):\n        return 'x'\n"},
    ),
    "lmeval test: task": command("lmeval test tt --lm-adapter=toy", 2, "unknown task 'tt'; did you mean 't'?"),
    "lmeval test: adapter": command("lmeval test t", 2, "required: --lm-adapter"),
    "command": command("lmeval validat tasks", 2, "'validat'", "validate"),
    "lmeval diff of what is not there": command("lmeval diff reports base.json", 2, "reports: cannot be read"),
    "wildcard": command("lmeval validate tasks/*.yaml", 2, "tasks/*.yaml: no such file or folder"),
    "no such config": command(RUN + " --lm-config=c.yaml", 4, "c.yaml: cannot be read"),
    "__init__.py": command(
        RUN,
        2,
        "tasks/__init__.py:1: import_error",
        "No module named 'no_such'",
        **{"tasks/__init__.py": "import no_such\n"},
    ),
    "metric of a conftest": Mistake(
        {T: GOOD.replace("exact_match", "own_metric"), "conftest.py": OWN_METRIC},
        VALIDATE,
        1,
        (
            "unknown metric 'own_metric'",
            "conftest.py registers names for runs of pytest only",
            "[tool.lmeval] plugins",
        ),
    ),
    "data by a computed path": Mistake(
        {"tasks/task_t.py": CLASS.replace('"rows"', '"d" + ""'), "tasks/d.jsonl": '{"q": 1}\n'},
        RUN,
        0,
        ("not a task: tasks/d.jsonl (its records have q", "1 passed"),
    ),
    "data of a broken class": Mistake(
        {"tasks/task_t.py": CLASS.replace("[AccuracyCompletion]", "[No]"), "tasks/rows.jsonl": '{"question": "x"}\n'},
        RUN,
        2,
        ("task_t.py:8: import_error", "Interrupted: 1 bad task file"),
    ),
    "data of YAML, in braces": Mistake(
        {"tasks/t.yaml": YAML.replace("rows.csv", "d.jsonl"), "tasks/d.jsonl": JSON_ROWS}, RUN, 0, ("1 passed",)
    ),
    "data of broken YAML": Mistake(
        {
            "tasks/t.yaml": YAML.replace("rows.csv", "d.jsonl").replace("scorers", "scorer"),
            "tasks/d.jsonl": JSON_ROWS,
        },
        RUN,
        2,
        ("tasks/t.yaml:9: ", "Interrupted: 1 bad task file"),
    ),
}


def test_what_the_mistakes_are_made_in_is_right(project: Project) -> None:
    files = {T: GOOD, "tasks/s.jsonl": STRICT, "tasks/y.yaml": YAML, "tasks/task_t.py": CLASS, "tasks/rows.csv": ROWS}
    for path, content in files.items():
        project.write(path, content)
    project.lmeval("validate", "tasks").stdout.fnmatch_lines(["4 file(s): 4 valid record(s), 0 bad"])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_a_new_user_is_said_with_place_fault_and_remedy(
    project: Project, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    for path, content in mistake.files.items():
        project.write(path, content)
    program, *arguments = mistake.command.split()
    if program == "lmeval" and not any(path.endswith(".py") for path in mistake.files):
        code, text = lmeval(arguments, capsys)
    else:
        result = project.lmeval(*arguments) if program == "lmeval" else project.run_pytest(*arguments)
        code, text = int(result.ret), result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert (mistake.code, []) == (code, [part for part in mistake.says if part not in text])


def lmeval(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str]:
    """Run a command that imports nothing of the project's in this process; return its exit code and what it said."""
    try:
        code: int | str | None = main(arguments)
    except SystemExit as ended:
        code = ended.code
    return code, "".join(capsys.readouterr())
