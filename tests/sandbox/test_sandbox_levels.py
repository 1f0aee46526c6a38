"""Opening a sandbox, what its level promises, and what happens where there can be none."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.errors import SandboxError, UsageError
from pytest_lmeval.sandbox import Limits, Sandbox, open_sandbox, probe_level, require_level
from pytest_lmeval.sandbox.fresh import FreshLauncher

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
ONE = "def f(): return 1"


@pytest.mark.parametrize("level", ["process", "container"])
def test_a_level_has_its_name_and_runs(level: str) -> None:
    sandbox = open_sandbox(level)

    assert level == sandbox.level
    assert 1 == sandbox.call(ONE, "f", [[]], Limits()).answers[0].value


@pytest.mark.parametrize("ask", [open_sandbox, probe_level, require_level])
def test_an_unknown_level_lists_the_choices(ask: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"unknown sandbox level 'jail' \(choices: confined, container, process\)"):
        ask("jail")


@LINUX
@pytest.mark.parametrize("level", ["confined", "container", "process"])
def test_every_layer_holds_here(level: str) -> None:
    assert () == probe_level(level)
    assert None is require_level(level)


def test_a_layer_that_does_not_hold_is_named_by_the_probe() -> None:
    level = open_sandbox("process").confinement
    weak = replace(level, layers={**level.layers, "limits": "def f(): return False"})

    assert ("limits",) == Sandbox(weak, FreshLauncher(weak)).probe()


def test_a_layer_that_the_child_cannot_put_on_is_an_error_of_the_sandbox() -> None:
    level = open_sandbox("process").confinement
    strange = replace(level, layers={**level.layers, "walls": ONE})

    with pytest.raises(SandboxError, match="layer walls: KeyError"):
        Sandbox(strange, FreshLauncher(strange)).call(ONE, "f", [[]], Limits())


def test_no_scratch_folder_is_an_error_of_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    with pytest.raises(SandboxError, match=r"no scratch folder in .*missing"):
        open_sandbox("process").call(ONE, "f", [[]], Limits())


def test_no_interpreter_is_an_error_of_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with pytest.raises(SandboxError, match="no process for"):
        open_sandbox("process").call(ONE, "f", [[]], Limits())
    assert [] == list(tmp_path.iterdir())


def test_an_interpreter_that_fails_is_an_error_that_quotes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no libpython' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))

    with pytest.raises(SandboxError, match=r"exited with status 127.*no libpython"):
        open_sandbox("process").call(ONE, "f", [[]], Limits())


def test_a_failure_of_the_sandbox_is_tried_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = tmp_path / "python"
    flaky.write_text(f'#!/bin/sh\nif mkdir "{tmp_path}/tried"; then exit 1; fi\nexec {sys.executable} "$@"\n')
    flaky.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(flaky))

    assert "pass" == open_sandbox("process").call(ONE, "f", [[]], Limits()).status
    assert (tmp_path / "tried").is_dir()


@pytest.mark.parametrize("limits", [{"cpu_s": 0}, {"wall_s": -1.0}, {"memory_bytes": 0}, {"cpu_s": math.nan}])
def test_a_limit_out_of_range_is_refused(limits: dict[str, float]) -> None:
    [name] = limits
    with pytest.raises(UsageError, match=f"sandbox limit {name}="):
        Limits(**limits)  # type: ignore[arg-type]


def test_the_hang_guard_is_much_longer_than_the_cpu_limit() -> None:
    assert 40.0 == Limits().hang_guard_s
    assert 5.0 == Limits(wall_s=5.0).hang_guard_s


@pytest.mark.parametrize("argument", [object(), 10**5000], ids=["object", "digits"])
def test_an_argument_that_cannot_be_passed_is_the_callers_fault(argument: object) -> None:
    with pytest.raises(UsageError, match="an argument of 'f' cannot be passed"):
        open_sandbox("process").call(ONE, "f", [[argument]], Limits())


def test_the_program_runs_under_the_limits_of_its_level() -> None:
    program = (
        "import resource as r\ndef f():\n"
        "    return [r.getrlimit(getattr(r, 'RLIMIT_' + n))[1] for n in ('CPU', 'CORE', 'FSIZE', 'NOFILE', 'AS')]"
    )
    limits = Limits(cpu_s=1.5, file_bytes=1 << 20, open_files=32, memory_bytes=1 << 28)

    assert [3, 0, 1 << 20, 32, 1 << 28] == open_sandbox("process").call(program, "f", [[]], limits).answers[0].value


def test_the_program_starts_in_an_empty_private_folder(sandbox: Sandbox) -> None:
    program = (
        "import os\ndef f(): return [os.listdir('.'), os.stat('.').st_mode & 0o777, "
        "{os.environ['HOME'], os.environ['TMPDIR']} == {os.getcwd()}]"
    )

    assert [[], 0o700, True] == sandbox.call(program, "f", [[]], Limits()).answers[0].value


def test_the_program_is_a_session_away_from_pytest_and_in_a_group_of_its_own() -> None:
    program = "import os\ndef f(): return [os.getsid(0), os.getpgid(0), os.getpid(), os.getppid()]"

    session, group, pid, parent = open_sandbox("process").call(program, "f", [[]], Limits()).answers[0].value

    assert pid == session == group
    assert os.getpid() not in (parent, session)
