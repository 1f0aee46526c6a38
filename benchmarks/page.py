"""Opens the HTML report of made-up runs in Chromium: bytes, and seconds to write, open, list, filter, search, read.

Usage: ``python benchmarks/page.py [--quick] [--rounds N]``; minutes, and a quarter of a minute with ``--quick``. It
needs Chromium, on the path or named by ``LMEVAL_TEST_CHROMIUM``, and the extra ``test``.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from machine import describe_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.report.comparison import Compared, compared
from pytest_lmeval.report.html import render_report
from pytest_lmeval.report.html.comparison_page import render_comparison
from pytest_lmeval.types import ExampleResult
from tests.report.html.browser import Browser, find_chromium, running_browser

RUNS = ((1, 1_000), (1, 100_000), (4, 10_000), (12, 10_000))
QUICK = ((1, 50), (2, 50))
TASKS = ("arithmetic", "translation", "reading", "facts")
HEADER = ("page", "bytes", "written in", "MB", "opens in", "lists in", "filters in", "searches in", "opens one in")
EMPTY = '<!doctype html><html lang="en"><meta charset="utf-8"><title>empty</title><h1>empty</h1>'
# From the new address until what it shows was drawn.
GO = """new Promise(done => {
  const begun = performance.now();
  location.hash = %s;
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


@dataclass
class Page:
    """A page on disk, and what was measured of it: seconds by column."""

    name: str
    path: Path
    written: float = 0.0
    peak: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)


def main() -> None:
    """Write the pages, open each in every round, and print a row for each."""
    options = _parse()
    if options.write:
        models, examples, path = options.write
        print(json.dumps(_write(int(models), int(examples), Path(path))))
        return
    program = find_chromium()
    if program is None:
        sys.exit("needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM")
    with tempfile.TemporaryDirectory(prefix="lmeval-page-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        pages = [_empty(folder), *(_written(folder, *size) for size in (QUICK if options.quick else RUNS))]
        with running_browser(program) as browser:
            for _ in range(options.rounds):
                for page in pages:
                    _measure(browser, page)
        print(_table([HEADER, *map(_row, pages)]))
    print(f"\nseconds; medians of {options.rounds} round(s), in turns; {describe_machine()}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the HTML report in Chromium.")
    parser.add_argument("--quick", action="store_true", help="small: shows that it runs, not how long it takes")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    # In a process of its own, whose peak memory is that of one page.
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def _empty(folder: Path) -> Page:
    page = Page("empty", folder / "empty.html")
    page.path.write_text(EMPTY, encoding="ascii")
    return page


def _written(folder: Path, models: int, examples: int) -> Page:
    path = folder / f"{models}x{examples}.html"
    command = [sys.executable, __file__, "--write", str(models), str(examples), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Page(f"{models} x {examples:,}", path, **json.loads(done.stdout))


def _write(models: int, examples: int, path: Path) -> dict[str, float]:
    """Write the page of a made-up run; return seconds of CPU, and peak memory in MB, the results in it."""
    runs = [_run(f"model-{number:02}", examples) for number in range(models)]
    begun = time.process_time()
    path.write_text(_rendered(runs, path.parent), encoding="ascii")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return {"written": time.process_time() - begun, "peak": peak}


def _rendered(runs: Sequence[tuple[Leaderboard, list[ExampleResult]]], folder: Path) -> str:
    if len(runs) == 1:
        ((board, results),) = runs
        return render_report(board.to_json(), results)
    models = [Compared(board.facts.adapter, board, tuple(results), str(folder)) for board, results in runs]
    return render_comparison(compared(models, 0, folder), models)


def _run(model: str, examples: int) -> tuple[Leaderboard, list[ExampleResult]]:
    results = [_result(model, number) for number in range(examples)]
    infos = [TaskInfo(name, f"tasks/{name}.jsonl") for name in TASKS]
    gate = {"mode": "tasks", "verdict": "pass", "reasons": []}
    return build_board(infos, results, RunFacts("2026-11-21T08:00:00Z", model, gate=gate)), results


def _result(model: str, number: int) -> ExampleResult:
    """Return a result with a question of 300 characters and an answer of 200; one in four is wrong."""
    task, wanted = TASKS[number % len(TASKS)], f"answer {number}"
    draw = random.Random(f"{model}/{number}")
    is_right = draw.random() < 0.75
    said = wanted if is_right else f"answer {draw.randrange(number + 9)}"
    return ExampleResult(
        task=task,
        id=f"{task}-{number:06}",
        status="passed" if is_right else "below",
        score=float(is_right),
        threshold=1.0,
        metric="exact_match",
        hash=f"{number:064x}",
        prompt=f"{'Here is what is known ahead of the question. ' * 6}What is the answer to question {number}?",
        outputs=(f"{'One thing follows from another. ' * 6}\n{said}",),
        predictions=(said,),
        targets=(wanted,),
        post_process="extract_answer",
        category="word problems" if number % 3 else "recall",
        latency_ms=draw.uniform(200, 900),
        usage={"prompt_tokens": 80, "completion_tokens": 40, "cost": 0.0004},
        line=number // len(TASKS) + 1,
    )


def _measure(browser: Browser, page: Page) -> None:
    browser.call("Page.navigate", url="about:blank")
    begun = time.perf_counter()
    browser.open(page.path)
    browser.settle()
    page.seconds.setdefault("opens", []).append(time.perf_counter() - begun)
    if page.name == "empty":
        return
    _go(browser, page, "lists", "#/all")
    _go(browser, page, "filters", f"#/all?show={'differs' if _is_of_several(browser) else 'below'}")
    _go(browser, page, "searches", "#/all?q=question+7")
    address = browser.js("document.querySelector('.examples tbody a').getAttribute('href')")
    _go(browser, page, "reads", address)
    assert browser.texts("#example-title"), "no example was opened"


def _is_of_several(browser: Browser) -> bool:
    return bool(browser.js("document.querySelector('main').className.includes('columns')"))


def _go(browser: Browser, page: Page, what: str, address: str) -> None:
    page.seconds.setdefault(what, []).append(browser.js(GO % json.dumps(address)) / 1000)


def _row(page: Page) -> tuple[str, ...]:
    found = [statistics.median(page.seconds[what]) for what in page.seconds]
    shown = [f"{seconds:.2f}" for seconds in found] + [""] * (5 - len(found))
    written = (f"{page.written:.1f}", f"{page.peak:,.0f}") if page.written else ("", "")
    return page.name, f"{page.path.stat().st_size:,}", *written, *shown


def _table(rows: Iterable[Sequence[str]]) -> str:
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"| --- |{' ---: |' * (len(HEADER) - 1)}", *others])


if __name__ == "__main__":
    main()
