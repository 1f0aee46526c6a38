"""The ``code_exec`` metric: what a record may ask, and what a program is worth."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics.code_exec import code_exec, code_exec_expressions
from pytest_lmeval.metrics.parts.code_plan import (
    Expression,
    Pairs,
    Stdouts,
    Tests,
    plan_extras,
    plan_targets,
    timeout_of,
)
from pytest_lmeval.sandbox import open_sandbox
from tests import needs
from tests.tables import each_row

SANDBOX = open_sandbox()
HUMANEVAL = needs.DATA / "humaneval" / "HumanEval.jsonl.gz"


@each_row(
    ("target", "expected"),
    [
        ("add(1, 2) == 3", Expression("add(1, 2)", "==", 3)),
        ("  3==add(1,2)\n", Expression("add(1, 2)", "==", 3)),
        ("f() != -1.5", Expression("f()", "!=", -1.5)),
        ("f() == {'a': (1, {2})}", Expression("f()", "==", {"a": (1, {2})})),
        ("f() is None", Expression("f()", "==", None)),
        ("f() is not True", Expression("f()", "!=", True)),
        ("f() is 3", Expression("f() is 3")),
        ("f() < 3", Expression("f()", "<", 3)),
        ("3 < f()", Expression("f()", ">", 3)),
        ("f() <= {1}", Expression("f() <= {1}")),
        ("f() in (1, 2)", Expression("f()", "in", (1, 2))),
        ("f() not in 'abc'", Expression("f()", "not in", "abc")),
        ("3 in f()", Expression("f()", "holds", 3)),
        ("3 not in f()", Expression("f()", "holds not", 3)),
        ("f() in 3", Expression("f() in 3")),
        ("abs(f() - 1.41) < 1e-6", Expression("f()", "<", 1e-6, 1.41)),
        ("1e-6 >= abs(2 - f())", Expression("f()", "<=", 1e-6, 2)),
        ("abs(f() - g()) < 1e-6", Expression("abs(f() - g())", "<", 1e-6)),
        ("abs(f()) < 2", Expression("abs(f())", "<", 2)),
        ("abs(f() - 1.41) > 5", Expression("abs(f() - 1.41)", ">", 5)),
        ("f() == g()", Expression("f() == g()")),
        ("0 < f() < 3", Expression("0 < f() < 3")),
        ("f()", Expression("f()")),
        ("f() == 1j", Expression("f() == 1j")),
        ("f() == ...", Expression("f() == ...")),
        ("f(1) == 2 and f(2) == 3", Expression("f(1) == 2 and f(2) == 3")),
        ("assert f(1) == 2", Expression("f(1)", "==", 2)),
        (" assert f(1) == 2, 'no'\n", Expression("f(1)", "==", 2)),
        ("assert f(1)", Expression("f(1)")),
    ],
)
def test_a_target_is_split_into_what_is_asked_and_what_is_expected(target: str, expected: Expression) -> None:
    assert (expected,) == plan_targets([target])
    assert ("" == expected.operator) == expected.forgeable


@each_row("target", ["", "f(", "x = 1", "assert f(); g()", "assert", "import os", "f()\0", "(" * 5000, "f() == 1; g()"])
def test_a_target_that_is_no_expression_is_refused(target: str) -> None:
    with pytest.raises(RecordRefused, match=r"^bad_value targets: target 2: expected a Python expression") as caught:
        plan_targets(["f() == 1", target])

    assert ("bad_value", "targets") == (caught.value.rule, caught.value.field)


CHECK = "def check(candidate):\n    assert candidate(1) == 2\n"


def test_extras_ask_in_one_of_three_forms() -> None:
    assert Pairs("f", ((1, 2), (3, 6))) == plan_extras({"io_pairs": [[1, 2], [3, 6]]}, ["ok"])
    assert Pairs("f", ((1,),)) == plan_extras({"io_pairs": [[1]]}, ["ok"])
    assert Pairs("add", ((1, 2, 3),)) == plan_extras({"io_pairs": [[1, 2, 3]], "entry_point": "add"}, ["ok"])
    assert Tests(CHECK, "g") == plan_extras({"tests": CHECK, "entry_point": "g", "threshold": 0.5}, ["ok"])
    assert Stdouts((("", ("a", "b")),)) == plan_extras({"stdouts": True}, ["a", "b"])
    assert Stdouts((("1", ("a", "b")),)) == plan_extras({"stdouts": True, "stdin": "1"}, ["a", "b"])
    by_run = Stdouts((("1", ("a",)), ("2", ("b",))), 0.1)
    assert by_run == plan_extras({"stdouts": True, "stdin": ["1", "2"], "tolerance": 0.1}, ["a", "b"])
    of_method = {"io_pairs": [[1]], "entry_point": "Solution.f", "tolerance": 1e-6}
    assert Pairs("Solution.f", ((1,),), 1e-6) == plan_extras(of_method, ["ok"])


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": ({}, "bad_value", "extras"),
    "two forms": ({"stdouts": True, "io_pairs": [[1, 2]]}, "bad_value", "extras"),
    "no form": ({"entry_point": "f"}, "bad_value", "extras"),
    "pairs and tests": ({"io_pairs": [[1, 2]], "tests": CHECK, "entry_point": "f"}, "bad_value", "extras"),
    "tests and stdouts": ({"tests": CHECK, "entry_point": "f", "stdouts": True}, "bad_value", "extras"),
    "pairs that are no list": ({"io_pairs": {"1": 2}}, "bad_type", "extras.io_pairs"),
    "no pairs": ({"io_pairs": []}, "bad_value", "extras.io_pairs"),
    "a pair that is no list": ({"io_pairs": [[1, 2], 3]}, "bad_type", "extras.io_pairs"),
    "an empty pair": ({"io_pairs": [[]]}, "bad_value", "extras.io_pairs"),
    "a number too long": ({"io_pairs": [[10**4214, 1]]}, "bad_value", "extras.io_pairs"),
    "a name that is none": ({"io_pairs": [[1]], "entry_point": "a.b.c"}, "bad_value", "extras.entry_point"),
    "a keyword as name": ({"io_pairs": [[1]], "entry_point": "class"}, "bad_value", "extras.entry_point"),
    "a name of another type": ({"io_pairs": [[1]], "entry_point": 1}, "bad_type", "extras.entry_point"),
    "tests without a name": ({"tests": CHECK}, "bad_value", "extras.entry_point"),
    "tests of another type": ({"tests": [CHECK], "entry_point": "f"}, "bad_type", "extras.tests"),
    "tests without check": ({"tests": "assert f(1) == 2", "entry_point": "f"}, "bad_value", "extras.tests"),
    "tests that do not parse": ({"tests": "def check(:", "entry_point": "f"}, "bad_value", "extras.tests"),
    "stdin without stdouts": ({"io_pairs": [[1]], "stdin": "1"}, "bad_value", "extras.stdin"),
    "stdin of another type": ({"stdouts": True, "stdin": 1}, "bad_type", "extras.stdin"),
    "more stdins than targets": ({"stdouts": True, "stdin": ["1", "2"]}, "bad_value", "extras.stdin"),
    "tests with a tolerance": ({"tests": CHECK, "entry_point": "f", "tolerance": 0.1}, "bad_value", "extras.tolerance"),
    "a tolerance of 0": ({"io_pairs": [[1]], "tolerance": 0}, "bad_value", "extras.tolerance"),
    "a tolerance of null": ({"io_pairs": [[1]], "tolerance": None}, "bad_type", "extras.tolerance"),
    "stdouts false": ({"stdouts": False}, "bad_value", "extras.stdouts"),
    "stdouts of another type": ({"stdouts": ["a"]}, "bad_type", "extras.stdouts"),
    "stdouts as a number": ({"stdouts": 1}, "bad_type", "extras.stdouts"),
}


@each_row(("extras", "rule", "field"), REFUSED.values())
def test_other_extras_are_refused(extras: dict[str, Any], rule: str, field: str) -> None:
    with pytest.raises(RecordRefused) as caught:
        plan_extras(extras, ["ok"])

    assert (rule, field) == (caught.value.rule, caught.value.field)


def test_no_targets_are_refused() -> None:
    with pytest.raises(RecordRefused, match="bad_type targets"):
        plan_targets([])


@each_row(("value", "expected"), [(1, 1.0), (0.5, 0.5), (30, 30.0)])
def test_a_timeout_is_read(value: float, expected: float) -> None:
    assert expected == timeout_of({"timeout_s": value})
    assert isinstance(timeout_of({"timeout_s": value}), float)


def test_the_default_timeout_is_three_seconds() -> None:
    assert 3.0 == timeout_of({})


@each_row(
    ("value", "rule"),
    [
        (0, "bad_value"),
        (-1, "bad_value"),
        (30.1, "bad_value"),
        (float("nan"), "bad_value"),
        (10**400, "bad_value"),
        (True, "bad_type"),
        ("3", "bad_type"),
        (None, "bad_type"),
    ],
)
def test_a_timeout_out_of_range_is_refused(value: object, rule: str) -> None:
    with pytest.raises(RecordRefused) as caught:
        timeout_of({"timeout_s": value}, "metadata")

    assert (rule, "metadata.timeout_s") == (caught.value.rule, caught.value.field)


DOUBLE_POSITIVE = "def f(x): return 2 * x if x > 0 else None"


def test_the_score_is_the_fraction_of_pairs_met() -> None:
    score = code_exec(DOUBLE_POSITIVE, ["ok"], {"io_pairs": [[1, 2], [2, 4.0], [-1, -2], [-2, None]]}, SANDBOX)

    assert 0.75 == score.value
    assert {
        "code_status": "assertion_fail",
        "passed": 3,
        "total": 4,
        "reason": "f(-1) is null, expected -2",
    } == score.details


def test_the_score_is_the_fraction_of_expressions_that_hold() -> None:
    targets = ["f(1) == 2", "f(2) in [4]", "3 < f(2)", "f(-1) is None", "f(-1) == 0", "f(3) == 7"]

    score = code_exec_expressions(DOUBLE_POSITIVE, targets, {}, SANDBOX)

    assert 4 / 6 == score.value
    assert "f(-1) == 0 does not hold: f(-1) is null" == score.details["reason"]
    assert "assertion_fail" == score.details["code_status"]


@each_row(
    ("target", "met"),
    [
        ("f() == [1, 2]", 1.0),
        ("f() == (1, 2)", 1.0),
        ("f() != [1, 2]", 0.0),
        ("f() == [1, True]", 0.0),
        ("f() < [1, 3]", 1.0),
        ("[1, 3] < f()", 0.0),
        ("2 in f()", 1.0),
        ("2 not in f()", 0.0),
        ("f() in [[1, 2], 3]", 1.0),
        ("f() not in [[1, 2], 3]", 0.0),
        ("f() is not None", 1.0),
        ("f()", 1.0),
        ("not f()", 0.0),
        ("len(f()) == 2", 1.0),
        ("abs(f()[0] - 1.05) <= 0.1", 1.0),
        ("abs(f()[1] - 1.05) <= 0.1", 0.0),
        ("f() == g()", 0.0),
        ("{i: i for i in f()} == {1: 1, 2: 2}", 1.0),
    ],
)
def test_each_kind_of_target_is_decided(target: str, met: float) -> None:
    assert met == code_exec_expressions("def f(): return [1, 2]", [target], {}, SANDBOX).value


STATUSES = {
    "pass": ("def f(x): return x", 1.0),
    "assertion_fail": ("def f(x): return x + 1", 0.0),
    "syntax_error": ("def f(x) return x", 0.0),
    "timeout": ("def f(x):\n    while True: pass", 0.0),
    "error": ("def f(x): return x.y", 0.0),
}


@each_row(("status", "program", "value"), [(status, *case) for status, case in STATUSES.items()])
def test_what_became_of_the_program_is_told_in_every_form(status: str, program: str, value: float) -> None:
    tests = "def check(candidate):\n    assert candidate(1) == 1\n"
    short = {"timeout_s": 0.2 if status == "timeout" else 1.0}

    scores = [
        code_exec(program, ["ok"], {"io_pairs": [[1, 1]], **short}, SANDBOX),
        code_exec(program, ["ok"], {"tests": tests, "entry_point": "f", **short}, SANDBOX),
        code_exec(f"{program}\nprint(f(1))", ["1"], {"stdouts": True, **short}, SANDBOX),
        code_exec_expressions(program, ["f(1) == 1"], short, SANDBOX),
    ]

    assert [(value, status)] * 4 == [(score.value, score.details["code_status"]) for score in scores]


def test_pairs_met_before_a_timeout_count() -> None:
    program = "def f(x):\n    while x > 2: pass\n    return x"

    score = code_exec(program, ["ok"], {"io_pairs": [[1, 1], [2, 2], [3, 3], [4, 4]], "timeout_s": 0.2}, SANDBOX)

    assert (0.5, "timeout", 2, 4) == (score.value, *(score.details[key] for key in ("code_status", "passed", "total")))


@each_row(
    ("program", "value"),
    [
        ("print('6')", 1.0),
        ("print('  6  \\n\\n')", 0.0),
        ("print('6  \\n\\n')", 1.0),
        ("print('7')", 1.0),
        ("print('67')", 0.0),
        ("print('6'); import sys; sys.exit()", 1.0),
        ("print('6'); import sys; sys.exit(1)", 0.0),
        ("print('6', flush=True); 1 / 0", 0.0),
        ("import sys; print('6', file=sys.stderr)", 0.0),
        ("print(' ' * 2_000_000 + '6')", 0.0),
    ],
)
def test_stdout_is_compared_with_each_target(program: str, value: float) -> None:
    assert value == code_exec(program, ["6", "7\n"], {"stdouts": True}, SANDBOX).value


SUM = ["3", "7"]


@each_row(
    ("program", "value"),
    [
        ("a, b = map(int, input().split())\nprint(a + b)", 1.0),
        ("print(sum(map(int, open(0).read().split())))", 1.0),
        ("import os\nprint(sum(map(int, os.read(0, 99).split())))", 1.0),
        ("import sys\nprint(sum(map(int, sys.stdin.buffer.readline().split())), ' ')", 1.0),
        ("print(3)", 0.5),
        ("print(input())\nprint(input())", 0.0),
    ],
)
def test_a_program_reads_each_stdin_and_prints_its_target(program: str, value: float) -> None:
    extras = {"stdouts": True, "stdin": ["1 2\n", "3 4\n"]}
    score = code_exec(program, SUM, extras, SANDBOX)

    assert (value, 2 * value, 2) == (score.value, score.details["passed"], score.details["total"])


def test_a_long_stdin_is_read_whole_and_endless_programs_run_once() -> None:
    program = "import sys\nprint(len(sys.stdin.read()))"
    assert 1.0 == code_exec(program, ["2000000"], {"stdouts": True, "stdin": "x" * 2_000_000}, SANDBOX).value
    extras = {"stdouts": True, "stdin": ["1"] * 100, "timeout_s": 0.2}
    assert "timeout" == code_exec("while True: pass", ["1"] * 100, extras, SANDBOX).details["code_status"]


@each_row(
    ("printed", "target", "value"),
    [
        ("0.30000000000000004 x", "0.3 x", 1.0),
        ("0.3 x", "0.3 y", 0.0),
        ("1 2\n3.0000001", "1 2 \n3", 1.0),
        ("1 2 3", "1 2\n3", 0.0),
        ("1000000.5", "1000001", 1.0),
        ("nan", "0.3", 0.0),
        ("1.1", "1", 0.0),
    ],
)
def test_printed_numbers_may_differ_by_the_tolerance(printed: str, target: str, value: float) -> None:
    program = f"print({printed!r})"
    assert value == code_exec(program, [target], {"stdouts": True, "tolerance": 1e-6}, SANDBOX).value


@each_row(
    ("returned", "expected", "value"),
    [
        ("0.1 + 0.2", 0.3, 1.0),
        ("[1, (0.1 + 0.2, {'a': 1 / 3})]", [1, [0.3, {"a": 0.333333333}]], 1.0),
        ("{'b': 1 / 3}", {"a": 0.333333333}, 0.0),
        ("3.0000001", 3, 1.0),
        ("1000001", 1000000, 0.0),
        ("float('nan')", 0.3, 0.0),
        ("10 ** 400", 0.3, 0.0),
        ("True", 1.0, 0.0),
        ("'0.3'", 0.3, 0.0),
    ],
)
def test_returned_floats_may_differ_by_the_tolerance(returned: str, expected: object, value: float) -> None:
    program, extras = f"def f(): return {returned}", {"io_pairs": [[expected]], "tolerance": 1e-6}
    assert value == code_exec(program, ["ok"], extras, SANDBOX).value


def test_a_method_is_called_on_a_new_object() -> None:
    program = "class Solution:\n    seen = 0\n    def f(self, x):\n        self.seen += x\n        return self.seen"
    pairs = {"io_pairs": [[1, 1], [2, 2]], "entry_point": "Solution.f"}
    tests = {"tests": "def check(candidate):\n    assert candidate(2) == 2\n", "entry_point": "Solution.f"}

    assert 1.0 == code_exec(program, ["ok"], pairs, SANDBOX).value
    assert 1.0 == code_exec(program, ["ok"], tests, SANDBOX).value
    other = code_exec("def f(x): return x", ["ok"], pairs, SANDBOX)
    assert (0.0, "NameError: the program defines no 'Solution'") == (other.value, other.details["reason"])


@each_row(
    "program",
    [
        "def f(): return len(str(10 ** 5000)) - 5001",
        "def g(n): return n and 1 + g(n - 1)\ndef f(): return g(15000) - 15000",
    ],
)
def test_long_numbers_and_deep_recursion_run(program: str) -> None:
    assert 1.0 == code_exec(program, ["ok"], {"io_pairs": [[0]]}, SANDBOX).value


def test_endless_recursion_through_c_code_only_fails_its_call() -> None:
    program = "class A:\n    def __getattr__(self, name): return getattr(self, name + 'x')\n"
    score = code_exec(f"{program}def f(n): return n or A().b", ["ok"], {"io_pairs": [[0, 0], [1, 1]]}, SANDBOX)

    assert (0.5, "error") == (score.value, score.details["code_status"])


def test_only_output_that_was_not_kept_whole_is_the_reason() -> None:
    cut = code_exec("print(' ' * 2_000_000 + '6')", ["6"], {"stdouts": True}, SANDBOX)
    other = code_exec("print('5')", ["6"], {"stdouts": True}, SANDBOX)

    assert "more output than the recorded 1048576 bytes" == cut.details["reason"]
    assert "reason" not in other.details


def test_a_denied_call_is_the_reason() -> None:
    if SANDBOX.level != "confined":
        pytest.skip("nothing is denied at this level")
    score = code_exec("def f(x): return open('/etc/passwd').read()", ["ok"], {"io_pairs": [[1, 1]]}, SANDBOX)

    assert "error" == score.details["code_status"]
    assert "Permission denied: '/etc/passwd' (the sandbox denies it)" in score.details["reason"]


def test_what_was_kept_of_stdout_that_was_cut_off_matches_nothing() -> None:
    score = code_exec("print('6' * 2_000_000)", ["6" * (1_048_576 - 1)], {"stdouts": True}, SANDBOX)
    assert (0.0, "assertion_fail") == (score.value, score.details["code_status"])


def test_details_are_json_and_hold_the_end_of_stdout() -> None:
    program = "print('x' * 5000 + 'end\\ud800')\ndef f(x): raise ValueError('\\ud800')"

    details = code_exec(program, ["ok"], {"io_pairs": [[1, 1]]}, SANDBOX).details

    assert details == json.loads(json.dumps(details).encode("ascii"))
    assert 2000 == len(details["stdout"])
    assert details["stdout"].endswith("end\\ud800\n")
    details["reason"].encode("utf-8")


# Only these use another function of the prompt to judge the candidate, or have their own lists changed by it.
RELYING = {f"HumanEval/{number}" for number in (32, 38, 50, 70, 120, 149)}


def _humaneval() -> list[dict[str, str]]:
    if not HUMANEVAL.exists():
        return []
    with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@needs.needs_file(HUMANEVAL)
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_all_canonical_humaneval_solutions_score_one(step: int) -> None:
    every = _humaneval()
    problems = [each for number, each in enumerate(every) if number % step == 0 or each["task_id"] in RELYING]
    scores = {
        problem["task_id"]: code_exec(
            problem["prompt"] + problem["canonical_solution"],
            ["ok"],
            {"tests": problem["test"], "entry_point": problem["entry_point"]},
            SANDBOX,
        )
        for problem in problems
    }

    assert 164 == len(every)
    assert {} == {name: score for name, score in scores.items() if score.value != 1.0}
    assert {name for name, score in scores.items() if score.details.get("forgeable")} == RELYING


@needs.needs_file(HUMANEVAL)
def test_a_humaneval_program_that_returns_nothing_scores_zero() -> None:
    for problem in _humaneval()[:10]:
        extras = {"tests": problem["test"], "entry_point": problem["entry_point"]}

        assert 0.0 == code_exec(problem["prompt"] + "    pass\n", ["ok"], extras, SANDBOX).value
