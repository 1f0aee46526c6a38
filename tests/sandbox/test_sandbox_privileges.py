"""The level ``confined`` for other users, with fewer privileges, and where the kernel lacks a part of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_lmeval

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the tests name system calls by number"),
]
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
PACKAGE = Path(pytest_lmeval.__file__).parent.parent
NOBODY = 65534

PROBE = f"""
import sys
sys.path.insert(0, {str(PACKAGE)!r})
from pytest_lmeval.sandbox import Limits, best_level, open_sandbox, probe_level, require_level
import os, tempfile
tempfile.tempdir = sys.argv[1]
print(*probe_level("confined"))
print(best_level())
print(require_level("confined"))
with open_sandbox() as sandbox:
    print(sandbox.call("import sqlite3, os\\ndef f(): return os.getuid()", "f", [[]], Limits()).answers[0].value)
print(os.listdir(tempfile.tempdir))
"""
# A filter that answers some system calls as an older kernel would.
OLDER = """
import struct, ctypes
def forget(*numbers, error=38, option=None):
    lines = [] if option is None else [(0x20, 0, 0, 16), (0x15, 1, 0, option), (0x06, 0, 0, 0x7FFF0000)]
    lines += [(0x20, 0, 0, 0)]
    for number in numbers:
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error)]
    code = b"".join(struct.pack("HBBI", *line) for line in [*lines, (0x06, 0, 0, 0x7FFF0000)])
    kept = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(kept)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.c_ulong(ctypes.addressof(program)), 0, 0) == 0
"""
DROP = """
import ctypes
assert ctypes.CDLL(None).prctl(24, {capability}, 0, 0, 0) == 0
"""
EXEC = "\nimport os, sys\nos.execv(sys.executable, [sys.executable, '-c', {probe!r}, *sys.argv[1:]])\n"


def _probe(tmp_path: Path, before: str = "", python: str = sys.executable, user: int | None = None) -> list[str]:
    tmp_path.chmod(0o777)
    program = before + EXEC.format(probe=PROBE) if before else PROBE
    identity = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        [python, "-c", program, str(tmp_path)], capture_output=True, text=True, cwd="/", check=False, **identity
    )  # type: ignore[call-overload]
    assert "" == done.stderr
    lines: list[str] = done.stdout.splitlines()
    return lines


@ROOT
@pytest.mark.parametrize("capability", [21, 8], ids=["administrate", "drop capabilities"])
def test_it_works_as_root_without_the_capability_to(capability: int, tmp_path: Path) -> None:
    assert ["", "confined", "None", "0", "[]"] == _probe(tmp_path, DROP.format(capability=capability))


@ROOT
def test_it_works_as_an_ordinary_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    import tempfile

    python = next(filter(_serves_nobody, ["/usr/bin/python3", "/usr/local/bin/python3", sys.executable]), None)
    if python is None:
        pytest.skip("no Python of this version or newer that an ordinary user may run")
    # Below a folder that only its owner may enter, this user would reach nothing.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        assert ["", "confined", "None", str(NOBODY), "[]"] == _probe(Path(folder), python=python, user=NOBODY)


def _serves_nobody(python: str) -> bool:
    check = (
        f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import pytest_lmeval; sys.exit(sys.version_info < (3, 11))"
    )
    try:
        return not subprocess.run(
            [python, "-c", check], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False
        ).returncode
    except OSError:
        return False


def test_without_landlock_the_level_is_missing_and_the_next_is_used(tmp_path: Path) -> None:
    layers, best, text, value, litter = _probe(tmp_path, f"{OLDER}\nforget(444, 445, 446)\n")

    assert ("landlock", "process", str(os.getuid()), "[]") == (layers, best, value, litter)
    assert "'confined' does not hold on this machine, which lacks landlock; --lm-sandbox process" in text
    assert "--lm-sandbox container" in text


def test_a_landlock_that_accepts_the_rules_and_ignores_them_is_found_out(tmp_path: Path) -> None:
    # As if it had worked: the call that puts the rules on answers 0 and does nothing.
    assert "landlock" == _probe(tmp_path, f"{OLDER}\nforget(446, error=0)\n")[0]


def test_without_seccomp_the_level_is_missing(tmp_path: Path) -> None:
    assert "seccomp" == _probe(tmp_path, f"{OLDER}\nforget(157, error=22, option=22)\n")[0]


def test_a_filter_that_is_accepted_and_not_applied_is_found_out(tmp_path: Path) -> None:
    assert "seccomp" == _probe(tmp_path, f"{OLDER}\nforget(157, error=0, option=22)\n")[0]
