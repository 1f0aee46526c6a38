"""Run the worker's jobs: read one question per line, and answer it, until a job takes too long.

A question is the name of a job, a tab, and its arguments as a JSON list. An answer is ``["answer", VALUE]`` or
``["fault", TEXT]``, as JSON.
"""

from __future__ import annotations

import functools
import json
import runpy
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_MEMORY_BYTES = 2 << 30
_LAYERS = ("kernel", "landlock", "seccomp")
# For each job: a file in this folder, its function, the package that it needs, and the extra that installs the package.
_JOBS = {
    "json_schema": ("schema_child.py", "check", "jsonschema", "json"),
    "math_equal": ("math_child.py", "answer", "math_verify", "math"),
    "pattern": ("patterns.py", "applied", None, None),
    "rouge_l": ("texts.py", "lcs_length", None, None),
}


def main() -> None:
    """Answer questions until the input ends; the program's argument is the CPU time limit per answer, in seconds."""
    limit_s = float(sys.argv[1])
    _limit_memory()
    _confine()
    for line in sys.stdin:
        name, _, arguments = line.partition("\t")
        sys.stdout.write(json.dumps(_answer(name, arguments, limit_s)) + "\n")
        sys.stdout.flush()


def _answer(name: str, arguments: str, limit_s: float) -> tuple[str, Any]:
    try:
        job = _job(name)
    except ImportError:
        return "fault", f"needs {_JOBS[name][2]}: pip install 'pytest-lmeval[{_JOBS[name][3]}]'"
    # The kernel ends the process at the limit, even in C code.
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        return "answer", job(*json.loads(arguments))
    except Exception as error:
        return "fault", f"raised {type(error).__name__}: {error}"[:1000]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@functools.cache
def _job(name: str) -> Callable[..., Any]:
    # Imported before the time counts, and by name, because it may not be installed.
    file, function, package, _ = _JOBS[name]
    if package is not None:
        import_module(package)
    job: Callable[..., Any] = runpy.run_path(str(Path(__file__).with_name(file)))[function]
    return job


def _limit_memory() -> None:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    except (OSError, ValueError):  # some systems lack this limit; all systems limit the CPU time
        return


def _confine() -> None:
    """Drop the rights to write files, use the network and start programs, as far as the system allows."""
    package = ModuleType("_lmeval_inside")
    package.__path__ = [str(Path(__file__).parents[2] / "sandbox" / "inside")]
    sys.modules[package.__name__] = package
    try:
        kernel, landlock, seccomp = (import_module(f"_lmeval_inside.{name}") for name in _LAYERS)
        kernel.drop_capabilities()
        landlock.restrict(landlock.abi(), [landlock.rule("/", landlock.READ)])
        seccomp.Filter().install()
    except (AttributeError, KeyError, OSError):  # not Linux, or an older kernel: the limits still hold
        return


if __name__ == "__main__":
    main()
