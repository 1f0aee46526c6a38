"""A replica, which runs in a process of Ray on a node."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.frozen import dataclass

# A name instead of an import: only the node needs the class, and ``asking`` is above the adapters.
_SERVED = "pytest_lmeval.asking.served:Served"


@dataclass(frozen=True, slots=True)
class ModelOrder:
    """The spec and options of a replica's adapter, the project's folder, and the run's folder."""

    spec: str
    options: dict[str, Any]
    project: str | None
    folder: str


class ReplicaActor:
    """A replica, whose methods the run calls from another process."""

    def __init__(self, order: ModelOrder, node: str) -> None:
        self._order = order
        self._node = node
        self._served: Any = None

    async def load(self) -> Any:
        """Create the adapter; return facts about its model, or the error as text."""
        return await asyncio.to_thread(self._load)

    async def ask(self, requests: Sequence[Any], think_tags: tuple[str, str] | None) -> list[Any]:
        """Return one answer per request, in order."""
        answers: list[Any] = await self._served.answer(requests, think_tags)
        return answers

    async def close(self) -> None:
        """Close the adapter."""
        if self._served is not None:
            await self._served.close()

    def _load(self) -> Any:
        order = self._order
        if os.path.isdir(order.folder):
            os.chdir(order.folder)  # a model's path is relative to the run's folder
        node = self._node or _address()
        try:
            self._served = resolve_name(_SERVED)(order.spec, order.options, order.project, node)
        except LmevalError as error:
            has_project = order.project is None or Path(order.project).is_dir()
            missing = "" if has_project else f"; the project's folder {order.project} is not on that node"
            return f"on node {node}: {error}{missing}"
        return self._served.facts


def _address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())
