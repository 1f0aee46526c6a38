"""Programs that mean well, of the kinds that models write: all of them have to work."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pytest_lmeval.sandbox import Limits, Sandbox

# Each defines f() and is to return 42.
HONEST = {
    "plain": "def f(): return 42",
    "crlf": "def f():\r\n    x = 40\r\n    return x + 2\r\n",
    "bom": "\ufeffdef f(): return 42",
    "unicode": "# żółć 😀\nénorme = '😀' * 42\ndef f(): return len(énorme)",
    "a coding cookie": "# -*- coding: latin-1 -*-\ndef f(): return 42 if 'é' == chr(233) else 0",
    "tabs": "def f():\n\treturn 42",
    "a docstring and a future import": '"""Doc."""\nfrom __future__ import annotations\ndef f() -> Nope: return 42',
    "a lambda": "f = lambda: 42",
    "a closure": "def make():\n    x = 42\n    def f(): return x\n    return f\nf = make()",
    "a partial": "import functools\nf = functools.partial(int, '42')",
    "a cached function": "import functools\n@functools.lru_cache\ndef f(): return 42",
    "a class as function": "class f(int):\n    def __new__(cls): return 42",
    "a main guard": "def f(): return 42\nif __name__ == '__main__':\n    raise SystemExit('ran main')",
    "a dataclass": "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x: int = 42\n"
    "    y: list = field(default_factory=list)\ndef f(): return P().x",
    "a dataclass with text annotations": "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    "@dataclass(slots=True)\nclass P:\n    x: int\ndef f(): return P(42).x",
    "typing": "from typing import List, NamedTuple\nclass P(NamedTuple):\n    x: int\n"
    "def f() -> List[int]: return P(42).x",
    "an enum": "import enum\nclass E(enum.IntEnum):\n    A = 42\ndef f(): return E.A",
    "pickle of its own class": "import pickle\nclass P: pass\ndef f():\n    p = P(); p.x = 42\n"
    "    return pickle.loads(pickle.dumps(p)).x",
    "global state": "n = 41\ndef f():\n    global n\n    n += 1\n    return n",
    "recursion to 2000": "def g(n): return n if n == 0 else 1 + g(n - 1)\ndef f(): return g(2000) - 1958",
    "its own recursion limit": "import sys\nsys.setrecursionlimit(10000)\n"
    "def g(n): return 0 if n == 0 else 1 + g(n - 1)\n"
    "def f(): return g(6000) - 5958",
    "cached recursion": "import functools\n@functools.cache\ndef g(n): return n if n == 0 else 1 + g(n - 1)\n"
    "def f(): return g(800) - 758",
    "printing": "print('loading')\ndef f():\n    print('calling', 'ż', '\\ud800')\n    return 42",
    "stderr and logging": "import logging, sys\ndef f():\n    logging.warning('w'); sys.stderr.write('x')\n"
    "    return 42",
    "redirected stdout": "import contextlib, io\ndef f():\n    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
    "        print(42)\n    return int(out.getvalue())",
    "closed stdout": "import sys\nsys.stdout.close()\ndef f(): return 42",
    "replaced stdout": "import io, sys\nsys.stdout = io.StringIO()\ndef f():\n    print('x')\n    return 42",
    "reading stdin": "def f():\n    try: input()\n    except EOFError: return 42",
    "memory without a file": "import mmap\ndef f():\n"
    "    views = [mmap.mmap(-1, 4096), mmap.mmap(-1, 4096, access=mmap.ACCESS_WRITE),\n"
    "        mmap.mmap(fileno=-1, length=4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)]\n"
    "    for view in views: view[0] = 14\n"
    "    assert all(isinstance(view, mmap.mmap) for view in views) and str(mmap.mmap) == \"<class 'mmap.mmap'>\"\n"
    "    return sum(view[0] for view in views)",
    "memory that is not to be written": "import mmap\ndef f():\n"
    "    try: mmap.mmap(-1, 4096, access=mmap.ACCESS_READ)[0] = 1\n    except TypeError: return 42",
    "threads": "import threading\ndef f():\n    got = []\n"
    "    ts = [threading.Thread(target=got.append, args=(i,)) for i in range(42)]\n"
    "    [t.start() for t in ts]; [t.join() for t in ts]\n    return len(got)",
    "a thread pool": "from concurrent.futures import ThreadPoolExecutor\ndef f():\n"
    "    with ThreadPoolExecutor() as p:\n"
    "        return sum(p.map(lambda x: x, range(20))) - 148",
    "a process pool": "from concurrent.futures import ProcessPoolExecutor\nimport multiprocessing\n"
    "def g(x): return x + 1\n"
    "def f():\n    with ProcessPoolExecutor(2, multiprocessing.get_context('fork')) as p:\n"
    "        return sum(p.map(g, [20, 20]))",
    "a subprocess": "import subprocess, sys\ndef f():\n"
    "    return int(subprocess.run([sys.executable, '-c', 'print(42)'], capture_output=True, text=True).stdout)",
    "a fork that is waited for": "import os\ndef f():\n    pid = os.fork()\n    if pid == 0: os._exit(42)\n"
    "    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])",
    "asyncio": "import asyncio\nasync def g():\n    await asyncio.sleep(0.01)\n    return 42\n"
    "def f(): return asyncio.run(g())",
    "tempfile": "import tempfile, os\ndef f():\n    with tempfile.TemporaryDirectory() as d:\n"
    "        with open(os.path.join(d, 'x'), 'w') as o: o.write('42')\n"
    "        return int(open(os.path.join(d, 'x')).read())",
    "files in the working folder": "def f():\n    with open('x.txt', 'w') as o: o.write('42')\n"
    "    return int(open('x.txt').read())",
    "a module that it writes itself": "def f():\n    with open('mine.py', 'w') as o: o.write('x = 42')\n"
    "    import mine\n    return mine.x",
    "sqlite": "import sqlite3\ndef f():\n    return sqlite3.connect(':memory:').execute('select 42').fetchone()[0]",
    "regular expressions, json, dates, heaps": "import re, json, datetime, heapq, itertools, collections, math\n"
    "def f(): return json.loads(re.sub('x', '4', 'x2')) + len(collections.Counter()) + math.floor(0.5)",
    "an alarm": "import signal\ndef f():\n    signal.signal(signal.SIGALRM, lambda *a: None)\n"
    "    signal.setitimer(signal.ITIMER_REAL, 0.1)\n    signal.pause()\n    return 42",
    "exec and eval": "def f():\n    space = {}\n    exec('x = eval(\"42\")', space)\n    return space['x']",
    "an unawaited coroutine and a warning": "import warnings\nasync def g(): pass\ndef f():\n    g()\n"
    "    warnings.warn('w')\n    return 42",
    "an exit handler": "import atexit\natexit.register(print, 'bye')\ndef f(): return 42",
    "a daemon thread that never ends": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\ndef f(): return 42",
    "a garbage collector that is off": "import gc\ngc.disable(); gc.freeze()\ndef f(): return 42",
    "a star import": "from math import *\ndef f(): return int(floor(42.5))",
    "a syntax warning": "def f(): return 42 if 1 is 1 else 0",
    "exit() in a branch not taken": "def f():\n    if 0: exit(1)\n    return 42",
    "five megabytes": "x = '''" + "spam\n" * 10**6 + "'''\ndef f(): return len(x) - 4999958",
    "a large table": "x = [" + "1, " * 100_000 + "]\ndef f(): return len(x) - 99958",
    "64 MiB of memory": "def f():\n    x = bytearray(64 << 20)\n    return 42",
    "copies of files": "import shutil\ndef f():\n    open('a', 'w').write('42'); shutil.copy('a', 'b')\n"
    "    shutil.copy2('b', 'c'); shutil.copytree('.', 'd/e')\n    return int(open('d/e/c').read())",
    "archives": "import io, tarfile, zipfile\ndef f():\n    open('a', 'w').write('42')\n"
    "    with zipfile.ZipFile('z', 'w') as z: z.write('a', 'b')\n    zipfile.ZipFile('z').extractall()\n"
    "    with tarfile.open('t.tar.gz', 'w:gz') as t: t.add('b', 'c')\n    tarfile.open('t.tar.gz').extractall()\n"
    "    return int(open('c').read())",
    "shared libraries of the standard library": "import bz2, curses, lzma, sqlite3, ssl, zlib, hashlib, ctypes\n"
    "import xml.etree.ElementTree as x, decimal, uuid\n"
    "def f():\n    ssl.create_default_context(); uuid.uuid4(); hashlib.sha3_256(b'x')\n"
    "    return int(x.fromstring('<a>42</a>').text)",
    "a callback through ctypes": "import ctypes\ndef f():\n"
    "    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)(41)",
    "time zones": "import datetime, zoneinfo\ndef f():\n"
    "    return 42 if datetime.datetime(2020, 1, 1).astimezone().tzname() == 'UTC' else 0",
    "a socket pair and a selector": "import selectors, socket\ndef f():\n    a, b = socket.socketpair()\n"
    "    a.send(b'42')\n    s = selectors.DefaultSelector(); s.register(b, selectors.EVENT_READ)\n"
    "    return int(s.select()[0][0].fileobj.recv(9))",
    "a pipe, a lock and a named pipe": "import fcntl, os\ndef f():\n    r, w = os.pipe(); os.write(w, b'42')\n"
    "    os.mkfifo('p'); fcntl.flock(os.open('x', os.O_CREAT), fcntl.LOCK_EX)\n    return int(os.read(r, 9))",
    "its own limits and signals": "import os, resource, signal\ndef f():\n    got = []\n"
    "    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))\n"
    "    signal.signal(signal.SIGUSR1, lambda *a: got.append(42))\n    os.kill(os.getpid(), signal.SIGUSR1)\n"
    "    signal.raise_signal(signal.SIGUSR1)\n    return got[1]",
    "big integers": "def f(): return 7 ** 20000 % 100 + 41 - (7 ** 20000 % 100 - 1)",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n"
    "def f():\n    r = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))\n"
    "    return 41 + r.testsRun",
    "hash order that is the same everywhere": "def f(): return 42 if hash('a') == hash('a') else 0",
}

STARTS_PROCESSES = ("a process pool", "a subprocess", "a fork that is waited for")
# The default run has all of them at one level.
BY_LEVEL = [
    *(pytest.param(HONEST[name], "confined", id=f"{name}-confined") for name in HONEST if name not in STARTS_PROCESSES),
    *(
        pytest.param(HONEST[name], "process", id=f"{name}-process", marks=pytest.mark.again)
        for name in HONEST
        if name not in STARTS_PROCESSES
    ),
    *(pytest.param(HONEST[name], "process", id=f"{name}-process") for name in STARTS_PROCESSES),
]


def ends_cached_calls_early() -> bool:
    """Whether the cached recursion fails here too, under a recursion limit that is far above it."""
    here: dict[str, Any] = {}
    exec(HONEST["cached recursion"], here)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        here["f"]()
    except RecursionError:
        return True
    finally:
        sys.setrecursionlimit(limit)
    return False


@pytest.mark.parametrize(("program", "level"), BY_LEVEL)
def test_an_honest_program_works(program: str, level: str, request: pytest.FixtureRequest) -> None:
    sandbox: Sandbox = request.getfixturevalue(level)
    if program == HONEST["cached recursion"] and ends_cached_calls_early():
        pytest.skip("this Python ends cached calls at a depth of its own, as 3.12.1 does at about 500")
    run = sandbox.call(program, "f", [[]], Limits())

    assert ("pass", 42) == (run.status, run.answers[0].value), (run.reason, run.stderr)


BROKEN = {
    "empty": ("", "error", "no 'f'"),
    "blank": ("\n\n  \n", "error", "no 'f'"),
    "prose": ("Sure! Here is the code:", "syntax_error", "SyntaxError"),
    "a fence": ("```python\ndef f(): return 42\n```", "syntax_error", "SyntaxError"),
    "an open bracket": ("def f(:", "syntax_error", "SyntaxError"),
    "bad indentation": ("def f():\nreturn 42", "syntax_error", "IndentationError"),
    "a NUL byte": ("def f(): return 42\0", "syntax_error", "null byte"),
    "a lone surrogate": ("x = '\ud800'\ndef f(): return 42", "syntax_error", "surrogates"),
    "deep nesting": ("x = " + "(" * 5000 + ")" * 5000, "syntax_error", "nested"),
    "no function": ("x = 42", "error", "no 'f'"),
    "no callable": ("f = 42", "error", "not callable"),
    "another signature": ("def f(a): return 42", "error", "missing 1 required"),
    "an error while loading": ("1 / 0", "error", "ZeroDivisionError: division by zero"),
    "an error in the call": ("def f(): return [][0]", "error", "IndexError"),
    "an exception that can't be printed": (
        "class E(Exception):\n    def __str__(self): raise self\ndef f(): raise E",
        "error",
        "E",
    ),
    "a package that is not there": ("import numpy\ndef f(): return 42", "error", "ModuleNotFoundError"),
}


@pytest.mark.parametrize(("program", "status", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_program_gets_a_status_and_a_reason(program: str, status: str, reason: str, sandbox: Sandbox) -> None:
    run = sandbox.call(program, "f", [[]], Limits())

    assert status == run.status
    assert reason in run.reason
    run.reason.encode("utf-8")


def test_one_failing_call_does_not_fail_the_others(sandbox: Sandbox) -> None:
    run = sandbox.call("def f(x): return 1 // x", "f", [[1], [0], [-1]], Limits())

    assert ["value", "raised", "value"] == [answer.kind for answer in run.answers]
    assert ("error", "ZeroDivisionError: integer division or modulo by zero") == (run.status, run.reason)


SCRIPTS = {
    "output": ("print('a'); print('b')", "a\nb\n"),
    "the main guard": ("def main(): print('main')\nif __name__ == '__main__': main()", "main\n"),
    "a clean exit": ("import sys\nprint('x')\nsys.exit(0)", "x\n"),
    "exit()": ("print('x')\nexit()", "x\n"),
    "exit handlers": ("import atexit\natexit.register(print, 'bye')\nprint('x')", "x\nbye\n"),
    "threads that are not waited for": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
        "late\n",
    ),
    "a fork": ("import os\nif os.fork(): os.wait(); print('parent')\nelse: print('child')", "child\nparent\n"),
    "a dataclass in main": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))",
        "P(x=1)\n",
    ),
    "no newline at the end": ("import sys\nsys.stdout.write('x')", "x"),
    "bytes": ("import sys\nsys.stdout.buffer.write(b'\\xff\\n')", "\ufffd\n"),
}


@pytest.mark.parametrize(("program", "stdout"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_runs_to_its_end(program: str, stdout: str, sandbox: Sandbox) -> None:
    if sandbox.level == "confined" and "os.fork" in program:
        pytest.skip("starts processes, which this level denies")
    run = sandbox.script(program, Limits())

    assert ("pass", stdout) == (run.status, run.stdout), (run.reason, run.stderr)


CHECKS = {
    "sets, tuples, bytes and odd keys": (
        "def f(x): return {(1, 2): {x}, None: b'x', 1.5: (x, [x])}",
        "assert candidate(3) == {(1, 2): {3}, None: b'x', 1.5: (3, [3])}",
    ),
    "types": (
        "def f(x): return (x, float(x))",
        "assert isinstance(candidate(1), tuple); assert type(candidate(1)[1]) is float",
    ),
    "keywords": ("def f(a, *, b=1): return a - b", "assert candidate(5, b=2) == 3 == candidate(a=4)"),
    "a change in place": ("def f(x): x.sort()", "x = [3, 1, 2]\n    candidate(x)\n    assert x == [1, 2, 3]"),
    "a changed dict": ("def f(x): x.pop('a'); x['b'] = 2", "x = {'a': 1}\n    candidate(x)\n    assert x == {'b': 2}"),
    "no change": ("def f(x): return sorted(x)", "x = [3, 1]\n    candidate(x)\n    assert x == [3, 1]"),
    "an expected exception": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
        "try:\n        candidate(-1)\n    except ValueError as e:\n        assert 'negative' in str(e)\n    else:\n"
        "        assert False",
    ),
    "an exception of its own": (
        "class Odd(Exception): pass\ndef f(x): raise Odd('odd')",
        "try:\n        candidate(1)\n    except Exception as e:\n        assert 'odd' in str(e)\n    else:\n"
        "        assert False",
    ),
    "infinity and NaN": (
        "def f(x): return [float('inf'), float('nan')]",
        "a, b = candidate(1); assert a > 1 and b != b",
    ),
}


@pytest.mark.parametrize(("program", "check"), CHECKS.values(), ids=CHECKS)
def test_tests_in_their_own_process_see_what_they_would_see_beside_the_program(
    program: str, check: str, sandbox: Sandbox
) -> None:
    run = sandbox.check(program, f"def check(candidate):\n    {check}\n", "f", Limits())

    assert "pass" == run.status, run.reason
    # What a program changes of the tests' own data decides what they compare with.
    assert ("x.sort()" in program or "x.pop" in program) == run.forgeable


def test_tests_that_fail_tell_why(sandbox: Sandbox) -> None:
    program = "def f(x): return x"

    wrong = sandbox.check(program, "def check(candidate):\n    assert candidate(1) == 2, 'one'\n", "f", Limits())
    raised = sandbox.check(program, "def check(candidate):\n    candidate(1, 2)\n", "f", Limits())
    missing = sandbox.check(program, "def check(candidate): pass\n", "g", Limits())

    assert ("assertion_fail", "AssertionError: one") == (wrong.status, wrong.reason)
    assert ("error", True) == (raised.status, raised.reason.startswith("TypeError"))
    assert ("error", "the program defines no function 'g'") == (missing.status, missing.reason)


def test_programs_run_side_by_side(sandbox: Sandbox) -> None:
    def double(n: int) -> object:
        return sandbox.call("def f(x): return 2 * x", "f", [[n]], Limits()).answers[0].value

    with ThreadPoolExecutor(4) as pool:
        assert [2 * n for n in range(24)] == list(pool.map(double, range(24)))
