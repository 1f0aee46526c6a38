"""``.ci/run`` runs the commands of the README, as it has them, and then what they left out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import commands

ROOT = Path(__file__).parents[1]
README = """
## Try it

```sh
python3 -m venv .venv && .venv/bin/first one
```

```sh
python3 -m venv .venv && .venv/bin/second two && ./check
```

```sh
pip install it
```

## Use it

```sh
python3 -m venv .venv
```
"""
# Notes where it runs, as what, and what of CI's own settings it sees; "uv venv" makes a folder with a program in it.
TOOL = """\
#!/bin/sh
for last; do :; done
echo "${{PWD##*/}}: ${{0##*/}} $*${{LMEVAL_TESTS_REQUIRE:+; requires}}${{PYTHONPATH:+; has a path}}" >>'{log}'
case "${{0##*/}} $1" in
"uv venv") mkdir -p "$last/bin" && cp "$0" "$last/bin/first" ;;
"{fails}"*) exit 3 ;;
esac
"""
PYTHON = """\
#!/bin/sh
if [ "$2" != venv ]; then exec '{python}' "$@"; fi
mkdir -p .venv/bin
for name in first second pip pytest python uv; do cp '{tool}' .venv/bin/$name; done
"""
GIT = """\
#!/bin/sh
[ "$1 $2 $3" = "clone --quiet ." ] && cp -R . "$4" && rm -rf "$4/.venv"
"""


class Machine:
    """A checkout with the script and a README of its own, and programs that note how they are called."""

    def __init__(self, folder: Path) -> None:
        self._bin, self._log, self._checkout = folder / "bin", folder / "log", folder / "checkout"
        for name in (".ci/run", "tests/readme.py"):
            (self._checkout / name).parent.mkdir(parents=True)
            shutil.copy(ROOT / name, self._checkout / name)
        (self._checkout / "README.md").write_text(README)
        self._bin.mkdir()

    def run(self, fails: str = "nothing") -> tuple[int, list[str]]:
        """Run the script on a machine on which one program fails; return its exit code, and what was called where."""
        tool = TOOL.format(log=self._log, fails=fails)
        python = PYTHON.format(python=sys.executable, tool=self._bin / "tool")
        programs = {name: self._bin / name for name in ("tool", "chromium", "python3", "git")}
        for name, path in {**programs, "check": self._checkout / "check"}.items():
            path.write_text({"python3": python, "git": GIT}.get(name, tool))
            path.chmod(0o755)
        surroundings = {**os.environ, "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}"}
        seen = {**surroundings, "LMEVAL_TESTS_REQUIRE": "git", "PYTHONPATH": str(self._bin)}
        done = subprocess.run([self._checkout / ".ci/run"], env=seen, capture_output=True, text=True, check=False)
        return done.returncode, self._log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_ci_begins_with_the_commands_of_the_readme_in_clones_of_their_own(machine: Machine) -> None:
    code, called = machine.run()

    assert 0 == code
    assert ["1: first one", "2: second two", "2: check "] == [
        line for line in called if not line.startswith("checkout: ")
    ]


def test_what_comes_after_leaves_out_what_passed_in_the_second_clone(machine: Machine) -> None:
    _, called = machine.run()

    tests = [line for line in called if "--not-passed-in=" in line]
    assert 2 == len(tests)
    assert [] == [line for line in tests if not re.search(r"--not-passed-in=/.+/2 .*; requires", line)]
    assert any(line.startswith("checkout: first one -n 2 ") for line in called)


@pytest.mark.parametrize("command", ["first", "second", "check"])
def test_a_command_of_the_readme_that_fails_ends_it(command: str, machine: Machine) -> None:
    code, called = machine.run(fails=command)

    assert 3 == code
    assert not any("--not-passed-in=" in line for line in called)


@pytest.mark.parametrize("command", ["pytest", "python"])
def test_a_failure_of_what_comes_after_is_one_of_it(command: str, machine: Machine) -> None:
    assert 3 == machine.run(fails=command)[0]


def test_the_readme_has_two_commands_and_neither_ci_nor_a_script_a_second_copy_of_one() -> None:
    first, second = commands()
    workflows = (ROOT / ".github/workflows").glob("*.yml")
    scripts = [*(ROOT / ".ci").iterdir(), *workflows, ROOT / "check", ROOT / "action.yml", *(ROOT / "action").iterdir()]
    copy = re.compile(r"install (?:--?[a-z]+ )*-e (?:\.|'?\.\[test\]'?)(?=\s|$)")

    assert [".venv/bin/pytest tasks/ --lm-adapter=toy", "./check"] == [
        each.split(" && ")[-1] for each in (first, second)
    ]
    assert all(copy.search(each) for each in (first, second))
    assert [] == [path.name for path in scripts if path.is_file() and copy.search(path.read_text("utf-8"))]
    assert f"    {second}\n" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
