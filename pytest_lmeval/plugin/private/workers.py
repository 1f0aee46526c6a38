"""Access pytest-xdist's workers, from inside a worker and from the controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pytest

# Inside a worker


def is_worker(config: pytest.Config) -> bool:
    """Return True in a worker. Without ``config.workerinput``, return False."""
    return hasattr(config, "workerinput")


def is_replacement(config: pytest.Config) -> bool:
    """Return True in a worker that replaces a dead worker, recognized by its number."""
    given = worker_input(config)
    number = str(given.get("workerid", "gw0")).removeprefix("gw")
    return number.isdecimal() and int(number) >= int(given.get("workercount", 1))


def worker_input(config: pytest.Config) -> Mapping[str, Any]:
    """Return the controller's input to this worker, with ``workerid`` and ``workercount``, or {} outside workers."""
    given: Mapping[str, Any] = getattr(config, "workerinput", {})
    return given


def input_of_worker(node: Any) -> dict[str, Any]:
    """Return the mutable input for the worker ``node``."""
    given: dict[str, Any] = getattr(node, "workerinput", {})
    return given


def output_to_controller(config: pytest.Config) -> dict[str, Any] | None:
    """Return this worker's mutable output to the controller, for values that execnet can send, or None outside workers.

    Without ``config.workeroutput``, return None, so that the controller knows tasks only from node ids.
    """
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    return output


def send_with_ids(config: pytest.Config, text: str) -> None:
    """Send ``text`` to the controller as this worker's last node id. Without ``sendevent``, do nothing."""
    worker: Any = next((plugin for plugin in config.pluginmanager.get_plugins() if hasattr(plugin, "torun")), None)
    send: Callable[..., None] | None = getattr(worker, "sendevent", None)
    if send is None:
        return

    def sending(name: str, **values: Any) -> None:
        if "ids" in values and name == "collectionfinish":
            del worker.sendevent
            values["ids"] = [*values["ids"], text]
        send(name, **values)

    worker.sendevent = sending


def worker_queue(config: pytest.Config) -> Callable[[], list[int]]:
    """Return a function that returns the indices of this worker's remaining items.

    The index of the item after the running item comes first, although that item has already left the queue. Without the
    plugin that has ``torun``, or without a queue that has a lock (pytest-xdist 3.7), there are no indices. Without
    indices, the worker requests a batch only when the first example of the batch runs.
    """
    plugins = config.pluginmanager.get_plugins()
    worker: Any = next((plugin for plugin in plugins if hasattr(plugin, "torun")), None)

    def queued() -> list[int]:
        # Look it up each time: xdist replaces the queue when the controller takes work back.
        lock = getattr(getattr(worker, "torun", None), "lock", None)
        if lock is None:
            return []
        with lock() as places:
            return [place for place in (worker.nextitem_index, *places) if isinstance(place, int)]

    return queued


# In the controller


class Worker(Protocol):
    """A worker as the scheduler sees it, such as ``xdist.workermanage.WorkerController``."""

    gateway: Any

    @property
    def shutting_down(self) -> bool:
        """True if ``shutdown`` has been called."""

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Hand out items by their indices in the worker's collection."""

    def send_steal(self, indices: Sequence[int]) -> None:
        """Take back items that the worker has not started."""

    def shutdown(self) -> None:
        """End the worker after its last item."""


def is_controller(config: pytest.Config) -> bool:
    """Return True if this process has workers that run the tests. Without the plugin ``dsession``, return False."""
    return bool(config.pluginmanager.hasplugin("dsession"))


def expected_workers(config: pytest.Config) -> int:
    """Return the initial number of workers; raise ImportError if neither name of the function exists."""
    try:
        from xdist.workermanage import parse_tx_spec_config
    except ImportError:  # its name before pytest-xdist 3.7
        from xdist.workermanage import parse_spec_config as parse_tx_spec_config
    return len(parse_tx_spec_config(config))


def call_when_idle(config: pytest.Config, call: Callable[[], None]) -> None:
    """Call ``call`` in the main thread after every two seconds without a message from a worker.

    Two seconds is the timeout of pytest-xdist's loop on its ``queue``. Without a ``queue``, do nothing.
    """
    from queue import Empty

    queue: Any = getattr(config.pluginmanager.getplugin("dsession"), "queue", None)
    if queue is None:
        return
    get = queue.get

    def get_or_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return get(*args, **kwargs)
        except Empty:
            call()
            raise

    queue.get = get_or_call


def output_of(worker: object) -> Mapping[str, Any] | None:
    """Return a finished worker's output. After a crash, or without ``workeroutput``, return None."""
    output: Mapping[str, Any] | None = getattr(worker, "workeroutput", None)
    return output


def worker_failures(config: pytest.Config) -> int:
    """Return the number of failures in workers so far. Without the plugin ``dsession``, return 0."""
    return int(getattr(config.pluginmanager.getplugin("dsession"), "countfailures", 0))


def is_stepwise_stop(session: pytest.Session) -> bool:
    """Return True if ``--sw`` stopped the run, recognized by the wording of its reason."""
    option = session.config.option
    if not (getattr(option, "stepwise", False) or getattr(option, "stepwise_skip", False)):
        return False
    workers = session.config.pluginmanager.getplugin("dsession")
    return "continuing from this test" in str(session.shouldstop or getattr(workers, "shouldstop", False))
