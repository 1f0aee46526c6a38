"""Run the model's program, and count the expectations that it meets (``code_exec``).

The score is the fraction of expectations that are met. The details contain ``passed``, ``total`` and ``code_status``,
which is ``pass``, ``assertion_fail``, ``syntax_error``, ``timeout`` or ``error``. The details also contain a ``reason``
and the end of the program's ``stdout``, unless these are empty. The detail ``forgeable`` is true if a deceptive program
could have met the expectation without doing the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.types import Score

if TYPE_CHECKING:
    from pytest_lmeval.metrics.parts.code_plan import Expression, Pairs, Stdouts
    from pytest_lmeval.sandbox import Limits, ProgramRun, Sandbox

STDOUT_TAIL = 2000
_FORMS = ("io_pairs", "stdouts", "tests")


@metric("code_exec", extras=("entry_point", "stdin", "timeout_s", "tolerance", *_FORMS), needs_sandbox=True)
def code_exec_record(prediction: str, targets: Sequence[str], extras: Extras, sandbox: Sandbox) -> Score:
    """Score a program by the extras ``io_pairs``, ``tests`` or ``stdouts``, else by targets that are expressions.

    Raises the same errors as :func:`code_exec` and :func:`code_exec_expressions`.
    """
    score = code_exec_expressions if extras.keys().isdisjoint(_FORMS) else code_exec
    return score(prediction, targets, extras, sandbox)


def code_exec(prediction: str, targets: Sequence[str], extras: Extras, sandbox: Sandbox) -> Score:
    """Score a program by ``extras.io_pairs``, ``extras.tests`` or ``extras.stdouts``; exactly one must be present.

    Raises `errors.RecordRefused` for invalid extras, and `errors.SandboxError` if the sandbox could not run the
    program.
    """
    # Imported late: most runs execute no programs.
    from pytest_lmeval.metrics.parts.code_plan import Pairs, Tests, plan_extras, timeout_of
    from pytest_lmeval.sandbox import Limits

    plan = plan_extras(extras, targets)
    limits = Limits(cpu_s=timeout_of(extras, "extras"))
    if isinstance(plan, Pairs):
        return _by_pairs(prediction, plan, limits, sandbox)
    if isinstance(plan, Tests):
        run = sandbox.check(prediction, plan.source, plan.entry_point, limits)
        return all_or_nothing(run, run.status == "pass")
    return _by_stdout(prediction, plan, limits, sandbox)


def code_exec_expressions(prediction: str, targets: Sequence[str], metadata: Extras, sandbox: Sandbox) -> Score:
    """Score a program by the fraction of ``targets``, which are Python expressions, that are true.

    Raises `errors.RecordRefused` for targets that are not expressions, and `errors.SandboxError` if the sandbox could
    not run the program.
    """
    from pytest_lmeval.metrics.parts.code_plan import plan_targets, timeout_of
    from pytest_lmeval.sandbox import Limits
    from pytest_lmeval.sandbox.values import show

    plan = plan_targets(targets)
    limits = Limits(cpu_s=timeout_of(metadata, "metadata"))
    run = sandbox.evaluate(prediction, [expression.source for expression in plan], limits)
    wrong = [
        f"{target} does not hold: {expression.source} is {show(answer.value)}"
        for target, expression, answer in zip(targets, plan, run.answers, strict=True)
        if answer.kind == "value" and not _holds(expression, answer.value)
    ]
    return _score(run, wrong, forgeable=any(expression.forgeable for expression in plan))


def _by_pairs(prediction: str, plan: Pairs, limits: Limits, sandbox: Sandbox) -> Score:
    from pytest_lmeval.sandbox.values import show, tagged, within

    run = sandbox.call(prediction, plan.entry_point, [pair[:-1] for pair in plan.pairs], limits)
    wrong = []
    for pair, answer in zip(plan.pairs, run.answers, strict=True):
        *args, expected = map(tagged, pair)
        if answer.kind == "value" and not within(expected, answer.value, plan.tolerance):
            asked = f"{plan.entry_point}({', '.join(map(show, args))})"
            wrong.append(f"{asked} is {show(answer.value)}, expected {show(expected)}")
    return _score(run, wrong)


def _by_stdout(prediction: str, plan: Stdouts, limits: Limits, sandbox: Sandbox) -> Score:
    """Run the program once for each stdin, but not again after a timeout or a syntax error."""
    from pytest_lmeval.metrics.parts.code_output import prints

    passed, shown, total = 0, None, len(plan.runs)
    for number, (stdin, targets) in enumerate(plan.runs, 1):
        run = sandbox.script(prediction, limits, stdin)
        met = run.status == "pass" and run.stdout_whole and prints(run.stdout, targets, plan.tolerance)
        passed += met
        if run.status == "pass" and not run.stdout_whole:
            run = replace(run, reason=f"more output than the recorded {limits.output_bytes} bytes")
        if shown is None or (not met and shown.status == "pass" and not shown.reason):
            reason = run.reason or (f"run {number} of {total}: another output" if not met and total > 1 else "")
            shown = replace(run, reason=reason)
        if run.status in ("syntax_error", "timeout"):
            break
    assert shown is not None
    return Score(passed / total, _details(shown, passed, total, shown.reason, shown.forgeable))


def _holds(expression: Expression, value: Any) -> bool:
    from pytest_lmeval.sandbox import values

    if expression.operator == "":
        return values.truth(value)
    if expression.centre is not None:
        return values.near(expression.operator, value, expression.centre, expression.literal)
    literal = values.tagged(expression.literal)
    if expression.operator in values.ORDER:
        return values.ordered(expression.operator, value, literal)
    return {
        "==": lambda: values.same(value, literal),
        "!=": lambda: not values.same(value, literal),
        "in": lambda: values.contains(literal, value),
        "not in": lambda: not values.contains(literal, value),
        "holds": lambda: values.contains(value, literal),
        "holds not": lambda: not values.contains(value, literal),
    }[expression.operator]()


def _score(run: ProgramRun, wrong: Sequence[str], forgeable: bool = False) -> Score:
    """Return the share of answers that are values and not ``wrong``; a missing answer counts as wrong."""
    total = len(run.answers)
    passed = sum(answer.kind == "value" for answer in run.answers) - len(wrong)
    unfit = [answer.text for answer in run.answers if answer.kind == "unfit"]
    reason = run.reason or next(iter([*wrong, *unfit]), "")
    return Score(passed / total, _details(run, passed, total, reason, forgeable))


def all_or_nothing(run: ProgramRun, met: bool, forgeable: bool = False) -> Score:
    """Return 1.0 if ``met``, else 0.0; a run is ``forgeable`` if either the caller or the run itself says so."""
    return Score(float(met), _details(run, int(met), 1, run.reason, forgeable or run.forgeable))


def _details(run: ProgramRun, passed: int, total: int, reason: str, forgeable: bool) -> dict[str, Any]:
    status = "assertion_fail" if run.status == "pass" and passed < total else run.status
    details: dict[str, Any] = {"code_status": status, "passed": passed, "total": total}
    if reason:
        details["reason"] = reason
    if run.stdout:
        details["stdout"] = run.stdout[-STDOUT_TAIL:]
    if forgeable:
        details["forgeable"] = True
    return details
