"""Prints the peak memory of runs of many examples and of large outputs, beside a parametrized test.

Usage: ``python benchmarks/memory.py [--quick]``; minutes, seconds with ``--quick``. See ``docs/reference/measured.md``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from machine import describe_machine
from measure import OURS, Run, measure
from project import plain_file, task_file, write_scene

_MODEL = """
class Long:
    name = "long"

    def generate(self, prompts):
        return [f"{prompt.rpartition(' ')[2]}\\n{'x' * 1_000_000}" for prompt in prompts]
"""
_FIELDS = {"category": "classification", "metric_name": "exact_match", "post_process": "extract_first_line"}


def main() -> None:
    """Run each once and print a line for it."""
    parser = argparse.ArgumentParser(description="Measure the peak memory of runs.")
    parser.add_argument("--quick", action="store_true", help="small: shows that it runs, not how much it takes")
    examples, large = (400, 20) if parser.parse_args().quick else (100_000, 500)
    with tempfile.TemporaryDirectory(prefix="lmeval-memory-") as folder:
        scene = Path(folder)
        write_scene(scene, (1, examples))
        _write_large(scene / "project", large)
        for what, run in _runs(examples, large).items():
            print(f"{what:<40} {measure(run, scene).rss / 1e6:7,.0f} MB", flush=True)
    print(describe_machine())


def _runs(examples: int, large: int) -> dict[str, Run]:
    short = Run((task_file(examples), "--lm-adapter=instant:Right"), f"{examples} passed")
    return {
        "one example": Run((task_file(1), "--lm-adapter=instant:Right"), "1 passed"),
        f"{examples:,} short examples": short,
        f"{examples:,} parametrized tests": Run((plain_file(examples),), f"{examples} passed", OURS),
        f"{large} outputs of 1 MB": Run(("large.jsonl", "--lm-adapter=long:Long"), f"{large} passed"),
    }


def _write_large(project: Path, examples: int) -> None:
    (project / "long.py").write_text(_MODEL, encoding="utf-8")
    with (project / "large.jsonl").open("w", encoding="utf-8") as file:
        for number in range(examples):
            record = {"task_id": f"n{number}", "prompt": f"Say n{number}", "targets": [f"n{number}"]}
            file.write(json.dumps({**record, **_FIELDS}) + "\n")


if __name__ == "__main__":
    main()
