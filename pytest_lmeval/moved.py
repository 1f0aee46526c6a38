"""Modules under the names that they had before 0.2: for one version they are imported from where they are now."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "spec_of"]

_PACKAGE = "pytest_lmeval."
# A folder's modules by their names, or `OLD=NEW`: the folder before, the folder now; "" is the package itself.
_FOLDERS = {
    ("", ""): "builtin=loading rendering=task",
    ("engine", "asking"): (
        "ask batching budget=limits caching engine host hosting jobs=transport opening=pacing outage=limits policy"
        " rates=pacing rounds streaming"
    ),
    ("engine", "scoring"): "evaluate judge",
    ("engine", "run"): "resume",
    ("run", "run"): "needs=plan",
    ("run", "leaderboard"): "facts=board",
    ("adapters", "adapters"): "source=identity replay_judge=replay",
    ("adapters.hf", "adapters.hf"): "weights=loading device=options families=batches",
    ("adapters.openai", "adapters.openai"): "checks=options",
    ("adapters.openai", "adapters.http"): "body faults redirects secret transport",
    ("plugin.evals", "plugin.evals"): "fixture=process",
    ("leaderboard", "leaderboard"): "functions=details responses=details",
    ("records", "records"): "merge=shards strict=recorded write=boardfile",
    ("functions", "functions"): "data=declare output=loop",
    ("formats", "formats"): (
        "complete=task extras=checks yaml.scalars=yaml.parse yaml.includes=yaml.document python.loaded=python.items"
        " core.records=core.entry lint.keys=lint python.overrides=python.completion_build python.pairs=python.samples"
        " python.judging=python.measures core.baselines=core.load core.prompts=core.task turns=jsonl"
        " lint.leaks=lint.answers hints=checks"
    ),
    ("metrics", "metrics"): "squad=f1 parts.lcs=parts.texts parts.search_child=parts.texts parts.tokens=parts.texts",
    ("tasks", "tasks"): "members=base test_cases=scores",
    ("formats.declarative", "formats.declarative"): (
        "kit=templates.template filters=actions rows=datasets models.actions=actions models.dataset=models.task"
        " scoring.python=scoring.build scoring.prompts=scoring.judges agreement=scoring.judges config=load"
        " values=snippets templates.limits=templates.filters models.solver=models.task models.metrics=models.scorers"
    ),
    ("compare", "compare"): "limits=findings shared_answers=baseline against=compare",
    ("sandbox", "sandbox"): "child=levels execute=opening strays=fresh",
    ("sandbox.inside", "sandbox.inside"): "exits=wire places=cage privileges=kernel proxies=host",
    ("compat.eval_framework", "compat.eval_framework"): "confidence=measures language=measures styled=styles",
    ("stats", "stats"): "units=intervals",
    ("report", "report"): "cached=wording rerun=wording",
    ("report.html", "report"): "comparison",
    ("report.html", ""): "texts=text",
    ("plugin", "plugin.settings"): "options ini_gate=checks unheeded=checks report_dir models stash=models",
    ("plugin", "plugin.collect"): "collector collected locate formatting sharding=selecting tags=selecting",
    ("plugin", "plugin.asking"): "item failure fixtures ahead=state state",
    ("plugin", "plugin.record"): (
        "recorder run_record run_facts report_files gating=baseline ending heard=received many_records=records"
        " terminal progress words=progress exit_guard=ending"
    ),
    ("plugin", "plugin.workers"): "scheduling telling=report sanitize=discretion discretion",
}
MOVED = {
    f"{before}.{name.partition('=')[0]}".lstrip("."): f"{now}.{name.rpartition('=')[2]}".lstrip(".")
    for (before, now), names in _FOLDERS.items()
    for name in names.split()
}
"""Each module's name before, and its name now, both below the package."""
_GONE = {name.rpartition(".")[0] for name in MOVED} - {"plugin", ""}


class _Now(Loader):
    """Imports the module that another one is now."""

    def __init__(self, now: str) -> None:
        self._now = now

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to Python to make one, which is replaced."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module as it is now in the place of ``module``."""
        if self._now:
            sys.modules[module.__name__] = import_module(_PACKAGE + self._now)


def spec_of(name: str) -> ModuleSpec | None:
    """Return how the module ``name``, which does not exist, is imported: None where it never existed.

    Warns with a DeprecationWarning that names the module as it is now.
    """
    before = name.removeprefix(_PACKAGE)
    if before in _GONE:
        return ModuleSpec(name, _Now(""), is_package=True)
    if (now := MOVED.get(before)) is None:
        return None
    text = f"{name} is {_PACKAGE}{now} now; the old name goes away in the next version"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return ModuleSpec(name, _Now(now))
