"""The benchmark runs, and its table has every row. How fast anything is, is for ``docs/performance.md``."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.report.html.browser import find_chromium

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "run.py"
ROWS = {
    "passing": [
        "start-up, 1 example, wall",
        "start-up, 1 example, CPU",
        "CPU per example, 400 examples",
        "wall, 400 examples",
        "memory per example, 400 examples",
        "peak memory, 400 examples",
        "CPU per example, 800 examples",
        "wall, 800 examples",
        "memory per example, 800 examples",
        "peak memory, 800 examples",
        "growth: CPU per example at 800 over that at 400",
    ],
    "record": ["CPU per example with board and ledger", "CPU per example without them"],
    "failing": ["CPU per failing example, 100 examples"],
    "workers": ["-n 2, wall, 400 examples", "-n 2, CPU, 400 examples"] * 2,
    "functions": [
        "eval function with three steps, 400 examples, CPU per example",
        "eval function with three steps, 400 examples, memory per example",
    ],
    "collection": ["collection alone, CPU per example, 400 examples"],
    "bystander": [
        "unrelated suite of one test, wall",
        "unrelated suite of one test, CPU",
        "unrelated suite of one test, wall",
    ],
}


def run_benchmark(*arguments: str, script: str = "run.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT.with_name(script)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def table(output: str) -> list[dict[str, str]]:
    header, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line.startswith("|")
    ]
    return [dict(zip(header, line, strict=True)) for line in lines]


@pytest.fixture(scope="module")
def smoke_run() -> str:
    done = run_benchmark("--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_table_has_every_row(smoke_run: str) -> None:
    assert [name for part in ROWS.values() for name in part] == [row["what"] for row in table(smoke_run)]


@pytest.mark.slow
def test_every_figure_is_a_number_and_what_is_no_slope_is_positive(smoke_run: str) -> None:
    for row in table(smoke_run):
        for column in ("plugin", "reference", "ratio"):
            figure = float(row[column].replace(",", ""))
            assert math.isfinite(figure), row
            # A slope over so few examples is smaller than what a busy machine adds to either of its ends.
            assert figure > 0 or "per example" in row["what"], row


@pytest.mark.slow
def test_every_row_with_an_aim_says_whether_it_was_met(smoke_run: str) -> None:
    rows = table(smoke_run)
    assert {"yes", "no"} >= {row["met"] for row in rows if row["aim"]}
    assert {""} == {row["met"] for row in rows if not row["aim"]}


@pytest.mark.slow
def test_the_machine_is_described(smoke_run: str) -> None:
    assert f"pytest {pytest.__version__}" in smoke_run
    assert f"CPython {sys.version.split()[0]}" in smoke_run or sys.implementation.name != "cpython"
    assert "cores" in smoke_run


@pytest.mark.again
def test_a_part_can_be_run_alone() -> None:
    done = run_benchmark("--quick", "--only", "bystander")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert ROWS["bystander"] == [row["what"] for row in table(done.stdout)]


def test_an_unknown_part_is_refused_with_the_choices() -> None:
    done = run_benchmark("--only", "speed")
    assert 2 == done.returncode
    for name in ROWS:
        assert name in done.stderr


@pytest.mark.slow
def test_two_models_in_one_run_are_measured_beside_one_alone() -> None:
    done = run_benchmark("--quick", script="models.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    one, two, item = table(done.stdout)
    assert ("ideal", "one model alone", "as many items of one") == (one["against"], two["against"], item["against"])
    assert float(one["plugin"]) == float(two["reference"])


@pytest.mark.slow
def test_the_page_is_measured_beside_an_empty_one() -> None:
    if find_chromium() is None:
        needs.lacking("chromium", "needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM")
    done = run_benchmark("--quick", "--rounds=1", script="page.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    empty, *pages = table(done.stdout)
    assert ["empty", "1 x 50", "2 x 50"] == [row["page"] for row in (empty, *pages)]
    assert all(float(row[column]) > 0 for row in pages for column in ("opens in", "filters in", "opens one in"))


@pytest.mark.slow
def test_what_one_example_passes_through_is_counted_three_ways() -> None:
    script = SCRIPT.with_name("one_example.py")
    output = subprocess.run([sys.executable, script, "--list"], capture_output=True, text=True, check=True).stdout
    listed = {way: {*names.split()} for way, names in re.findall(r"^(\w+): .*\n((?:  .*\n)+)", output, re.MULTILINE)}
    assert ["library", "pytest", "function"] == [*listed]
    assert "metrics/exact.py" in (listed["library"] & listed["pytest"]) - listed["function"]
    assert "plugin/asking/item.py" in listed["pytest"] - listed["library"]
    assert "functions/lm.py" in listed["function"] - listed["pytest"]


def test_what_an_ask_takes_is_measured_in_four_ways() -> None:
    done = run_benchmark("--examples=40", "--rounds=2", script="asks.py")
    assert done.returncode == 0, done.stderr
    places = ["in threads, 256 at a time, async", "in threads, 256 at a time, batches", "at its turn, async",
              "at its turn, batches"]  # fmt: skip
    assert places == [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert all(re.fullmatch(r".*: \d+ us \[\d+-\d+\]", line) for line in done.stdout.splitlines()), done.stdout


@pytest.mark.slow
def test_every_path_is_measured_beside_a_parametrized_test() -> None:
    done = run_benchmark("--quick", script="paths.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    rows = table(done.stdout)
    ways = ["async def, asks nothing", "async def, one lm.ask", "def in threads, one lm.ask"]
    ways += ["def at its turn, one lm.ask"]
    functions = [f"{way}, {adapter} adapter" for way in ways for adapter in ("async", "batch")]
    names = ["@parametrize", "@parametrize, fails", "a passing record", "a failing record", *functions]
    assert names == [row["an example"] for row in rows]
    assert ["", "", "0.7", "", "1.0", "1.0", "1.3", "1.3", *["1.5"] * 4] == [row["aim"] for row in rows]


@pytest.mark.slow
def test_runs_beneath_a_slow_server_are_measured_beside_a_bare_client() -> None:
    done = run_benchmark("--quick", script="serving.py")
    assert 0 == done.returncode, done.stdout + done.stderr
    clients = ["bare aiohttp", "records", "functions", "@parametrize, asks nothing"]
    assert clients == [row["client"] for row in table(done.stdout)]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["functions.py", "kept.py"])
def test_a_benchmark_runs(script: str) -> None:
    done = run_benchmark("--quick", script=script)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert table(done.stdout)
