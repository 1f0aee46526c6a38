"""Files of lm-evaluation-harness that are wrong, and what is said of them."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own

from pytest_lmeval import Completion, LogProb
from pytest_lmeval.cli import main
from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.files import load_file
from pytest_lmeval.formats.harness.aggregates import AGGREGATIONS
from pytest_lmeval.formats.harness.names import index_of, search
from pytest_lmeval.formats.harness.rowset import RowSet
from pytest_lmeval.formats.task import LoadedFile, LoadOptions
from pytest_lmeval.leaderboard.groups import group_scores
from pytest_lmeval.loading import default_registry
from pytest_lmeval.task import Tools, render
from pytest_lmeval.types import Generate
from tests import needs
from tests.tables import each_row

TASK = "task: t\ndataset_path: made/rows\ntest_split: test\ndoc_to_text: 'Q: {{q}}'\ndoc_to_target: a\n"
ROWS = [{"q": "1 + 1?", "a": "2"}, {"q": "2 + 2?", "a": "4"}]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def load(folder: Path, files: dict[str, str], trusted: tuple[Path, ...] | None = None, **more: Any) -> LoadedFile:
    """Return what is made of task files in a folder of their own, asked for by a file beside it."""
    for name, text in files.items():
        (folder / "theirs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "theirs" / name).write_text(text)
    data = folder / "data" / "made__rows"
    data.mkdir(parents=True, exist_ok=True)
    (data / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    wanted = {"from": "theirs", "tasks": ["t"], "data": "data", **more}
    (folder / "x.yaml").write_text(json.dumps({"harness": wanted}))
    options = LoadOptions(trusted=trusted)
    return load_file(folder / "x.yaml", "x", default_registry(), options=options, is_named=True)


# What is added to the task, with the functions it names; what the file that asks for it says; other files.
ADDED: dict[str, tuple[str, str]] = {
    "unknown key": ("doc_to_txt: a", "unknown_field doc_to_txt: t: unknown field 'doc_to_txt'; did you mean"),
    "not YAML": ("a: [", "bad_yaml _document: t.yaml:7: column 1"),
    "unknown filter": (
        "filter_list: [{name: x, filter: [{function: regx}]}]",
        "not_supported filter_list: t: unknown filter 'regx'; did you mean",
    ),
    "custom filter without a function": (
        "filter_list: [{name: x, filter: [{function: custom}]}]",
        "bad_value filter_list: t: custom: expected filter_fn, a !function, got None",
    ),
    "unknown metric": (
        "metric_list: [{metric: rouge}]",
        "not_supported metric_list: t: generate_until has no metric 'rouge'; expected one of exact_match",
    ),
    "metric of another output type": (
        "metric_list: [{metric: exact_match}, {metric: acc}]",
        "not_supported metric_list: t: generate_until has no metric 'acc'",
    ),
    "unknown key of a metric that takes no options": (
        "output_type: multiple_choice\nmetric_list: [{metric: acc, higher_is_beter: false}]",
        "unknown_field metric_list.acc.higher_is_beter: t: unknown field 'higher_is_beter'; did",
    ),
    "missing function of an aggregation": (
        "metric_list: [{metric: acc, aggregation: !function f.g}]",
        "import_error !function: t: f.py beside theirs/: ModuleNotFoundError",
    ),
    "missing module": ("process_docs: !function nowhere.g", "ModuleNotFoundError"),
    "a class": ("class: x", "not_supported class: t: a task that is a Python class"),
    "unsafe code": ("unsafe_code: true", "not_supported unsafe_code: t: a metric that runs"),
    "audio": ("doc_to_audio: [a]", "not_supported doc_to_audio: t: audio is not supported"),
    "images of options": (
        "doc_to_image: [a]\noutput_type: multiple_choice",
        "not_supported doc_to_image: t: images in a task of multiple_choice",
    ),
    "images as text": ("doc_to_image: [a]", "bad_value doc_to_image: t: images need a conversation: set chat"),
    "too few examples": ("num_fewshot: 7", "bad_value num_fewshot: "),
}
CODED: dict[str, tuple[str, str, str]] = {
    "description that is a function": (
        "description: !function f.g",
        "def g(row):\n    return 'x'\n",
        "bad_type description: t: expected str, got FunctionRef(",
    ),
    "rows in no order": (
        "process_docs: !function f.g",
        "def g(docs):\n    return docs.shuffle()\n",
        "f.g: ValueError: shuffle without a seed gives a different order in every run: pass a seed",
    ),
    "option of rows": (
        "process_docs: !function f.g",
        "def g(d):\n    return d.map(len, input_columns=['q'])\n",
        "f.g: TypeError: map of the rows of a task file takes no 'input_columns'",
    ),
    "missing function": ("process_docs: !function f.g", "x = 1\n", "f has no g"),
    "missing function of a metric": (
        "metric_list: [{metric: !function f.g}]",
        "x = 1\n",
        "bad_value !function: t: f has no g",
    ),
    "module that raises": (
        "process_docs: !function f.g",
        "1 / 0\n",
        "import_error !function: t: f.py beside theirs/: ZeroDivisionError",
    ),
    "package that is not installed": (
        "process_docs: !function f.g",
        "import nowhere\ndef g(d):\n    return nowhere.x(d)\n",
        "ImportError: nowhere is not installed: pip install nowhere",
    ),
}
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown task": ({"tasks": ["tt"]}, "is called 'tt'; did you mean 't'?"),
    "no tasks": ({"tasks": []}, "missing_required harness: expected a list tasks"),
    "unknown setting": ({"chats": "off"}, "unknown_field harness.chats: unknown field 'chats'; did you mean 'chat'"),
    "unknown chat": ({"chat": "on"}, "bad_value harness.chat: 'on'; one of off, multiturn, single"),
    "unknown deciding metric": ({"metric": {"t": "exact_match,no"}}, "harness.metric: t: 'exact_match,no'"),
    "example of no task": (
        {"examples": {"u.0": {}}},
        "harness.examples.u.0: expected TASK.NUMBER of a task of this file; there is t",
    ),
    "example that is not there": (
        {"examples": {"t.2": {}}},
        "bad_value harness.examples.t.2: t has 2 documents, from 0 on",
    ),
    "unknown word of an example": (
        {"examples": {"t.0": {"must_pas": True}}},
        "unknown_field harness.examples.t.0.must_pas: unknown field 'must_pas'; did you mean 'must_pass'?",
    ),
    "no such folder": ({"from": "nowhere"}, "bad_value harness.from: nowhere: no such folder"),
}
FILES: dict[str, tuple[dict[str, str], str]] = {
    "circular include": (
        {"t.yaml": TASK + "include: b_yaml\n", "b_yaml": "include: t.yaml\n"},
        "bad_value include: a cycle: t.yaml includes b_yaml includes t.yaml",
    ),
    "missing column": ({"t.yaml": TASK.replace("{{q}}", "{{qu}}")}, "and 1 more like it: template 'Q: {{qu}}': "),
    "wrong key and no data": (
        {"t.yaml": TASK.replace("made/rows", "json") + "generation_kwargs: {until: 3}\n"},
        "bad_value generation_kwargs.until: t: expected texts, got 3",
    ),
    "name of two files": (
        {"t.yaml": TASK, "b/a.yaml": TASK + "num_fewshot: 1\n"},
        "bad_value harness.tasks: t is in two files of ",
    ),
    "member of two files": (
        {"t.yaml": "group: t\ntask: [u]\n", "b.yaml": TASK.replace("task: t", "task: u"), "c.yaml": "task: u\n"},
        "theirs: b.yaml and c.yaml; rename one, or name the file itself",
    ),
    "empty group": ({"t.yaml": "group: t\ntask: []\n"}, "bad_value task: the group t has no members"),
    "missing member": ({"t.yaml": "group: t\ntask: [u]\n"}, "the group t has the member 'u', which does not exist"),
    "member of itself": ({"t.yaml": "group: t\ntask: [t]\n"}, "the group t is a member of itself"),
    "in two groups, differently": (
        {"u.yaml": TASK.replace("task: t", "task: u"), "t.yaml": "group: t\ntask: [u, {task: u, num_fewshot: 1}]\n"},
        "u is listed twice, with different keys: by t and t",
    ),
    "no such split": ({"t.yaml": TASK.replace("test_split: test", "test_split: dev")}, "no split 'dev'; there is test"),
}
FAULTS: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    **{name: ({"t.yaml": f"{TASK}{added}\n"}, {}, says) for name, (added, says) in ADDED.items()},
    **{name: ({"t.yaml": f"{TASK}{added}\n", "f.py": code}, {}, says) for name, (added, code, says) in CODED.items()},
    **{name: ({"t.yaml": TASK}, settings, says) for name, (settings, says) in SETTINGS.items()},
    **{name: (files, {}, says) for name, (files, says) in FILES.items()},
}


def test_what_is_wrong_is_refused_by_name_with_the_reason(tmp_path: Path) -> None:
    missed = {}
    for name, (files, more, says) in FAULTS.items():
        found = load(tmp_path / name, files, **more)
        texts = [error.at("x.yaml") for error in found.errors]
        if not any(says in text for text in texts):
            missed[name] = texts
    assert {} == missed


def test_a_tag_that_is_no_text_is_a_keyword_too(tmp_path: Path) -> None:
    task: Any = load(tmp_path, {"t.yaml": TASK + "tag: 2024\n"}).tasks[0]
    assert ("2024", "generate_until") == task.keywords


def test_functions_are_called_in_trusted_folders_alone(tmp_path: Path) -> None:
    files = {"t.yaml": TASK + "process_docs: !function f.g\n", "f.py": "def g(docs):\n    return docs\n"}
    (error,) = load(tmp_path, files, trusted=(tmp_path / "x.yaml",)).errors
    assert "not_trusted" == error.rule
    assert 2 == len(load(tmp_path, files, trusted=(tmp_path,)).tasks[0].examples)


def test_how_a_text_is_written_is_asked_for_with_each_request(tmp_path: Path) -> None:
    ways: dict[str, tuple[tuple[str, ...], int, dict[str, Any]]] = {
        "": (("\n\n",), 256, {}),
        "until: []": ((), 256, {}),
        "until: x, max_new_tokens: 16, max_gen_toks: 8": (("x",), 8, {}),
        "max_new_tokens: 16, top_p: 0.9, num_beams: 1": (("\n\n",), 16, {}),
        "num_beams: 10": (("\n\n",), 256, {"num_beams": 10}),
        "do_sample: true, temperature: 1, top_p: 0.9": (("\n\n",), 256, {"temperature": 1.0, "top_p": 0.9}),
        "do_sample: false, temperature: 1": (("\n\n",), 256, {}),
    }
    found = {}
    for number, way in enumerate(ways):
        (task,) = load(tmp_path / str(number), {"t.yaml": f"{TASK}generation_kwargs: {{{way}}}\n"}).tasks
        (request,) = task.requests(task.examples[0], render(task.examples[0]))
        assert isinstance(request, Generate)
        found[way] = request.stop, request.max_tokens, dict(request.options)
    assert ways == found


def test_an_index_is_kept_until_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TASK)
    assert ["t"] == [*index_of(tmp_path).tasks]
    assert ["t"] == [*index_of(tmp_path).tasks]
    (tmp_path / "a.yaml").write_text(TASK.replace("task: t", "task: other"))
    assert ["other"] == [*index_of(tmp_path).tasks]


@each_row(
    ("data", "found"),
    [
        (b"task: a\ntag:\n  - x\n  - y\n", {"task": "a", "tag": ["x", "y"]}),
        (b'"task": "a b"\n"include": "../t_yaml"\n', {"task": "a b", "include": "../t_yaml"}),
        (b"task: {a: 1}\ngroup: [x]\n", {"group": ["x"]}),
        (b"class: !function x.Y\ntask: a\n", {"class": True, "task": "a"}),
        (b'{"task": "a", "tag": ["x"]}', {"task": "a", "tag": ["x"]}),
        (b"  task: a\n", {}),
        (b"task: [\n", {}),
    ],
)
def test_names_are_found_without_parsing_and_odd_files_are_parsed(data: bytes, found: dict[str, Any]) -> None:
    assert found == search(data)


OWN_FILTER = """
from lm_eval.filters.extraction import RegexFilter
from lm_eval.api.registry import register_filter


