"""Look up metrics, post-process rules, adapters and formats by name.

Each run builds a separate registry, so the order of imports does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.postprocess import Extraction
from pytest_lmeval.types import Metric, MetricFunction

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pytest_lmeval.formats.task import LoadedFile, TaskSource

_Entry = TypeVar("_Entry")

__all__ = ["AdapterFactory", "Format", "Loader", "Metric", "MetricFunction", "Registry", "Rule", "wrong_arguments"]

Rule = Callable[[str], Extraction]
AdapterFactory = Callable[..., Any]
"""``(argument, **options) -> adapter``; ``argument`` is the part of ``NAME:ARGUMENT`` after the colon, or ''."""
Loader = Callable[["TaskSource", "Registry"], "LoadedFile"]
"""``(source, registry) -> loaded``, the file's tasks and invalid records."""


@dataclass(frozen=True, slots=True)
class Format:
    """A loader for files whose names end in ``suffix`` and match the shell ``pattern``."""

    suffix: str
    load: Loader
    pattern: str = "*"


@dataclass(slots=True)
class Registry:
    """A run's metrics, rules, adapters and formats; ``pytest_lmeval_register(registry)`` may add others."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    adapters: dict[str, AdapterFactory] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    loaders: list[Callable[[Path], LoadedFile | None]] = field(default_factory=list)
    """The ``pytest_lmeval_load_task`` entry points, called for each file before the formats."""
    listeners: list[EntryPoint] = field(default_factory=list)
    """The ``pytest_lmeval_leaderboard`` entry points, not yet loaded; called with the board of a finished pytest run.
    """

    def copy(self) -> Registry:
        """Return a copy that shares no table with this registry."""
        own = {each.name: type(table := getattr(self, each.name))(table) for each in fields(self)}
        return Registry(**own)

    def add_metric(
        self,
        name: str,
        function: MetricFunction,
        *,
        threshold: float = 1.0,
        needs_sandbox: bool = False,
        extras: Iterable[str] = (),
    ) -> None:
        """Add a metric; ``function(prediction, targets, extras)`` returns a float in [0, 1]."""
        takes = ("prediction", "targets", "extras", "sandbox")[: 4 if needs_sandbox else 3]
        _check_callable(self.metrics, "metric", name, function, takes)
        self.add_declared(Metric(name, function, threshold, needs_sandbox, tuple(extras)))

    def add_declared(self, metric: Metric) -> None:
        """Add a declared metric."""
        self._add(self.metrics, "metric", metric.name, metric)

    def add_rule(self, name: str, function: Callable[[str], str | None]) -> None:
        """Add a post-process rule; ``function(text)`` returns the prediction, or None if it finds no prediction."""
        _check_callable(self.rules, "post-process rule", name, function, ("text",))

        def rule(text: str) -> Extraction:
            extracted = function(text)
            return Extraction("" if extracted is None else extracted, extracted is not None)

        self._add(self.rules, "post-process rule", name, rule)

    def add_adapter(self, name: str, factory: AdapterFactory) -> None:
        """Add an adapter with a name for ``--lm-adapter``; the call ``factory(argument, **options)`` creates it."""
        self._add(self.adapters, "adapter", name, factory)

    def add_format(self, suffix: str, load: Loader, *, pattern: str = "*") -> None:
        """Add a task file format for files that end in ``suffix`` and whose names match the shell ``pattern``."""
        self._add(self.formats, "format", suffix, Format(suffix, load, pattern))

    def metric(self, name: str) -> Metric:
        """Return the metric called ``name``; for an unknown name, raise UnknownName with the choices."""
        return _get(self.metrics, "metric", name)

    def rule(self, name: str) -> Rule:
        """Return the post-process rule called ``name``; for an unknown name, raise UnknownName with the choices."""
        return _get(self.rules, "post-process rule", name)

    def load(self, path: Path) -> LoadedFile | None:
        """Return the result of the first loader that accepts the file at ``path``, or None if no loader accepts it."""
        return next((loaded for loader in self.loaders if (loaded := loader(path)) is not None), None)

    @staticmethod
    def _add(table: dict[str, Any], kind: str, name: str, entry: object) -> None:
        if name in table:
            raise UsageError(f"the {kind} {name!r} is registered already; choose another name")
        table[name] = entry


def wrong_arguments(function: Callable[..., Any], count: int) -> str:
    """Explain why ``function`` cannot take ``count`` arguments; return "" if it can, or if its signature is unknown."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ""
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        return str(error)
    return ""


def _check_callable(
    table: Mapping[str, Any], kind: str, name: str, function: Callable[..., Any], takes: Sequence[str]
) -> None:
    """Raise UsageError for a function with the wrong parameters, before the run pays for requests."""
    if name in table:
        return
    wrong = wrong_arguments(function, len(takes)) if callable(function) else f"it is a {type(function).__name__}"
    if wrong:
        raise UsageError(f"the {kind} {name!r} cannot be called: {wrong}; expected a function ({', '.join(takes)})")


def _get(table: Mapping[str, _Entry], kind: str, name: str) -> _Entry:
    try:
        return table[name]
    except KeyError:
        raise UnknownName(kind, name, table) from None
