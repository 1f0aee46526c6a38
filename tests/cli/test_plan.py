"""``lmeval plan``: what a suite could show, before it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_lmeval.compare.noise import Noise, measured_noise
from pytest_lmeval.compare.plan import Planned, plan
from pytest_lmeval.records.runfile import read_run
from pytest_lmeval.stats.power import flip_power
from pytest_lmeval.types import ExampleResult
from tests.cli.conftest import Evaluate, Lmeval

BAD = {
    "--drop=0": "--drop 0: expected a drop above 0",
    "--drop=2": "--drop",
    "--drop=nan": "--drop",
    "": "--drop",
    "--drop=0.1 --from=none.jsonl": "none.jsonl",
    "--drop=0.1 --flip=-1": "--flip",
    "--drop=0.1 --repeats=0": "--repeats",
    "--drop=0.1 empty": "no example in empty; for eval functions, name one of their runs: --from LEDGER",
    "--drop=0.1 bad": "bad/t.jsonl:1: ",
}


def _task(folder: Path, name: str, count: int, clusters: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    rows = (
        {
            "id": f"e{number}",
            "prompt": f"say: {number}",
            "targets": ["x"],
            "metric": "exact_match",
            "extras": {"cluster": f"c{number % clusters}"} if clusters else {},
        }
        for number in range(count)
    )
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("count", [40, 100])
def test_the_smallest_drop_is_found_four_times_in_five_and_a_smaller_one_less_often(count: int) -> None:
    found = plan({"t": [Planned()] * count}, 0.01, {}, usual=0.1).overall

    assert found.detectable is not None
    assert 0.8 <= flip_power(count, found.detectable, 0.1, 0.05) < 0.81
    assert flip_power(count, found.detectable * 0.97, 0.1, 0.05) < 0.8


def test_so_many_examples_or_repeats_as_are_said_show_the_drop() -> None:
    need = plan({"t": [Planned()] * 200}, 0.05, {}, usual=0.2).needed

    assert need.repeats is not None
    more = plan({"t": [Planned()] * need.examples}, 0.05, {}, usual=0.2).overall.detectable
    often = plan({"t": [Planned(responses=need.repeats)] * 200}, 0.05, {}, usual=0.2).overall.detectable
    assert (more or 1) <= 0.05
    assert (often or 1) <= 0.05
    fewer = plan({"t": [Planned()] * (need.examples * 9 // 10)}, 0.05, {}, usual=0.2).overall.detectable
    assert 0.05 < (fewer or 1)


def test_examples_that_share_a_cluster_show_less(lmeval: Lmeval, folder: Path) -> None:
    _task(folder / "tasks", "alone", 120)
    _task(folder / "tasks", "shared", 120, clusters=30)
    code, out, err = lmeval("plan", "--drop=0.03")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}

    assert (0, "") == (code, err)
    assert ["120", "120", "120", "10.0", "%"] == rows["alone"][1:6]
    assert ["120", "120", "30", "10.0", "%"] == rows["shared"][1:6]
    assert float(rows["alone"][6]) < float(rows["shared"][6])
    assert ["240", "240", "150"] == rows["overall"][1:4]
    assert "flips in a cluster are assumed to happen together in shared, a cautious assumption" in out
    assert "10.0 % flips by chance is an assumption: a run with --lm-repeats measures it; --flip F sets it" in out
    assert "clusters" in out.partition("takes")[2]


def test_a_drop_that_no_suite_shows_by_repeats_is_said_so(lmeval: Lmeval, folder: Path) -> None:
    _task(folder / "tasks", "t", 3)
    _, out, _ = lmeval("plan", "tasks", "--drop=0.01", "--flip=0.1")

    assert "none" == out.splitlines()[1].split()[-1]
    assert "or no number of repeats: too few examples" in out
    assert "assumption" not in out


def test_a_run_with_repeats_tells_what_flips_and_what_a_run_costs(
    lmeval: Lmeval, stub_project: Path, evaluate: Evaluate
) -> None:
    (stub_project / "flips.py").write_text(
        "import itertools\n"
        "from pytest_lmeval.types import Completion\n"
        "class Model:\n"
        "    name = 'flips.v1'\n"
        "    count = itertools.count()\n"
        "    def generate_requests(self, requests):\n"
        "        return [Completion(self.say(each), cost=0.5) for each in requests]\n"
        "    def say(self, request):\n"
        "        return request.text.rpartition('say: ')[2] if request.id == 'sums-1' or request.repeat % 2 else 'hm'\n"
    )
    ran = (
        evaluate(stub_project, "flips", "--lm-adapter=flips:Model", "--lm-gate=none", "--lm-repeats=2") / "ledger.jsonl"
    )
    noise = measured_noise(read_run(ran).results or ())
    code, out, _ = lmeval("plan", "--from", ran, "--drop=0.2", "--format=json")
    value = json.loads(out)

    assert 0 == code
    # One of two responses right: each other run differs in half of the examples.
    assert {"sums": pytest.approx(11 / 12), "words": 1.0} == {task: of.flips for task, of in noise.items()}
    assert ["sums", "words"] == value["measured"]
    assert [12, 8, 20] == [task["examples"] for task in (*value["tasks"], value["overall"])]
    _, out, _ = lmeval("plan", "--from", ran, "--drop=0.2")
    assert "now: 20 responses, cost 10" in out
    assert "assumption" not in out


def test_repeats_of_a_task_count_in_its_cost_and_its_power(
    lmeval: Lmeval, stub_project: Path, evaluate: Evaluate
) -> None:
    folder = stub_project / "mine"
    folder.mkdir()
    row = {"prompt": "say: 1", "targets": ["1"], "metric": "exact_match"}
    for name, extras in {"own": {"repeats": 4, "passes": 2}, "once": {}}.items():
        rows = (json.dumps({**row, "extras": extras, "id": f"e{number}"}) for number in range(24))
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    _, out, _ = lmeval("plan", folder, "--drop=0.17")
    rows_of = {line.split()[0]: line.split() for line in out.splitlines() if line}

    assert ["24", "96", "24"] == rows_of["own"][1:4]
    assert ["48", "120", "48"] == rows_of["overall"][1:4]
    assert float(rows_of["own"][6]) < float(rows_of["once"][6])
    assert "times as many repeats of each task" in out

    code, _, err = lmeval("plan", folder, "--drop=0.1", "--repeats=3")
    assert 2 == code
    assert "--lm-repeats=3: tasks have other repeats of their own: own (4)" in err

    ran = evaluate(stub_project, "ran", "--lm-adapter=toy", "--lm-gate=none", tasks="mine") / "ledger.jsonl"
    _, out, _ = lmeval("plan", "--from", ran, "--drop=0.1")
    assert "now: 120 responses" in out
    code, _, err = lmeval("plan", "--from", ran, "--drop=0.1", "--repeats=3")
    assert (2, "lmeval plan: --repeats 3: own has 4 repeats of its own; omit the option") == (code, err.strip())


def test_noise_in_clusters_and_the_loss_of_graded_scores_are_measured() -> None:
    def result(number: int, *scores: float) -> ExampleResult:
        mean = sum(scores) / len(scores)
        cluster, details = f"c{number // 2}", {"scores": scores}
        return ExampleResult("t", str(number), "passed", mean, 0.5, "f1", "h", cluster=cluster, details=details)

    def noise(*examples: ExampleResult) -> tuple[object, ...]:
        found = measured_noise(examples)["t"]
        return tuple(
            None if value is None else pytest.approx(value) for value in (found.flips, found.shared, found.loss)
        )

    together = noise(result(0, 0, 1, 1), result(1, 0, 1, 1), result(2, 1, 0, 1), result(3, 1, 0, 1))
    apart = noise(result(0, 0, 1, 1), result(1, 1, 0, 1), result(2, 1, 0, 1), result(3, 0, 1, 1))

    assert (2 / 3, 1.0, 0.5) == together
    assert (2 / 3, 0.0, 0.625) == apart
    assert (0.0, None, 0.5) == noise(result(0, 0.6, 0.6), result(2, 0.2, 0.2))
    assert (None, None, 1.0) == noise(result(0, 1.0), result(2, 0.0))
    suite = {"t": [Planned(f"c{number // 2}") for number in range(200)]}
    found = [
        plan(suite, 0.1, {"t": noise}, usual=0.1).overall.detectable or 1
        for noise in (Noise(0.1, 1.0, 1.0), Noise(0.1, 0.0, 1.0), Noise(0.1, 0.0, 0.5))
    ]
    assert sorted(found, reverse=True) == found
    assert 3 == len(set(found))


def test_graded_scores_without_a_run_are_planned_with_care(lmeval: Lmeval, folder: Path) -> None:
    _task(folder / "tasks", "t", 30)
    path = folder / "tasks/t.jsonl"
    path.write_text(path.read_text().replace("exact_match", "f1"))
    _, out, _ = lmeval("plan", "--drop=0.5")

    assert "scores are assumed to fall from 1 to 0, which is cautious: --from RUN measures them" in out


@pytest.mark.parametrize("arguments", BAD)
def test_what_cannot_be_planned_is_refused(lmeval: Lmeval, folder: Path, arguments: str) -> None:
    (folder / "empty").mkdir()
    (folder / "bad").mkdir()
    (folder / "bad/t.jsonl").write_text("{}\n")
    code, out, err = lmeval("plan", *arguments.split())

    assert (2, "") == (code, out)
    assert BAD[arguments] in err
