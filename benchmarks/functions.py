"""Measures eval functions: what one costs beside a plain async test and a record, and how well waits overlap.

Usage: ``python benchmarks/functions.py [--quick]``; about three minutes, seconds with ``--quick``. Needs anyio.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe_machine
from measure import Cost, Run, interleave, slope
from table import Row, render_table

_EVAL = """
from pytest_lmeval import eval_task

@eval_task("evals", data=[{{"id": str(n)}} for n in range({count})])
async def test_eval(row, lm):
    assert row
"""
_STEPS = """
from pytest_lmeval import eval_task

@eval_task("steps", data=[{{"id": str(n)}} for n in range({count})])
async def test_steps(row, lm):
    for n in range(3):
        lm.step("tool", "search", {{"q": row["id"]}}, "found")
    assert row
"""
_ANYIO = """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.mark.parametrize("row", [{{"id": str(n)}} for n in range({count})], ids=lambda row: row["id"])
async def test_plain(row):
    assert row
"""
_WAITS = """
from pytest_lmeval import eval_task

@eval_task("waits", data=[{{"id": str(n)}} for n in range({count})]{threads})
{function} test_waits(row, lm):
    for n in range(3):
        assert {ask}lm.ask(f"{{row['id']}} {{n}}")
"""
_MODEL = "class Right:\n    name = 'right'\n\n    def generate(self, prompts):\n        return list(prompts)\n"
_ADAPTER = "--lm-adapter=instant:Right"
_US = 1e6
_KIB = 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure eval functions.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as scene:
        folder = Path(scene) / "project"
        folder.mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "instant.py").write_text(_MODEL)
        rows = _costs(Path(scene), 20 if quick else 200, 120 if quick else 2200, 1 if quick else 3)
        rows += _waits(folder, 0.05 if quick else 1.0)
    print(f"\n{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    print(render_table(rows))


def _costs(scene: Path, few: int, many: int, rounds: int) -> list[Row]:
    texts = {"eval": _EVAL, "steps": _STEPS, "anyio": _ANYIO}
    runs = {}
    for kind, text in texts.items():
        for count in (few, many):
            (scene / f"project/test_{kind}_{count}.py").write_text(text.format(count=count))
            options = ("-panyio.pytest_plugin",) if kind == "anyio" else (_ADAPTER,)
            runs[f"{kind} {count}"] = Run((f"test_{kind}_{count}.py", *options), f"{count} passed")
    cost = interleave(runs, scene, rounds)
    each: dict[str, Cost] = {
        kind: slope(cost[f"{kind} {many}"], cost[f"{kind} {few}"], many - few + 1) for kind in texts
    }
    plain = each["anyio"]
    return [
        Row("CPU of an eval function", "us", each["eval"].cpu * _US, "async test", plain.cpu * _US, 1.5, "ratio"),
        Row("CPU with three steps", "us", each["steps"].cpu * _US, "async test", plain.cpu * _US),
        Row("memory with three steps", "KiB", each["steps"].rss / _KIB, "async test", plain.rss / _KIB, 40.0),
    ]


def _waits(folder: Path, seconds: float) -> list[Row]:
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "slow_server.py"), "fixed", str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    options = (
        "--lm-adapter=openai:m",
        f"--lm-adapter-arg=base_url=http://127.0.0.1:{port}/v1",
        "--lm-concurrency=50",
    )
    rows = []
    try:
        for name, threads, function, ask in (
            ("async def", "", "async def", "await "),
            ("threads", ", threads=True", "def", ""),
        ):
            text = _WAITS.format(count=100, threads=threads, function=function, ask=ask)
            (folder / "test_waits.py").write_text(text)
            (folder / "test_one.py").write_text(_EVAL.format(count=1))
            walls = []
            for file, count in (("test_waits.py", 100), ("test_one.py", 1)):
                cost = interleave({"it": Run((file, *options), f"{count} passed")}, folder.parent, 1, warm_up=False)
                walls.append(cost["it"].wall)
            ideal = 2 * 3 * seconds
            what = f"100 x 3 calls of {seconds:g} s, 50 at once, {name}, less start-up"
            rows.append(Row(what, "s", walls[0] - walls[1], "ideal", ideal, 9.0 * seconds))
    finally:
        server.kill()
    return rows


if __name__ == "__main__":
    main()