@register_filter("own")
class Own(RegexFilter):
    def apply(self, resps, docs):
        return [[found.upper() for found in given] for given in super().apply(resps, docs)]
"""


def test_a_filter_may_be_a_class_of_the_task_s_own(tmp_path: Path) -> None:
    steps = "filter_list: [{name: own, filter: [{function: !function f.Own, regex_pattern: 'is (\\w+)'}]}]\n"
    (task,) = load(tmp_path, {"t.yaml": TASK + steps, "f.py": OWN_FILTER}).tasks
    score = task.score(task.examples[0], [Completion("it is four")], Tools())
    assert {"exact_match,own": 0.0} == dict(score.details["harness"])
    assert ["FOUR"] == task.pipelines["own"][0](["it is four"], ROWS[0])  # type: ignore[attr-defined]  # of its class


GIVES = "def g(docs):\n    return docs\n"
# Under a condition, too.
SHOUTS = OWN_FILTER.replace('"own"', '"shout"').replace("\n@", "\nif True:\n  @").replace("\nclass", "\n  class")
REGISTERED = f"{SHOUTS}\n\n{GIVES}"
STEPS = "filter_list: [{name: own, filter: [{function: shout, regex_pattern: 'is (\\w+)'}]}]\n"
SHOUT = f"process_docs: !function f.g\n{STEPS}"


@pytest.mark.parametrize("name", ["f.py", "filters.py"])
def test_a_filter_is_known_by_the_name_that_a_module_of_the_task_registers(tmp_path: Path, name: str) -> None:
    files = {
        "t.yaml": TASK + SHOUT,
        "f.py": "from .filters import *\ndef g(docs):\n    return docs\n",
        name: REGISTERED,
    }
    (task,) = load(tmp_path, files).tasks
    assert ["FOUR"] == task.pipelines["own"][0](["it is four"], ROWS[0])  # type: ignore[attr-defined]  # of its class


def test_a_registered_filter_is_one_class_and_misspelt_names_are_told(tmp_path: Path) -> None:
    both = {"t.yaml": TASK + SHOUT, "f.py": GIVES, "a.py": REGISTERED, "b.py": REGISTERED}
    (error,) = load(tmp_path / "both", both).errors
    assert "both register the filter 'shout'" in error.detail
    trusted = tuple(tmp_path / "one" / name for name in ("x.yaml", "theirs/t.yaml", "theirs/f.py"))
    files = {"t.yaml": TASK + SHOUT, "f.py": GIVES, "a.py": REGISTERED}
    (error,) = load(tmp_path / "one", files, trusted=trusted).errors
    assert ("not_trusted", "t: a.Own: Python outside of the trusted paths") == (error.rule, error.detail)
    (error,) = load(tmp_path / "other", {"t.yaml": TASK + SHOUT.replace("shout", "shot"), "f.py": REGISTERED}).errors
    assert "unknown filter 'shot'; did you mean 'shout'?" in error.detail


def test_a_folder_of_tasks_is_checked_without_its_data_or_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "a.yaml": TASK.replace("task: t", "task: plain"),
        "b.yaml": TASK.replace("task: t", "task: coded") + "process_docs: !function f.g\n",
        "c.yaml": TASK.replace("task: t", "task: lacking") + "process_docs: !function f.h\n",
        "d.yaml": TASK.replace("task: t", "task: wide") + "doc_to_audio: [x]\n",
        "e.yaml": TASK.replace("task: t", "task: third") + "process_docs: !function e.g\n",
        "f.py": "raise SystemExit\n\n\ndef g(docs):\n    return docs\n",
        "e.py": "import nowhere\n\n\ndef g(docs):\n    return docs\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert 1 == main(["validate", str(tmp_path)])
    out = capsys.readouterr().out
    assert "c.yaml: lacking: bad_value !function: f has no h\n" in out
    assert "d.yaml: wide: not_supported doc_to_audio: audio is not supported\n" in out
    assert "e.yaml: third: needs nowhere: pip install nowhere\n" in out
    against = "nothing known against 2 (40.0%): 1 with functions, 1 without Python"
    assert f"5 tasks of lm-evaluation-harness: {against}\n" in out
    assert "not imported: 2 module(s) with functions; --import imports those in trusted paths\n" in out
    assert 1 == main(["validate", str(tmp_path), "--format=json"])
    told = json.loads(capsys.readouterr().out)
    assert {"found": 2, "imported": 0} == told["modules"]
    found = told["tasks"]
    assert ["coded", "lacking", "plain", "third", "wide"] == [each["task"] for each in found]
    assert [None, None] == [each["fault"] for each in found if each["task"] in ("coded", "plain")]


def test_a_value_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    (task,) = load(tmp_path, {"t.yaml": TASK + "metric_list: [{metric: bypass}]\n"}).tasks
    with pytest.raises(ScoringError, match="the deciding metric is None, not a number: choose another"):
        task.score(task.examples[0], [Completion("4")], Tools())


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "ter"])
def test_a_metric_of_whole_texts_takes_no_first_of_several(tmp_path: Path, metric: str) -> None:
    needs.installed("sacrebleu")
    text = "output_type: generate_until\nfilter_list: [{name: x, filter: [{function: take_first_k, k: 2}]}]\n"
    (task,) = load(tmp_path, {"t.yaml": f"{TASK}{text}repeats: 3\nmetric_list: [{{metric: {metric}}}]\n"}).tasks
    reason = re.escape(f"{metric} got 2 texts: end the filter with take_first")
    with pytest.raises(ScoringError, match=reason):
        task.score(task.examples[0], [Completion(text) for text in ("2", "3", "4")], Tools())


def test_files_that_a_task_names_are_lines_of_json_whatever_their_suffix(tmp_path: Path) -> None:
    text = TASK.replace("made/rows", "json") + "dataset_kwargs: {data_files: {test: rows.json}}\n"
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (task,) = load(tmp_path, {"t.yaml": text, "rows.json": lines}).tasks
    assert ["Q: 1 + 1?", "Q: 2 + 2?"] == [example.prompt for example in task.examples]


def test_a_metric_of_choices_passes_texts_on_to_an_aggregation_of_the_task_itself(tmp_path: Path) -> None:
    text = TASK + "metric_list: [{metric: acc, aggregation: !function f.share}]\n"
    code = "def share(pairs):\n    return sum(gold == text for gold, text in pairs) / len(pairs)\n"
    (task,) = load(tmp_path, {"t.yaml": text, "f.py": code}).tasks
    scored = [task.score(example, [Completion("2")], Tools()) for example in task.examples]
    assert [["2", "2"], ["4", "2"]] == [score.details["harness"]["acc,none"] for score in scored]


CHOSEN = """task: t
dataset_path: csv
dataset_kwargs: {data_files: {test: rows.csv}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}} {{n}} {{b}}"
doc_to_choice: ['yes', 'no']
doc_to_target: idx
"""


def test_columns_of_csv_have_the_types_that_the_harness_gives_them(tmp_path: Path) -> None:
    rows = "q,n,b,idx\n01,1,True,0\nNA,,false,1\n"
    (task,) = load(tmp_path, {"t.yaml": CHOSEN, "rows.csv": rows}).tasks
    assert ["1.0 1.0 True", "None None False"] == [example.prompt for example in task.examples]
    scored = [task.score(example, [LogProb(-1.0), LogProb(-2.0)], Tools()).value for example in task.examples]
    assert [1.0, 0.0] == scored


def test_a_split_of_csv_and_of_another_format_is_refused(tmp_path: Path) -> None:
    (error,) = load(tmp_path, {"t.yaml": TASK, "../data/made__rows/test.csv": "q,a\n1,1\n"}).errors
    assert "expected files of one format, got test.csv, test.jsonl" in error.detail


@pytest.mark.parametrize("cells", [["1e3", "2"], ["12345678901234567890", "1"], ["1", *["2"] * 9_999, "x"]])
def test_csv_whose_types_are_not_sure_is_refused(tmp_path: Path, cells: list[str]) -> None:
    rows = "q,n,b,idx\n" + "".join(f"a,{cell},b,0\n" for cell in cells)
    (error,) = load(tmp_path, {"t.yaml": CHOSEN, "rows.csv": rows}).errors
    assert "t: rows.csv: the column 'n' has " in error.detail
    assert "convert the file to jsonl or parquet" in error.detail


@pytest.mark.parametrize("value", ["nan", "inf", "1e200"])
def test_figures_that_are_not_finite_are_null_on_the_board(tmp_path: Path, value: str) -> None:
    text = TASK + "metric_list: [{metric: acc}, {metric: cond}]\nprocess_results: !function f.both\n"
    code = f"def both(doc, results):\n    return {{'acc': 1.0, 'cond': float('{value}') if doc['a'] == '2' else 0.5}}\n"
    groups = {"tasks": ["t"], "metrics": [{"metric": "cond"}]}
    (task,) = load(tmp_path, {"t.yaml": text, "f.py": code}).tasks
    scores = [task.score(example, [Completion("")], Tools()) for example in task.examples]
    results: Any = [
        SimpleNamespace(id=str(place), details=score.details, status="passed") for place, score in enumerate(scores)
    ]
    found = task.aggregate(results)
    row: Any = SimpleNamespace(task="t", metrics=found["metrics"], notes={**found["notes"], "groups": {"g": groups}})
    assert found["notes"]["harness"]["cond,none"]["stderr"] is None
    json.dumps([found, group_scores([row])], allow_nan=False)


@pytest.mark.parametrize(
    ("target", "remark"),
    [
        ("[no, no]", ""),
        ("[1, 0]", ""),
        ("[1, 2]", "documents whose target is not one of their choices: 1, first 2 in t.1; "),
        ("[-1, 7]", "documents whose target is not one of their choices: 2, first -1 in t.0; "),
        ("[maybe, no]", "documents whose target is not one of their choices: 1, first 'maybe' in t.0; "),
        ("[[0, 2], [0]]", "documents whose target is not one of their choices: 1, first [0, 2] in t.0; "),
    ],
)
def test_targets_that_are_no_choice_are_remarked_on(tmp_path: Path, target: str, remark: str) -> None:
    rows = "".join(json.dumps({"q": "x", "a": each}) + "\n" for each in yaml.safe_load(target.replace("no", "'no'")))
    text = CHOSEN.replace("path: csv", "path: json").replace(" {{n}} {{b}}", "").replace("idx", "a")
    found = load(tmp_path, {"t.yaml": text.replace("rows.csv", "rows.json"), "rows.json": rows})
    assert () == tuple(error.detail for error in found.errors)
    assert [bool(remark), True] == [bool(found.remarks), all(f"t: {remark}" in said for _, said in found.remarks)]
    (task,) = found.tasks
    for example in task.examples:
        assert task.score(example, [LogProb(-1.0), LogProb(-2.0)], Tools()).value in (0.0, 1.0)


@each_row(
    ("given", "stored"),
    [
        ([1, None, 2.5], [1.0, None, 2.5]),
        ([1, None, True], [1, None, True]),
        ([[1, 2], None, [], [2.5, None]], [[1.0, 2.0], None, [], [2.5, None]]),
        ([[[1]], [[2.5], [3]]], [[[1.0]], [[2.5], [3.0]]]),
        ([1, "a", 2.5], [1, "a", 2.5]),
    ],
)
def test_a_column_has_one_type_of_numbers(given: list[Any], stored: list[Any]) -> None:
    assert repr(stored) == repr(RowSet({"v": each} for each in given)["v"])


@pytest.mark.parametrize(
    ("metrics", "remark"),
    [
        ("{metric: exact_match}", ""),
        ("{metric: exact_match, filter_list: [none, x]}", ""),
        ("{metric: exact_match, filter_list: x}", "no exact_match with the filter x: none of its tasks has one"),
        ("{metric: exactmatch}", "no exactmatch: none of its tasks has one; there is exact_match"),
    ],
)
def test_a_metric_of_a_group_that_no_task_has_is_remarked_on(tmp_path: Path, metrics: str, remark: str) -> None:
    files = {"t.yaml": f"group: t\ntask: [u]\naggregate_metric_list: [{metrics}]\n"}
    found = load(tmp_path, {**files, "u.yaml": TASK.replace("task: t", "task: u")})
    assert 1 == len(found.tasks)
    assert [f"the group t has {remark}"] * bool(remark) == [said[: 16 + len(remark)] for _, said in found.remarks]


@each_row(
    ("target", "expected"),
    [
        ("['x', 'y']", ("x", "y")), ("7", ("7",)), ("[7", ("[7",)), ("plain", ("plain",)),
    ],
)  # fmt: skip
def test_a_target_that_reads_as_a_list_is_several_and_any_other_text_is_one(
    target: str, expected: tuple[str, ...]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = TASK.replace("doc_to_target: a", f'doc_to_target: "{target}"')
        (task,) = load(Path(folder), {"t.yaml": text}).tasks
    assert {expected} == {example.targets for example in task.examples}


@pytest.mark.parametrize(
    ("labels", "is_refused"), [((0, 1), False), ((1, 2), False), ((0, 2), True), ((0, 1, 2), True)]
)
def test_the_binary_f1_takes_the_label_1_and_one_other(labels: tuple[int, ...], is_refused: bool) -> None:
    pairs = [(label, label) for label in labels]
    if is_refused:
        with pytest.raises(ValueError, match="f1 takes the labels 0 and 1"):
            AGGREGATIONS["f1"](pairs)
    else:
        assert 1.0 == AGGREGATIONS["f1"](pairs)
