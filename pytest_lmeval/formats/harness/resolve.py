"""From the names that are wanted, of tasks, groups and tags, to the tasks with all their keys, and the groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.document import read_document
from pytest_lmeval.formats.harness.index import Index
from pytest_lmeval.frozen import dataclass

_GROUP_KEYS = frozenset({"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag", "include"})
_METRIC_KEYS = frozenset({"metric", "filter_list", "aggregation", "weight_by_size"})


@dataclass(frozen=True, slots=True)
class Group:
    """A group, the names of the tasks beneath it, and what it says of their metrics."""

    name: str
    tasks: tuple[str, ...]
    metrics: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class Resolver:
    """Resolves names by an index; ``configs`` and ``groups`` are what was found, in order."""

    index: Index
    configs: dict[str, Config] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def want(self, wanted: Any, above: tuple[str, ...] = ()) -> list[str]:
        """Add what ``wanted`` calls, a name or a mapping with overrides; return the names of its tasks."""
        if isinstance(wanted, str):
            return [name for each in self.index.matching(wanted) for name in self._named(each, {}, above)]
        if isinstance(wanted, dict) and isinstance(wanted.get("task"), str) and "group" not in wanted:
            more = {key: value for key, value in wanted.items() if key != "task"}
            return [name for each in self.index.matching(wanted["task"]) for name in self._named(each, more, above)]
        if isinstance(wanted, dict) and isinstance(wanted.get("group"), str) and "task" in wanted:
            return self._own_group(wanted["group"], wanted)
        raise RecordRefused("bad_value", "harness.tasks", f"expected a name, or task and overrides, got {wanted!r:.80}")

    def _own_group(self, name: str, wanted: Mapping[str, Any]) -> list[str]:
        if name in self.index.groups or any(group.name == name for group in self.groups):
            raise RecordRefused("bad_value", "harness.tasks", f"there is another group {name!r}: choose another name")
        return self._group(name, wanted, {}, ())

    def add(self, path: Path) -> list[str]:
        """Add the task or the group of one file."""
        document = read_document(path)
        if "class" not in document and "group" in document:
            return self._group(str(document["group"]), document, {}, ())
        if not isinstance(document.get("task"), str):
            raise RecordRefused("missing_required", "task", f"{path.name}: expected the name of a task or a group")
        return [self._task(str(document["task"]), path, document, {}, ())]

    def _named(self, name: str, more: Mapping[str, Any], above: tuple[str, ...]) -> list[str]:
        index = self.index
        if name in index.groups:
            if name in above:
                raise RecordRefused("bad_value", "task", f"the group {name} is a member of itself")
            return self._group(name, read_document(Path(index.groups[name])), more, above)
        if name in index.tasks:
            path = Path(index.tasks[name])
            return [self._task(name, path, read_document(path), more, above)]
        return [found for task in index.tags[name] for found in self._named(task, more, above)]

    def _task(
        self, name: str, path: Path, document: Mapping[str, Any], more: Mapping[str, Any], above: tuple[str, ...]
    ) -> str:
        given = {**document, **more, "task": name}
        before = self.configs.get(name)
        groups = tuple(dict.fromkeys([*(before.groups if before else ()), *above]))
        config = Config(name, path, self.index.root, given, groups)
        if before is not None and before.given != given:
            ways = " and ".join([*before.groups, *above][:2]) or "this file"
            raise RecordRefused("bad_value", "task", f"{name} is asked for twice, with different keys: by {ways}")
        self.configs[name] = config
        return name

    def _group(
        self, name: str, document: Mapping[str, Any], more: Mapping[str, Any], above: tuple[str, ...]
    ) -> list[str]:
        over = {key: value for key, value in document.items() if key not in _GROUP_KEYS} | dict(more)
        members = document.get("task")
        if not isinstance(members, list) or not members:
            raise RecordRefused("bad_value", "task", f"the group {name} has no members")
        place = len(self.groups)
        tasks = [found for each in members for found in self._member(each, name, over, (*above, name))]
        self.groups.insert(place, Group(name, tuple(dict.fromkeys(tasks)), tuple(_metrics(name, document))))
        return tasks

    def _member(self, given: Any, group: str, over: Mapping[str, Any], above: tuple[str, ...]) -> list[str]:
        index = self.index
        if isinstance(given, str):
            return self._known(given, group, over, above)
        if not isinstance(given, dict) or not ("task" in given or "group" in given):
            raise RecordRefused("bad_value", "task", f"{group}: expected a name, task or group, got {given!r:.80}")
        if "group" in given:
            name = str(given["group"])
            if name in index.groups:
                more = {key: value for key, value in given.items() if key != "group"}
                return self._named(name, {**over, **more}, above)
            return self._group(f"{group}::{name}", given, over, above)
        name = str(given["task"])
        if name in index.tasks or name in index.groups or name in index.tags:
            return self._known(name, group, {**over, **{k: v for k, v in given.items() if k != "task"}}, above)
        return [self._task(f"{group}::{name}", Path(index.groups.get(group, index.root)), given, over, above)]

    def _known(self, name: str, group: str, over: Mapping[str, Any], above: tuple[str, ...]) -> list[str]:
        index = self.index
        if name not in index.tasks and name not in index.groups and name not in index.tags:
            raise RecordRefused("bad_value", "task", f"the group {group} has the member {name!r}, which does not exist")
        return self._named(name, over, above)


def _metrics(group: str, document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    given = document.get("aggregate_metric_list") or []
    for each in given if isinstance(given, list) else [given]:
        if not isinstance(each, dict) or "metric" not in each or set(each) - _METRIC_KEYS:
            known = ", ".join(sorted(_METRIC_KEYS))
            raise RecordRefused("bad_value", "aggregate_metric_list", f"{group}: expected {known}, got {each!r:.80}")
        if each.get("aggregation", "mean") != "mean":
            raise RecordRefused("not_supported", "aggregate_metric_list", f"{group}: only the aggregation mean is")
        yield each
