"""``.ci/large``: what its parts run, and what its summary says of them; pytest, Python and uv are scripts here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci/large"
PYTEST = """\
#!/bin/sh
echo "$*" >>'{asked}'
echo "left out: $LEFT"
echo "== $COUNTS in 4.20s =="
echo "a library: leaked 4 instances!"
exit $CODE
"""
PYTHON = """\
#!/bin/sh
echo "pytest-cov: 7.0, the same"
echo "1 of 2 the same; not: pytest-sugar"
exit 1
"""
# "uv venv ... DIR" makes an environment with that pytest; there is no other Python, and no package "ray".
UV = """\
#!/bin/sh
for last; do :; done
case "$1 $*" in
venv*) mkdir -p "$last/bin" && cp '{pytest}' "$last/bin/pytest" ;;
python*) exit 1 ;;
*ray*) exit 1 ;;
esac
"""
SKIPPED = "left out: 2 test(s): needs torch (2)"


class Large:
    """A folder with the script and an environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._asked = folder / "asked.txt"
        (folder / ".ci").mkdir()
        shutil.copy(SCRIPT, folder / ".ci/large")
        bin = folder / ".venv/bin"
        self.program(bin / "pytest", PYTEST.format(asked=self._asked))
        self.program(bin / "python", PYTHON)
        self.program(bin / "uv", UV.format(pytest=bin / "pytest"))
        # A shim that stands for no Python, and a Python.
        self.program(folder / "path/python3.12", "#!/bin/sh\nexit 127\n")
        self.program(folder / "path/python3.13", "#!/bin/sh\n")

    def program(self, path: Path, source: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        path.chmod(0o755)

    def run(self, *options: str, code: int = 0, left: str = "0 test(s)") -> tuple[int, dict[str, str]]:
        """Run parts; return the exit code, and by part what the summary says."""
        path = f"{self.folder / 'path'}{os.pathsep}{os.environ['PATH']}"
        told = {"CODE": str(code), "COUNTS": "3 passed, 2 skipped", "LEFT": left}
        variables = {**os.environ, **told, "PATH": path, "PYENV_ROOT": str(self.folder)}
        done = subprocess.run(
            [self.folder / ".ci/large", *options], env=variables, text=True, capture_output=True, check=False
        )
        summary = done.stdout.partition("== summary\n")[2]
        parts = dict(line.split(maxsplit=1) for line in summary.splitlines())
        return done.returncode, {part: said for part, said in parts.items() if "not named by --only" not in said}

    def asked(self) -> list[str]:
        """Return the options of each run of pytest."""
        return self._asked.read_text().splitlines()


@pytest.fixture
def large(tmp_path: Path) -> Large:
    return Large(tmp_path)


def test_the_summary_has_the_counts_of_pytest_and_what_was_left_out(large: Large) -> None:
    code, summary = large.run("--only=simulations,commands,python3.13", left=SKIPPED.removeprefix("left out: "))

    passed = f"passed: 3 passed, 2 skipped in 4.20s; {SKIPPED}"
    expected = {
        "simulations": passed,
        "commands": f"{passed}; without slow tests (part slow) and tests/adapters/hf",
        "python3.13": f"{passed}; without tests/adapters/hf",
    }
    assert (0, expected) == (code, summary)


def test_nothing_left_out_is_not_mentioned(large: Large) -> None:
    assert (0, {"slow": "passed: 3 passed, 2 skipped in 4.20s"}) == large.run("--only=slow")


def test_each_part_runs_whatever_the_others_came_to(large: Large) -> None:
    code, summary = large.run(code=1)

    failed = "FAILED: 3 passed, 2 skipped in 4.20s"
    expected = {
        "slow": failed,
        "simulations": failed,
        "properties": failed,
        "commands": f"{failed}; without slow tests (part slow) and tests/adapters/hf",
        "python3.12": "left out: there is no Python 3.12 here",
        "python3.13": f"{failed}; without tests/adapters/hf",
        "latest": f"{failed}; only tests/plugin, tests/adapters/openai and tests/functions",
        "bare": failed,
        "clients": failed,
        "plugins": "FAILED: 1 of 2 the same; not: pytest-sugar",
        "ray": "left out: its environment could not be made",
        "lm-eval": failed,
    }
    assert (1, expected) == (code, {part: said for part, said in summary.items() if part != "python3.14"})


def test_options_of_pytest_choose_tests_of_each_part(large: Large) -> None:
    code, summary = large.run("--only=simulations,plugins", "-k", "thoughts", code=5)

    expected = {
        "simulations": "passed: no test of it was chosen",
        "plugins": "left out: it has no tests that options could choose",
    }
    assert (0, expected) == (code, summary)
    assert ["-n 2 --dist worksteal --all -m slow tests/compare -k thoughts"] == large.asked()


def test_a_part_without_tests_fails_where_no_option_chose(large: Large) -> None:
    assert (1, {"simulations": "FAILED: 3 passed, 2 skipped in 4.20s"}) == large.run("--only=simulations", code=5)


def test_a_part_that_is_not_there_is_refused(large: Large) -> None:
    assert (2, {}) == large.run("--only=slow,python2.7")
