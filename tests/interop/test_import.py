"""``lmeval import``: what comes of another tool's files is valid, runs as there, and nothing is dropped silently."""

from __future__ import annotations

import json
import tempfile
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from pytest_lmeval import validate_file
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.parse import parse_yaml
from pytest_lmeval.interop.importers import Imported, importer
from tests import needs
from tests.conftest import Project
from tests.sources import PROJECTS
from tests.tables import each_row

HERE = PROJECTS / "promptfoo"
# The outcome of each test in promptfoo 0.121.1 with its provider echo, by prompt. The outcomes of `shared`, of `fixed`
# and of the last test of `texts` follow from its documentation.
OUTCOMES = {
    "texts": "10111",
    "product": "11 11 00 00",
    "threshold": "101",
    "csv": "1101",
    "json": "101011",
    "shared": "10",
    "fixed": "10",
}


def _imported(name: str, destination: Path = Path("out")) -> Imported:
    return importer("promptfoo")(HERE / f"{name}.yaml", destination)


@each_row("name", [path.stem for path in sorted(HERE.glob("*.yaml"))])
def test_what_is_written_for_a_config_is_valid(name: str) -> None:
    needs.installed("jsonschema")
    with tempfile.TemporaryDirectory() as folder:
        files = _imported(name, Path(folder)).files
        for path, data in files.items():
            path.write_bytes(data)
        tasks = [path for path in files if path.suffix == ".yaml"]
        assert [] == [error for path in tasks for error in validate_file(path)[1]]
        assert tasks


