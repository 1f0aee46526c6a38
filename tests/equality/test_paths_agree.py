"""Every path to a result says the same: the rows, counts, digest, verdict, reasons and exit code of a serial run.

A new kind of task is one more entry of ``KINDS``, a new front end one more test. By default the runs are of all kinds
together, in which each has rows, reasons and a part of the digest; with ``--again``, each kind is run alone, too.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # no types are published with it

from pytest_lmeval.cli import main
from pytest_lmeval.leaderboard.rows import as_in_data
from pytest_lmeval.records.recorded import recorded_result
from tests.conftest import NEEDLESS, MadeOnce, RunModule
from tests.equality.kinds import KINDS, SCENES, Kind, write_kind

_MODEL = "--lm-adapter=model:Model"
_GATE = ("--lm-baseline=base.json", "--lm-strict", "--lm-gate=baseline", "--lm-min-score=overall=0.2")
# What the worse model answers as well as the other.
ALWAYS_RIGHT = {"legs", "tests/test_words"}


@dataclass(frozen=True)
class Outcome:
    """What a path says of a run."""

    rows: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]
    overall: float | None
    digest: str
    verdict: str
    reasons: Sequence[str]
    warnings: Sequence[str]
    code: int

    @property
    def board(self) -> Sequence[object]:
        """What it says without its gate, which also decides what it counts as below a threshold."""
        return [self.rows, {**self.counts, "below": 0}, self.overall, self.digest]

    @property
    def but_for_alpha(self) -> Outcome:
        """The same without what depends on the level of the test: what stands behind the change in a reason."""
        return replace(self, reasons=[reason.partition(" points (")[0] for reason in self.reasons])


class Scene:
    """The project of one kind, with a baseline and serial runs of a model that got worse."""

    def __init__(self, kind: Kind, folder: Path, module: RunModule) -> None:
        self._module = module
        self.kind = kind
        self.folder = folder

    def make(self) -> None:
        """Write the project, and make the runs that others are compared with."""
        write_kind(self.kind, self.folder)
        self.run("base", "--lm-baseline=base.json", "--lm-update-baseline")
        for name, content in self.kind.changed.items():
            (self.folder / name).write_text(content)
        (self.folder / "wrong.txt").write_text(self.kind.wrong)
        serial = self.run("serial", *_GATE)
        filled = self.run("filled", "--lm-gate=none", "--lm-cache=cache")
        (self.folder / "codes.json").write_text(json.dumps({"serial": serial, "filled": filled}))

    @cached_property
    def serial(self) -> Outcome:
        """The run in one process, with the gate."""
        return self._made("serial")

    @cached_property
    def filled(self) -> Outcome:
        """A run without a gate that filled a cache."""
        return self._made("filled")

    def _made(self, name: str) -> Outcome:
        return self.outcome(name, json.loads((self.folder / "codes.json").read_text())[name])

    def gated(self, name: str, *options: str) -> Outcome:
        """Run with the gate; return what was written and the exit code."""
        return self.outcome(name, self.run(name, *_GATE, *options))

    def run(self, name: str, *options: str) -> int:
        """Run pytest and return its exit code; what the model was asked is in ``NAME.asked``."""
        self.asked.unlink(missing_ok=True)
        quick = ["-q", "--tb=no", *[f"-pno:{plugin}" for plugin in (*NEEDLESS, "cacheprovider")], *self.kind.paths]
        pairs = f"--lm-pair-by={self.kind.pair_by}"
        arguments = [*quick, _MODEL, pairs, *self.kind.options, f"--lm-report-dir={name}", *options]
        code = self._module(self.folder, "pytest", *arguments).returncode
        if self.asked.exists():
            (self.folder / f"{name}.asked").write_bytes(self.asked.read_bytes())
        return code

    def lmeval(self, *arguments: str) -> tuple[int, str]:
        """Run the command, here; return its exit code and what it wrote to stdout."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as out:
            return main(arguments), out.getvalue()

    def dry_run(self, *arguments: str) -> str:
        """Run ``lmeval test`` in a process of its own, as it imports the model; return what it wrote to stdout."""
        made = self._module(self.folder, "pytest_lmeval.cli", "test", *arguments)
        assert 0 == made.returncode, made.stdout + made.stderr
        return made.stdout

    def outcome(self, name: str, code: int) -> Outcome:
        """Return what the board in a report dir says."""
        return outcome_of(json.loads((self.folder / name / "leaderboard.json").read_text()), code)

    def results(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the results in a ledger by ``task:id``."""
        lines = map(json.loads, (self.folder / name / "ledger.jsonl").read_text().splitlines())
        return {f"{line['task']}:{line['id']}": line for line in lines if "status" in line}

    @property
    def asked(self) -> Path:
        """The file in which the model writes down what it is asked."""
        return self.folder / "asked.txt"


def outcome_of(board: Mapping[str, Any], code: int) -> Outcome:
    """Return what a board says, without what differs from run to run: times and what each request took."""
    gate = board.get("gate") or {}
    timed = ("latency_ms", "spent")
    rows = [{name: value for name, value in row.items() if name not in timed} for row in board["tasks"]]
    return Outcome(
        [{name: value for name, value in row.items() if name != "per_example"} for row in rows],
        board["counts"],
        board["overall_score"],
        board["digest"],
        gate.get("verdict", ""),
        gate.get("reasons", ()),
        gate.get("warnings", ()),
        code,
    )


ALL = {**SCENES, **KINDS}
PARAMETERS = {name: pytest.param(name, marks=[] if name in SCENES else [pytest.mark.again]) for name in ALL}


@pytest.fixture(scope="module", params=PARAMETERS.values())
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, run_module: RunModule, made_once: MadeOnce
) -> Scene:
    """Provide the scene of a kind; pytest runs all tests of a kind one after the other."""
    kind = ALL[request.param]
    made = made_once(f"scene-{request.param}", lambda folder: Scene(kind, folder, run_module).make())
    own = tmp_path_factory.mktemp(request.param) / "project"
    return Scene(kind, Path(shutil.copytree(made, own)), run_module)


without_pytest = pytest.mark.parametrize(
    "scene", [PARAMETERS[name] for name, kind in ALL.items() if not kind.needs_pytest], indirect=True
)


def test_the_serial_run_says_something_that_a_path_could_get_wrong(scene: Scene) -> None:
    serial = scene.serial
    assert 3 <= serial.counts["collected"] == serial.counts["scored"] + serial.counts.get("quarantined", 0)
    assert any(row["score"] not in (0, 1) for row in serial.rows)
    assert ("regression", 1) == (serial.verdict, serial.code)
    worse = {reason.partition(": regression: ")[0] for reason in serial.reasons}
    assert ALWAYS_RIGHT >= {row["task"] for row in serial.rows} - worse


def test_a_ledger_says_in_which_order_the_data_have_the_examples(scene: Scene) -> None:
    # One process writes them in that order.
    written = [recorded_result(line) for line in scene.results("serial").values()]
    expected = sorted(written, key=lambda result: result.task)
    assert [(each.task, each.id) for each in expected] == [(each.task, each.id) for each in as_in_data(written[::-1])]


def test_two_workers_agree_with_one_process(scene: Scene) -> None:
    assert scene.serial == scene.gated("workers", "-n2", "--lm-batch-size=2")


@pytest.mark.again
def test_a_run_with_all_phases_of_every_example_agrees(scene: Scene) -> None:
    assert scene.serial == scene.gated("phases", "--lm-items=plain")


def test_a_run_that_was_killed_and_resumed_agrees_with_one_that_was_not(scene: Scene) -> None:
    whole = len((scene.folder / "serial.asked").read_text().splitlines())
    (scene.folder / "kill.txt").write_text(str(whole * 2 // 3))
    assert 0 > scene.run("resumed", *_GATE, "--lm-batch-size=1")
    (scene.folder / "kill.txt").unlink()
    held = Counter(result["task"] for result in scene.results("resumed").values())
    assert scene.serial == scene.gated("resumed", "--lm-resume", "--lm-batch-size=1")
    again = (scene.folder / "resumed.asked").read_text().splitlines()
    assert all(held[row["task"]] < row["total"] for row in scene.serial.rows)
    # Of examples that run at once none may have a result yet; what they were answered is held all the same.
    assert scene.kind.needs_pytest or all(held[row["task"]] for row in scene.serial.rows)
    assert len(again) < whole


def test_a_model_among_several_agrees_with_a_run_of_its_own(scene: Scene) -> None:
    code = scene.run("several", *_GATE, "--lm-adapter=other=model:Model")
    for label in ("model-Model", "other"):
        # Two models share alpha, so that interval and adjusted p are others than those of a model alone.
        assert scene.serial.but_for_alpha == scene.outcome(f"several/{label}", code).but_for_alpha


WINDOWED = """
import model

class Model(model.Model):
    request_window = 5

    def plan_window(self, requests):
        places = range(len(requests))
        return [places[::-2], places[-2::-2]]
"""


def test_a_model_that_plans_windows_agrees_with_one_that_is_asked_in_batches(scene: Scene) -> None:
    (scene.folder / "windowed.py").write_text(WINDOWED)
    code = scene.run("windows", *_GATE, "--lm-adapter=windowed=windowed:Model")
    assert scene.serial.but_for_alpha == scene.outcome("windows/windowed", code).but_for_alpha


def test_a_run_out_of_the_cache_agrees_and_asks_nothing(scene: Scene) -> None:
    assert scene.serial.board == scene.filled.board
    cached = scene.gated("cached", "--lm-cache=cache", "--lm-cache-mode=read-only")
    # But that its answers may be the baseline's own.
    assert scene.serial == replace(cached, warnings=scene.serial.warnings)
    assert not scene.asked.exists()


def test_merged_shards_agree_with_the_whole_run(scene: Scene) -> None:
    parts = [f"part{part}" for part in (1, 2)]
    for part, name in enumerate(parts, start=1):
        scene.run(name, *_GATE, f"--lm-shard={part}/2")
    code, _ = scene.lmeval("merge", *[f"{name}/ledger.jsonl" for name in parts], "-o", "merged")
    assert scene.serial == scene.outcome("merged", code)


LIBRARY = """
import json, sys
from pytest_lmeval import GateSettings, decide, load_tasks, make_adapter, read_run, run_leaderboard

paths, config, judge, pair_by = json.loads(sys.argv[1])
tasks = load_tasks(*paths, configs=[config] if config else ())
board = run_leaderboard(
    tasks,
    make_adapter("model:Model"),
    judge=make_adapter("model:Judge") if judge else None,
    gate="baseline",
    baseline=read_run("base.json"),
)
settings = GateSettings(mode="baseline", floors={"overall": 0.2}, baseline="base.json", strict=True, pair_by=pair_by)
decision = decide(board, read_run("base.json"), settings)
print(json.dumps([{**board.to_json(), "gate": decision.to_json()}, decision.exit_code]))
"""


@without_pytest
def test_the_library_agrees_with_pytest(scene: Scene, run_module: RunModule) -> None:
    kind = scene.kind
    (scene.folder / "library.py").write_text(LIBRARY)
    run = run_module(scene.folder, "library", json.dumps([kind.paths, dict(kind.config), kind.judge, kind.pair_by]))
    assert 0 == run.returncode, run.stderr
    board, code = json.loads(run.stdout)
    assert scene.serial == outcome_of(board, code)


def test_a_page_made_from_the_ledger_has_the_verdict_of_the_run(scene: Scene) -> None:
    assert 0 == scene.lmeval("report", "serial/ledger.jsonl", "-o", "page.html")[0]
    assert _page(scene.folder / "serial/report.html") == _page(scene.folder / "page.html")


def test_a_page_against_a_baseline_has_the_verdict_of_a_run_against_it(scene: Scene) -> None:
    assert "pass" == scene.filled.verdict
    again = ("--baseline", "base.json", "--strict", f"--pair-by={scene.kind.pair_by}")
    assert 0 == scene.lmeval("report", "filled/ledger.jsonl", *again, "-o", "again.html")[0]
    gate = _page(scene.folder / "again.html")
    assert (scene.serial.verdict, scene.serial.reasons) == (gate["verdict"], gate["reasons"])


def test_a_diff_fails_where_the_run_fails(scene: Scene) -> None:
    pairs = f"--pair-by={scene.kind.pair_by}"
    code, out = scene.lmeval("diff", "base.json", "serial/ledger.jsonl", "--strict", pairs, "--format=json")
    said = json.loads(out)
    assert (scene.serial.verdict, scene.serial.code) == (said["gate"]["verdict"], code)
    assert scene.serial.reasons == said["gate"]["reasons"]


@without_pytest
def test_a_dry_run_over_all_examples_asks_and_scores_as_a_run_does(scene: Scene) -> None:
    kind = scene.kind
    (config,) = [option.partition("=")[2] for option in kind.options if "config" in option] or [""]
    options = [*(["--config", config] if config else []), *(["--lm-judge=model:Judge"] if kind.judge else [])]
    shown: dict[str, dict[str, Any]] = {}
    asked: list[str] = []
    results = scene.results("serial")
    for task in dict.fromkeys(result["task"] for result in results.values()):
        scene.asked.unlink(missing_ok=True)
        scores = _scores(scene.dry_run(task, "-n", "99", _MODEL, *options))
        shown |= {f"{task}:{id}": score for id, score in scores.items()}
        asked += scene.asked.read_text().splitlines()
    assert {key: (one["score"], one["predictions"]) for key, one in results.items()} == {
        key: (score["score"], score.get("predictions") or [score["prediction"]]) for key, score in shown.items()
    }
    assert sorted((scene.folder / "serial.asked").read_text().splitlines()) == sorted(asked)


def _page(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="[^"]*">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    gate: dict[str, Any] = json.loads(found[1])["board"]["gate"]
    return {name: gate[name] for name in ("verdict", "reasons", "warnings")}


def _scores(text: str) -> dict[str, dict[str, Any]]:
    scores = {}
    for block in re.split(r"^=+\n", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = block.partition("\n")
        stage = re.search(r"^-+\nScore\n\n(.*?)\n\n", rest, re.DOTALL | re.MULTILINE)
        if stage is not None:
            scores[heading.partition(": ")[2]] = yaml.safe_load(stage[1])
    return scores
