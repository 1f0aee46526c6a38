"""Measures what an example costs on each path through the plugin, beside a case of ``@pytest.mark.parametrize``.

Usage: ``python benchmarks/paths.py [--quick] [--rounds N] [--only WORD]``; about five minutes, seconds with
``--quick``. CPU of the whole process, a slope over examples; all paths take turns in each round. With ``--only`` those
whose name has the word.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from machine import describe_machine
from measure import OURS, Cost, Run, measure, slope

ROUNDS = 5
_FEW, _MANY = 100, 1300
_US = 1e6
_MODELS = """
class Batch:
    name = "batch"

    def generate(self, prompts):
        return ["yes"] * len(prompts)

class Async:
    name = "async"

    async def complete(self, request):
        return "yes"
"""
_PLAIN = """
import instant
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_plain(number):
    assert instant.Batch().generate([f"say {{number}}"]) == ["{target}"]
"""
_EVAL = """
from pytest_lmeval import eval_task

@eval_task("words", data=[{{"id": f"e{{n}}", "prompt": f"say {{n}}"}} for n in range({count})]{options})
{function} test_words(row, lm):
    {body}
"""
_ASK = 'lm.ask(row["prompt"])'
_WAYS: Mapping[str, tuple[str, str, str]] = {
    "async def, asks nothing": ("", "async def", "assert row"),
    "async def, one lm.ask": ("", "async def", f'assert (await {_ASK}).text == "yes"'),
    "def in threads, one lm.ask": (", threads=True", "def", f'assert {_ASK}.text == "yes"'),
    "def at its turn, one lm.ask": ("", "def", f'assert {_ASK}.text == "yes"'),
}
"""Of eval functions: their options, how they are defined, and what they do."""
_AIMS = {
    "a passing record": 0.7,
    "async def, asks nothing": 1.0,
    "async def, one lm.ask": 1.3,
    "def in threads, one lm.ask": 1.5,
    "def at its turn, one lm.ask": 1.5,
}


def main() -> None:
    """Print a row for each path: microseconds, its share of a parametrized case, and the share that is aimed at."""
    parser = argparse.ArgumentParser(description="Measure an example on each path.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each path is run (default {ROUNDS})")
    parser.add_argument("--only", default="", metavar="WORD", help="the paths whose name has it")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    few, many = (5, 25) if options.quick else (_FEW, _MANY)
    with tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as folder:
        scene = Path(folder)
        paths = _paths(scene, few, many)
        plain = {name: runs for name, runs in paths.items() if name.startswith("@parametrize")}
        chosen = plain | {name: runs for name, runs in paths.items() if options.only in name}
        if options.only and len(chosen) == len(plain):
            parser.error(f"--only: no path has {options.only!r} in its name; there are: {', '.join(paths)}")
        found: dict[str, list[Cost]] = {name: [] for name in chosen}
        for number in range(1 if options.quick else options.rounds + 1):
            for name, (one, all_of_them) in chosen.items():
                cost = slope(measure(all_of_them, scene), measure(one, scene), many - few + 1)
                if number or options.quick:  # the first round compiles
                    found[name].append(cost)
    print(f"\n{describe_machine()}\n")
    print("| an example | us | share | least to most | aim | met |\n| --- | ---: | ---: | ---: | ---: | --- |")
    for name, costs in found.items():
        reference = found["@parametrize, fails" if "failing" in name else "@parametrize"]
        shares = [cost.cpu / other.cpu for cost, other in zip(costs, reference, strict=True)]
        share = statistics.median(shares)
        aim = next((most for path, most in _AIMS.items() if name.startswith(path)), None)
        met = "" if aim is None else "yes" if share <= aim else "no"
        each = f"{statistics.median(cost.cpu for cost in costs) * _US:,.0f}"
        print(f"| {name} | {each} | {share:.2f} | {min(shares):.2f}-{max(shares):.2f} | {aim or ''} | {met} |")


def _paths(scene: Path, few: int, many: int) -> dict[str, tuple[Run, Run]]:
    """Write all that is run; return for each path a run of few examples and one of many."""
    project = scene / "project"
    project.mkdir()
    (project / "instant.py").write_text(_MODELS, encoding="utf-8")
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def runs(name: str, text: Callable[[int], str], outcome: str, adapter: str = "") -> tuple[Run, Run]:
        asked = (f"--lm-adapter=instant:{adapter}",) if adapter else ()
        made = []
        for count in (few, many):
            file = name.format(count)
            (project / file).write_text(text(count), encoding="utf-8")
            made.append(Run((file, *asked), f"{count} {outcome}", () if adapter else OURS))
        return made[0], made[1]

    paths = {
        "@parametrize": runs("test_plain_{}.py", lambda count: _PLAIN.format(count=count, target="yes"), "passed"),
        "@parametrize, fails": runs(
            "test_wrong_{}.py", lambda count: _PLAIN.format(count=count, target="no"), "failed"
        ),
        "a passing record": runs("right_{}.jsonl", partial(_records, "yes"), "passed", "Batch"),
        "a failing record": runs("wrong_{}.jsonl", partial(_records, "no"), "failed", "Batch"),
    }
    for number, (name, way) in enumerate(_WAYS.items()):
        for adapter in ("Async", "Batch"):
            made = runs(f"test_way_{number}_{{}}.py", partial(_eval, *way), "passed", adapter)
            paths[f"{name}, {adapter.lower()} adapter"] = made
    return paths


def _records(target: str, count: int) -> str:
    """Return a task file."""
    asked = ({"id": f"e{number}", "prompt": f"say {number}"} for number in range(count))
    return "\n".join(json.dumps({**each, "targets": [target], "metric": "exact_match"}) for each in asked)


def _eval(options: str, function: str, body: str, count: int) -> str:
    """Return a test file with an eval function."""
    return _EVAL.format(options=options, function=function, body=body, count=count)


if __name__ == "__main__":
    main()