def test_imported_tests_pass_and_fail_as_they_do_in_promptfoo(project: Project) -> None:
    needs.installed("jsonschema")
    project.copy("promptfoo")
    for name in OUTCOMES:
        assert 1 == project.lmeval("import", "promptfoo", f"{name}.yaml", "-o", f"tasks/{name}").ret
    project.run_pytest("tasks", "--lm-adapter=echo_model:Echo", "--lm-gate=none")
    found: dict[str, dict[tuple[object, ...], str]] = {}
    for line in (project.path / "reports/ledger.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "status" in entry:
            number = [int(part) for part in entry["id"].partition("-")[0].split(".")]
            of_config = found.setdefault(entry["task"].partition("/")[0], {})
            of_config[(*number, entry["task"].partition("@")[2])] = entry["status"]
    outcomes = {
        name: "".join("1" if of[key] == "passed" else "0" for key in sorted(of, key=str)) for name, of in found.items()
    }
    assert {name: outcome.replace(" ", "") for name, outcome in OUTCOMES.items()} == outcomes


@each_row(
    ("name", "line", "said"),
    [
        ("programs", 1, "prompts[1]: prompt.js is a program"),
        ("programs", 8, "javascript: code is not run"),
        ("programs", 10, "similar: similarity of embeddings"),
        ("programs", 15, "unknown assertion 'contians'"),
        ("programs", 17, "transform"),
        ("programs", 22, "none of its assertions has a counterpart"),
        ("programs", 24, "without assertions it always passes"),
        ("programs", 25, "tests.py is a program"),
        ("outside", 1, "leads out of the config's folder"),
        ("outside", 4, "leads out of the config's folder"),
        ("outside", 9, "assert-set: write its assertions into the test"),
        ("outside", 10, "not a file in the config's folder"),
        ("shared", 11, "metadata: tests have no metadata here"),
        ("providers", 15, "no adapter here has this name"),
        ("providers", 8, "config.seed: adapter 'anthropic': unknown option 'seed'"),
        ("providers", 8, "expected a number from 0 to 1"),
        ("providers", 12, "no adapter here has this name"),
        ("dropped", 3, """'{% if premium === "yes" %}': only names and plain filters"""),
        ("dropped", 4, "'{{ items | dump }}': only names and plain filters"),
        ("dropped", 5, "tests.csv: prompts are read from text, YAML and JSON"),
        ("dropped", 6, "evaluateOptions.repeat: an option of the run: --lm-repeats=N"),
        ("dropped", 7, "$ref is not followed"),
        ("dropped", 9, "scenarios: write each combination as a test"),
        ("dropped", 16, "$ref '#/assertionTemplates/polite' is not followed"),
        ("dropped", 17, "not a regular expression of Python: unknown extension ?<n"),
        ("dropped", 18, "[] and [^] of JavaScript mean something else in Python"),
        ("dropped", 19, "a transform is a program"),
        ("dropped", 20, "the template cannot be filled"),
        ("dropped", 21, "$ref '#/tests/0' is not followed"),
        ("dropped", 22, "$ref '#/x' is not followed"),
        ("dropped", 24, "vars: expected a mapping"),
        ("dropped", 27, "options.transform: a transform is a program"),
        ("dropped", 30, "options.prefix: write the text into the prompt"),
        ("dropped", 32, "more than 100,000 combinations of variables"),
    ],
)
def test_what_has_no_counterpart_is_listed_by_its_line(name: str, line: int, said: str) -> None:
    found = [str(each) for each in _imported(name).left_out]
    assert any(f"{name}.yaml:{line}: " in each and said in each for each in found), "\n".join(found)


def test_the_description_weights_and_thresholds_are_kept() -> None:
    files = _imported("shared").files
    text = files[Path("out/shared-2.yaml")].decode()
    document = parse_yaml(text.encode())
    assert text.startswith("# Texts that are said, and said again\n")
    assert [{"id": "2", "text": "tea"}] == document["rows"]
    assert [("please", 2)] == [(each["target"], each["weight"]) for each in document["checks"]]
    assert 1.0 == parse_yaml(files[Path("out/shared-1.yaml")])["threshold"]


@each_row("name", [path.stem for path in sorted(HERE.glob("*.yaml"))])
def test_each_profile_has_options_that_its_adapter_takes(name: str) -> None:
    data = _imported(name).files.get(Path("out/profiles.toml"), b"[tool.lmeval.adapters]")
    for profile in tomllib.loads(data.decode())["tool"]["lmeval"]["adapters"].values():
        adapter = profile.pop("adapter").partition(":")[0]
        import_module(f"pytest_lmeval.adapters.{adapter}.options").read_options(profile)


def test_providers_become_profiles_without_keys() -> None:
    imported = _imported("providers")
    data = imported.files[Path("out/profiles.toml")]
    profiles = tomllib.loads(data.decode())["tool"]["lmeval"]["adapters"]
    assert b"sk-secret" not in data
    assert ["gpt-4o-mini", "careful", "claude-opus-5-5"] == [*profiles][:3]
    assert {
        "adapter": "openai:gpt-4o",
        "temperature": 0.2,
        "max_tokens": 100,
        "max_tokens_field": "max_completion_tokens",
        "api_key_env": "MY_KEY",
        "extra_body": {"response_format": {"type": "json_object"}},
    } == profiles["careful"]
    assert {"adapter": "litellm:bedrock/anthropic.claude-v2", "temperature": 0.1} == profiles["anthropic.claude-v2"]
    assert any("a key is never written to a file" in each.why for each in imported.left_out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompts: [a\n", ":2: column 1: "),
        ("a: &a {b: 1}\ntests:\n  - <<: *a\n", "c.yaml:3: column 5: merge keys"),
        ("- 1\n", "expected a mapping"),
        ("tests: []\n", "nothing was written"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UsageError, match=said):
        importer("promptfoo")(tmp_path / "c.yaml", tmp_path / "out")


def test_evals_of_openai_become_data_files(tmp_path: Path) -> None:
    sample = {
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}],
        "ideal": "4",
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(sample) + "\n" + json.dumps({"input": "x"}) + "\n")
    spec = "sums:\n  id: sums.dev\nsums.dev:\n  class: evals.elsuite.basic.includes:Includes\n"
    spec += "  args: {samples_jsonl: s.jsonl}\n"
    (tmp_path / "e.yaml").write_text(spec + "fuzzy.dev:\n  class: evals.elsuite.basic.fuzzy_match:FuzzyMatch\n")
    imported = importer("openai-evals")(tmp_path / "e.yaml", tmp_path)
    for path, data in imported.files.items():
        path.write_bytes(data)
    assert [] == list(validate_file(tmp_path / "sums-dev.yaml")[1])
    assert [("e.yaml", 6), ("s.jsonl", 2)] == sorted((each.file, each.line) for each in imported.left_out)


def test_evals_whose_names_become_one_keep_files_of_their_own(project: Project) -> None:
    project.write("s1.jsonl", '{"input": "q1", "ideal": "one"}\n{"input": "q2", "ideal": ["two", "zwei"]}\n')
    project.write("s2.jsonl", '{"input": "q3", "ideal": "three"}\n')
    evals = {"a": "s1", "a-1": "s2", "my.eval": "s2", "my-eval": "s2", "My-Eval": "s2"}
    lines = [
        f"{name}: {{class: 'x:Match', args: {{samples_jsonl: {samples}.jsonl}}}}\n" for name, samples in evals.items()
    ]
    project.write("e.yaml", "".join(lines))
    done = project.lmeval("import", "openai-evals", "e.yaml", "-o", "tasks")

    rows = {path.name: path.read_text() for path in sorted((project.path / "tasks").glob("*.rows.jsonl"))}
    stems = ["My-Eval-3", "a-1-2", "a-1", "a-2", "my-eval-2", "my-eval"]
    assert [f"{stem}.rows.jsonl" for stem in stems] == [*rows]
    assert ["q3", "q3", "q1", "q2", "q3", "q3"] == [json.loads(each)["message_1"] for each in rows.values()]
    assert "differs: e.yaml:2: a-1: another eval has the file a-1.yaml, so this one is a-1-2.yaml" in done.outlines


@each_row(
    ("args", "said"),
    [
        ("[1]", "args: expected a mapping, got [1]"),
        ("hello", "args: expected a mapping, got 'hello'"),
    ],
)
def test_args_of_another_type_are_left_out(args: str, said: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "e.yaml")
        source.write_text(f"one:\n  class: x:Match\n  args: {args}\n")
        with pytest.raises(UsageError) as refused:
            importer("openai-evals")(source, Path(folder))
        assert f"left out: e.yaml:1: one: {said}" in str(refused.value)
