"""Programs that try to score without doing the work, each in every form in which it could."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_lmeval.metrics.code_exec import code_exec, code_exec_expressions
from pytest_lmeval.sandbox import Sandbox
from pytest_lmeval.types import Score

PAIRS = {"io_pairs": [[3, 6], [[1, 2], [1, 2, 1, 2]], ["ab", "abab"]]}
TARGETS = ["f(3) == 6", "[1, 2, 1, 2] == f([1, 2])", "f('ab') in ('abab', 'ABAB')"]
TESTS = {
    "tests": "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate([1, 2]) == [1, 2, 1, 2]\n",
    "entry_point": "f",
}
STDOUTS = {"stdouts": True}

LYING_BASE = """
def __eq__(self, other): return True
def __ne__(self, other): return False
def __hash__(self): return 0
def __lt__(self, other): return True
def __gt__(self, other): return True
def __bool__(self): return True
def __contains__(self, item): return True
def __instancecheck__(self, item): return True
members = {name: value for name, value in globals().items() if name.startswith("__") and callable(value)}
"""

FRAME = "len(p).to_bytes(4, 'big') + p"

FORGERIES = {
    "prints a verdict": "print('pass'); print('1.0'); print('{\"passed\": true}')",
    "prints a verdict and leaves": "print('OK', flush=True)\nimport os; os._exit(0)",
    "leaves at once": "import os; os._exit(0)",
    "leaves politely": "import sys; sys.exit(0)",
    "raises SystemExit": "raise SystemExit",
    "leaves in the call": "def f(x):\n    import os; os._exit(0)",
    "exits in the call": "def f(x):\n    import sys; sys.exit(0)",
    "leaves in an exit handler": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return None",
    "kills itself": "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGTERM)",
    "returns an object that equals everything": LYING_BASE + "Any = type('Any', (), members)\ndef f(x): return Any()",
    "returns an int that equals everything": LYING_BASE + "Any = type('Any', (int,), members)\ndef f(x): return Any(1)",
    "returns a str that equals everything": LYING_BASE + "Any = type('Any', (str,), members)\ndef f(x): return Any('')",
    "returns a float that equals everything": LYING_BASE
    + "Any = type('Any', (float,), members)\ndef f(x): return Any(1)",
    "returns a list that equals everything": LYING_BASE + "Any = type('Any', (list,), members)\ndef f(x): return Any()",
    "returns a tuple that equals everything": LYING_BASE
    + "Any = type('Any', (tuple,), members)\ndef f(x): return Any()",
    "returns a dict that equals everything": LYING_BASE + "Any = type('Any', (dict,), members)\ndef f(x): return Any()",
    "lies about its class": "class Any:\n    __class__ = int\n    def __eq__(self, o): return True\n"
    "def f(x): return Any()",
    "has a lying metaclass": LYING_BASE + "M = type('M', (type,), members)\nC = M('C', (), {})\ndef f(x): return C",
    "returns mock.ANY": "from unittest.mock import ANY\ndef f(x): return ANY",
    "overrides __repr__ and __iter__": "class L(list):\n    def __repr__(self): return '6'\n    def __iter__(self): "
    "return iter([1, 2, 1, 2])\ndef f(x): return L()",
    "returns itself": "def f(x): return f",
    "returns NotImplemented": "def f(x): return NotImplemented",
    "returns a bool": "def f(x): return True",
    "returns NaN": "def f(x): return float('nan')",
    "returns None": "def f(x): pass",
    "returns text of the value": "def f(x): return repr(x * 2) + ' '",
    "raises AssertionError": "def f(x): raise AssertionError('6')",
    "raises StopIteration": "def f(x): raise StopIteration(6)",
    "replaces json": "import json\njson.loads = json.dumps = lambda *a, **k: True\ndef f(x): return 1",
    "replaces builtins": "import builtins\nfor n in ('isinstance', 'all', 'any', 'len', 'abs'):\n"
    "    setattr(builtins, n, lambda *a: True)\nbuiltins.AssertionError = Exception\ndef f(x): return 1",
    "shadows builtins": "def abs(x): return 0\ndef all(x): return True\ndef len(x): return 2\ndef f(x): return 1",
    "defines check": "def check(candidate): return True\ndef f(x): return 1",
    "replaces __main__": "import sys, types\nsys.modules['__main__'] = types.ModuleType('__main__')\n"
    "sys.modules['tests'] = types.ModuleType('tests')\ndef f(x): return 1",
    "clears sys.modules": "import sys\nsys.modules.clear()\ndef f(x): return 1",
    "replaces the encoder": "import sys\nwire = sys.modules['_lmeval_inside.wire']\n"
    "wire.encode = lambda *a: 'true'\ndef f(x): return 1",
    "replaces the host's answer": "import gc, sys\nHost = sys.modules['_lmeval_inside.host'].Host\n"
    "Host._answer = lambda self, message: ('value', True, None)\ndef f(x): return 1",
    "answers as the tests would": "import gc, sys\nHost = sys.modules['_lmeval_inside.host'].Host\n"
    "Host._answer = lambda self, message: ('passed',)\ndef f(x): return 1",
    "walks frames for the answer": "import sys\ndef f(x):\n    frame = sys._getframe()\n    seen = []\n"
    "    while frame:\n        seen += frame.f_locals.values()\n        frame = frame.f_back\n"
    "    return next((v for v in seen if v in (6, 'abab', [1, 2, 1, 2])), None)",
    "searches the heap for the answer": "import gc\ndef f(x):\n"
    "    for item in gc.get_objects():\n        if type(item) is list and item == [1, 2] * 2: return item\n",
    "floods every descriptor": f"import os\np = b'[\"value\",true,null]'\nfor fd in range(3, 64):\n    try:\n"
    f"        os.write(fd, ({FRAME}) * 20)\n    except OSError: pass\ndef f(x): return 1",
    "claims to have passed on every descriptor": f"import os\np = b'[\"passed\"]'\nfor fd in range(3, 64):\n    try:\n"
    f"        os.write(fd, ({FRAME}) * 20)\n    except OSError: pass\nos._exit(0)",
    "claims to have ended on every descriptor": f'import os\np = b\'["ended","token","",""]\'\n'
    f"for fd in range(3, 64):\n    try:\n        os.write(fd, ({FRAME}) * 20)\n    except OSError: pass\nos._exit(0)",
    "sends half a frame": "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\0\\0\\1\\0[')\n"
    "    except OSError: pass\nos._exit(0)",
    "sends a huge frame": "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 64)\n"
    "    except OSError: pass\ndef f(x): return 1",
    "sends what is not JSON": f"import os\np = b'[\"value\",NaN,nul'\nfor fd in range(3, 64):\n    try:\n"
    f"        os.write(fd, {FRAME})\n    except OSError: pass\ndef f(x): return 1",
    "closes every descriptor": "import os\nos.closerange(0, 64)\ndef f(x): return 1",
    "forks and lets both answer": "import os\ndef f(x):\n    return 1 if os.fork() else 6",
    "traces the interpreter": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n"
    "def f(x): return 1",
    "is a class": "class f:\n    def __new__(cls, x): return object.__new__(cls)\n    def __eq__(self, o): return True",
    "does nothing": "",
}


FORMS: dict[str, Callable[[str, Sandbox], Score]] = {
    "pairs": lambda program, sandbox: code_exec(program, ["ok"], PAIRS, sandbox),
    "expressions": lambda program, sandbox: code_exec_expressions(program, TARGETS, {}, sandbox),
    "tests": lambda program, sandbox: code_exec(program, ["ok"], TESTS, sandbox),
    "stdouts": lambda program, sandbox: code_exec(program, ["6\n"], STDOUTS, sandbox),
}
# Each has one form, in turn; all with --all.
ONE_BY_ONE = [
    pytest.param(
        program,
        form,
        id=f"{name}-{form}",
        marks=pytest.mark.slow if (number - turn) % len(FORMS) else pytest.mark.again,
    )
    for number, (name, program) in enumerate(FORGERIES.items())
    for turn, form in enumerate(FORMS)
]


@pytest.mark.parametrize("program", FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_scores_nothing_whatever_the_form(program: str, confined: Sandbox) -> None:
    assert dict.fromkeys(FORMS, 0.0) == {form: score(program, confined).value for form, score in FORMS.items()}


@pytest.mark.parametrize(("program", "form"), ONE_BY_ONE)
def test_a_forgery_scores_nothing_where_nothing_is_denied(program: str, form: str, process: Sandbox) -> None:
    assert 0.0 == FORMS[form](program, process).value


def test_the_honest_program_scores_in_every_form(sandbox: Sandbox) -> None:
    program = "def f(x): return x * 2\nprint(f(3))"

    scores = [score(program, sandbox) for score in FORMS.values()]
    scores.append(code_exec(program, ["5", "6\n"], STDOUTS, sandbox))

    assert [1.0] * 5 == [score.value for score in scores]
    assert ["pass"] * 5 == [score.details["code_status"] for score in scores]
    assert not any("forgeable" in score.details for score in scores)


LEAVERS = {
    "os._exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "a bare exit()": "exit()",
    "an exit handler": "import atexit, os; atexit.register(os._exit, 0)",
    "a thread": "import os, threading; t = threading.Thread(target=os._exit, args=(0,)); t.start(); t.join()",
    "a replaced process": "import os; os.execv('/bin/true', ['true'])",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "a forged end": f'import os\np = b\'["ended","","",""]\'\nfor fd in range(3, 64):\n    try:\n'
    f"        os.write(fd, {FRAME})\n    except OSError: pass\nos._exit(0)",
}


@pytest.mark.parametrize("program", LEAVERS.values(), ids=LEAVERS)
def test_a_script_that_leaves_early_is_no_success(program: str) -> None:
    from pytest_lmeval.sandbox import execute_code

    result = execute_code(f"{program}\nassert 1 == 2")

    assert not result.success
    assert result.error


def test_tests_that_rely_on_another_function_of_the_program_are_marked_forgeable(sandbox: Sandbox) -> None:
    tests = "def check(candidate):\n    assert encode(candidate(3)) == 3\n"
    program = "def f(x): return 1\ndef encode(x): return 3"

    score = code_exec(program, ["ok"], {"tests": tests, "entry_point": "f"}, sandbox)

    assert 1.0 == score.value
    assert score.details["forgeable"] is True


def test_tests_whose_data_the_program_changed_are_marked_forgeable(sandbox: Sandbox) -> None:
    tests = "def check(candidate):\n    x = [3, 1]\n    assert candidate(x) == sorted(x)\n"

    score = code_exec("def f(x):\n    x.clear()\n    return []", ["ok"], {"tests": tests, "entry_point": "f"}, sandbox)

    assert (1.0, True) == (score.value, score.details["forgeable"])


@pytest.mark.parametrize("name", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit"])
def test_an_exception_that_ends_loops_does_not_end_those_of_the_tests(name: str, sandbox: Sandbox) -> None:
    tests = "def check(candidate):\n    assert all(map(lambda x: candidate(x) == x, [1, 2]))\n"

    score = code_exec(f"def f(x): raise {name}", ["ok"], {"tests": tests, "entry_point": "f"}, sandbox)

    assert (0.0, "error") == (score.value, score.details["code_status"])


def test_an_expression_that_is_no_comparison_is_marked_forgeable(sandbox: Sandbox) -> None:
    score = code_exec_expressions("def f(x): return x", ["all(f(n) == n for n in range(3))", "f(1) == 1"], {}, sandbox)

    assert (1.0, True) == (score.value, score.details["forgeable"])


def test_the_answer_in_a_distance_is_not_sent_to_the_program(sandbox: Sandbox) -> None:
    # Its difference to anything is 0.
    program = "class N(float):\n    def __sub__(self, other): return 0.0\n    __rsub__ = __sub__\ndef f(): return N(5)"

    assert (
        0.0 == code_exec_expressions(program, ["abs(f() - 1.41) < 1e-6", "1e-6 > abs(1.41 - f())"], {}, sandbox).value
    )
    assert 1.0 == code_exec_expressions("def f(): return 1.41", ["abs(f() - 1.41) < 1e-6"], {}, sandbox).value
