"""``lmeval import lm-eval``: what another run recorded is compared with our own, and damaged folders are refused."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.importers import importer
from pytest_lmeval.records.runfile import board_of, examples_of, read_run
from tests.conftest import RunModule
from tests.sources import PROJECTS
from tests.tables import each_row
from tests.tutorials import Tutorial

HERE = PROJECTS / "harness_outputs"
PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
STAMP = "2026-11-02T10-00-00.000000"
RESULTS, SUMS = f"tiny__one/results_{STAMP}.json", f"tiny__one/samples_sums_{STAMP}.jsonl"
Change = Callable[[Path], object]


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path, run_module: RunModule) -> None:
    assert [0] * 7 == Tutorial(PAGE, HERE).codes(tmp_path / "project", run_module)


def test_an_imported_board_has_the_metrics_that_the_harness_reported(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(importer("lm-eval")(HERE / "outputs", ledger).files[ledger])
    run = read_run(ledger)
    reported = json.loads((HERE / "outputs" / RESULTS).read_text())["results"]
    rows = {row.task: row for row in board_of(run).tasks}

    assert {"acc": reported["towns"]["acc,none"], "acc_norm": reported["towns"]["acc_norm,none"]} == rows[
        "towns"
    ].metrics
    assert reported["sums"]["exact_match_stderr,whole"] == rows["sums"].notes["harness"]["exact_match,whole"]["stderr"]
    assert ("tiny/one", True, True) == (run.adapter, run.complete, run.agrees)
    first = next(result for result in examples_of(run) if result.task == "towns")
    assert [False, True, True] == [option["greedy"] for option in first.details["options"]]
    sums = [result for result in examples_of(run) if result.task == "sums"]
    assert [(" 5, I think", "5", 1.0), ("12", "12", 0.0)] == [
        (result.outputs[0], result.predictions[0], result.score) for result in sums
    ]


@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_numbers_that_json_does_not_have_are_missing_values(tmp_path: Path, number: str) -> None:
    shutil.copytree(HERE / "outputs", tmp_path / "outputs")
    _edit(RESULTS, '"exact_match,whole": 0.0', f'"exact_match,whole": {number}')(tmp_path / "outputs")
    _edit(SUMS, '"exact_match": 1.0', f'"exact_match": {number}')(tmp_path / "outputs")
    _edit(SUMS, '" 5, I think"', f'" \\"{number}"')(tmp_path / "outputs")
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(importer("lm-eval")(tmp_path / "outputs", ledger).files[ledger])
    run = read_run(ledger)
    (row,) = (row for row in board_of(run).tasks if row.task == "sums")
    assert {"exact_match,first": 0.5, "exact_match,whole": None} == row.metrics
    assert {"exact_match,first", "exact_match,whole"} == row.notes["harness"].keys()
    (first, second) = (result for result in examples_of(run) if result.task == "sums")
    assert ("error", None, "exact_match,first is not a number") == (first.status, first.score, first.error)
    assert (f' "{number}',) == first.outputs
    assert ("below", 0.0) == (second.status, second.score)


def _edit(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def _cut(name: str, size: int) -> Change:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def _second(model: str, stamp: str) -> Change:
    def change(folder: Path) -> None:
        results = folder / RESULTS
        results.with_name(f"results_{stamp}.json").write_text(results.read_text().replace("tiny/one", model))

    return change


def _without_samples(folder: Path) -> None:
    for path in folder.rglob("samples_*"):
        path.unlink()


FAULTS: dict[str, tuple[Change, str]] = {
    "torn results": (_cut(RESULTS, 900), f"{RESULTS}: cannot be read: "),
    "torn samples": (_cut(SUMS, 1000), f"{SUMS}:2: not JSON"),
    "fewer samples": (_edit(SUMS, '"doc_id": 1', '"doc_id": 0'), f"{SUMS}: 1 documents; the results are of 2"),
    "a sample twice": (_edit(SUMS, '"whole"', '"first"'), f"{SUMS}:3: document 0 occurs twice for the filter 'first'"),
    "a sample without a field": (_edit(SUMS, '"resps"', '"answers"'), f"{SUMS}:1: not a sample: 'resps' is missing"),
    "a sample without its metric": (_edit(SUMS, '"exact_match": ', '"em": '), "KeyError: 'exact_match'"),
    "arguments of another kind": (
        _edit(SUMS, '"arguments": {', '"arguments": [], "x": {'),
        f"{SUMS}:1: not a sample as",
    ),
    "a newer version": (_edit(RESULTS, '"0.4.13"', '"0.5.0"'), f"{RESULTS}: written by lm_eval 0.5.0; "),
    "no version and no counts": (
        lambda folder: [_edit(RESULTS, *each)(folder) for each in (("lm_eval_version", "x"), ("n-samples", "y"))],
        "lm_eval_version and n-samples are missing; expected files of lm_eval 0.4, which name a version from 0.4.9 on",
    ),
    "no configs": (_edit(RESULTS, '"configs"', '"config_s"'), f"{RESULTS}: configs: expected an object, got None"),
    "no samples": (_without_samples, "no samples_*.jsonl; run lm_eval with --log_samples"),
    "several models": (_second("tiny/two", "later"), "runs of 2 models: tiny/one, tiny/two; name the folder of one"),
    "a task twice": (_second("tiny/one", "later"), f"sums is in results_{STAMP}.json and results_later.json"),
    "nothing": (
        lambda folder: shutil.rmtree(folder / "tiny__one"),
        "no results_*.json; expected a folder that lm_eval",
    ),
}


@each_row("fault", FAULTS)
def test_a_folder_that_is_damaged_or_of_several_runs_is_refused(fault: str) -> None:
    change, expected = FAULTS[fault]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "outputs"
        shutil.copytree(HERE / "outputs", folder)
        change(folder)
        with pytest.raises(UsageError) as refused:
            importer("lm-eval")(folder, Path("ledger.jsonl"))
    assert expected in str(refused.value)


def _as_written_by(version: str, folder: Path) -> None:
    """Rewrite what 0.4.13 wrote as the earlier ``version`` wrote it."""
    own = folder / "tiny__one"
    facts = json.loads((own / f"results_{STAMP}.json").read_text())
    del facts["lm_eval_version"]
    samples = {path: [*map(json.loads, path.read_text().splitlines())] for path in own.glob("samples_*")}
    if version < "0.4.7":
        for sample in (each for found in samples.values() for each in found):
            del sample["filter"], sample["metrics"]
    if version >= "0.4.3":
        (own / f"results_{STAMP}.json").write_text(json.dumps(facts))
        for path, found in samples.items():
            path.write_text("".join(json.dumps(sample) + "\n" for sample in found))
        return
    shutil.rmtree(own)
    for key in ("n-samples", "model_name", "higher_is_better"):
        facts.pop(key, None)
    facts["config"] = {"model": "hf", "model_args": "pretrained=tiny/one,dtype=float"}
    (folder / "results.json").write_text(json.dumps(facts, indent=2))
    for path, found in samples.items():
        for sample in found:
            sample["arguments"] = [[*each.values()] for each in sample["arguments"].values()]
        name = f"pretrained__tiny__one,dtype__float_{path.name.split('_')[1]}.jsonl"
        (folder / name).write_text(json.dumps(found, indent=2))


@pytest.mark.parametrize("version", ["0.4.8", "0.4.6", "0.4.3", "0.4.2"])
def test_folders_of_earlier_versions_give_the_same_results(version: str, tmp_path: Path) -> None:
    folder, ledger = tmp_path / "outputs", tmp_path / "ledger.jsonl"
    shutil.copytree(HERE / "outputs", folder)

    def results() -> list[object]:
        ledger.write_bytes(importer("lm-eval")(folder, ledger).files[ledger])
        run = read_run(ledger)
        rows = [(row.task, row.score, row.metrics, row.notes) for row in board_of(run).tasks]
        return [*rows, *((each.id, each.score, each.outputs, each.hash, each.adapter) for each in examples_of(run))]

    expected = results()
    _as_written_by(version, folder)
    assert expected == results()
    assert "before 0.4.9" == read_run(ledger).manifest["versions"]["lm_eval"]


def test_a_task_without_samples_and_the_score_of_a_group_are_listed(tmp_path: Path) -> None:
    shutil.copytree(HERE / "outputs", tmp_path / "outputs")
    (tmp_path / "outputs" / SUMS).unlink()
    _edit(RESULTS, '"results": {', '"results": {"both": {"acc,none": 0.5},')(tmp_path / "outputs")
    found = importer("lm-eval")(tmp_path / "outputs", tmp_path / "ledger.jsonl")

    assert ["sums"] == [remark.what for remark in found.left_out]
    assert ["both"] == [remark.what for remark in found.differs]
