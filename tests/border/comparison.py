"""The border "several models": what one of them does is said of it, and takes nothing from the others."""

from __future__ import annotations

import json
from typing import Any

from tests.border.table import Border, Row
from tests.sources import source

RECORDS = [{"id": f"e{n}", "prompt": f"say: {n}", "targets": [f"{n}"], "metric": "exact_match"} for n in range(12)]
GOOD, FAIR = "--lm-adapter=good=models:Good", "--lm-adapter=fair=models:Fair"
# comparison.json has the same as fields.
ALL = ("terminal", "markdown", "page")
SOME_ERRORS = ("--lm-gate=none", "--lm-retries=0", "--lm-max-errors=99")


def _row(kind: str, what: str, models: tuple[str, ...], *options: str, **fields: Any) -> Row:
    known: dict[str, Any] = {"alone": True, "code": 0, "fate": "reported", "on": ALL} | fields
    return Row(kind=kind, what=what, arguments=(GOOD, *models, *options), **known)


def _third(kind: str, name: str, says: str, **fields: Any) -> Row:
    """Return the row of a third model that cannot be ranked beside two that can."""
    return _row(kind, name, (FAIR, f"--lm-adapter=third=models:{name}"), *SOME_ERRORS, says=says, **fields)


def _refused(kind: str, what: str, model: str, says: str, *options: str) -> Row:
    return _row(kind, what, (model,), *options, fate="refused", code=4, says=says, on=("terminal",))


BORDER = Border(
    name="several models",
    files={
        "models.py": source("border_comparison/models.py"),
        "tasks/t.jsonl": "".join(json.dumps(record) + "\n" for record in RECORDS),
    },
    arguments=(),
    rows=(
        _third("absent", "Down", "third: not ranked: the run is not complete, a score for 0 of 12 examples", code=3),
        _row("absent", "no example of it selected", (FAIR,), "-k", "[good]", says="fair: not asked: no example of it"),
        _row(
            "absent",
            "a baseline of others alone",
            (FAIR,),
            "--lm-baseline=bases",
            fate="refused",
            code=4,
            says="no such file",
            on=("terminal",),
        ),
        _row(
            "empty",
            "empty answers",
            (FAIR, "--lm-adapter=third=models:Empty"),
            "--lm-gate=none",
            fate="used",
            says="not significantly worse than the best (95 %, Holm): good, fair",
        ),
        _third("wrong type", "Number", "third: 12 not scored, 12 of which good got right", code=3),
        _row(
            "too large",
            "too few examples that all have",
            ("--lm-adapter=early=models:Early", "--lm-adapter=rest=models:Rest"),
            *SOME_ERRORS,
            says="all ranked models have a score for 8 of 12 examples; at least 80% are needed",
        ),
        _third("not finite or negative", "Dear", "third: 6 not scored, 6 of which good got right"),
        _row(
            "not finite or negative",
            "a cost that one example tells",
            ("--lm-adapter=third=models:Partly",),
            "--lm-gate=tasks",
            "--lm-max=overall.cost=1",
            code=1,
            says="overall.cost: the cost of only 1 of 12 examples is known",
        ),
        _row(
            "not finite or negative",
            "a cost that one of two requests tells",
            ("--lm-adapter=third=models:Halves",),
            "--lm-gate=tasks",
            "--lm-repeats=2",
            "--lm-max=overall.cost=1",
            code=1,
            says="overall.cost: the cost of only 0 of 12 examples is known",
        ),
        _row(
            "not finite or negative",
            "a cost that is shown as the least it may be",
            ("--lm-adapter=third=models:Partly",),
            "--lm-gate=none",
            on=("terminal",),
            says=" >= 0.01",
        ),
        _refused(
            "control characters",
            "an escape in a label",
            "--lm-adapter=a\x1b[2J=models:Fair",
            "a label may contain only letters",
        ),
        _refused("twice", "one model twice", GOOD, "two models have the label 'good'"),
        _third("late", "Late", "third: 12 not scored, 12 of which good got right", code=3),
        _row(
            "out of order",
            "the better one last",
            (FAIR, "--lm-adapter=last=models:Good"),
            "--lm-gate=none",
            says="not significantly worse than the best (95 %, Holm): good, last, fair",
        ),
        _third("cancelled", "Cancelled", "third: 12 not scored, 12 of which good got right", code=3),
        _row(
            "cancelled",
            "Ctrl-C within one of the models",
            ("--lm-adapter=third=models:Stopped",),
            code=2,
            says="not ranked: fewer than two models have a score",
        ),
        _third("raising", "Down", "third: 12 not scored, 12 of which good got right", code=3),
        _row(
            "secret",
            "a key of one model",
            (FAIR,),
            "--lm-adapter-arg=good:api_key=kept-hushed-000-secret",
            "--lm-gate=none",
            unsaid="kept-hushed-000-secret",
            says="not significantly worse",
            on=("terminal",),
        ),
        _row(
            "beside",
            "a plain test runs once, for no model",
            (FAIR,),
            "--lm-gate=none",
            fate="used",
            files={"test_plain.py": "def test_plain(): assert 1\n"},
            says="23 passed, 2 below",
            on=("terminal",),
        ),
        _refused("environment", "a package of one model is missing", "--lm-adapter=third=none_such:Model", "none_such"),
        Row(kind="changed unseen", never="each model is compared with its own baseline: the border a baseline"),
        Row(
            kind="earlier run",
            never="reports of all models are moved to previous/ at once: tests/plugin/record/test_previous_reports.py",
        ),
        Row(
            kind="kept client",
            never="a kept client asks the model of the example at its turn: tests/plugin/evals/test_kept_clients.py",
        ),
        _refused(
            "same name", "labels that differ in case", "--lm-adapter=GOOD=models:Fair", "which differ only in case"
        ),
    ),
)
