"""Workers of pytest-xdist, seen from within and from the controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pytest

# Seen from within


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is a worker. Without ``config.workerinput`` no process is one."""
    return hasattr(config, "workerinput")


def is_replacement(config: pytest.Config) -> bool:
    """Tell a worker that took the place of one that died: by its number, which the first ones count up to."""
    given = worker_input(config)
    number = str(given.get("workerid", "gw0")).removeprefix("gw")
    return number.isdecimal() and int(number) >= int(given.get("workercount", 1))


def worker_input(config: pytest.Config) -> Mapping[str, Any]:
    """Return what the controller passed to this worker, with ``workerid`` and ``workercount``; elsewhere nothing."""
    given: Mapping[str, Any] = getattr(config, "workerinput", {})
    return given


def input_of_worker(node: Any) -> dict[str, Any]:
    """Return what the controller will pass to the worker ``node``, to be added to."""
    given: dict[str, Any] = getattr(node, "workerinput", {})
    return given


def output_to_controller(config: pytest.Config) -> dict[str, Any] | None:
    """Return what this worker will tell the controller at its end, to be added to; None if no controller is there.

    Values are such as execnet can send. Without ``config.workeroutput`` the controller learns of tasks from node ids.
    """
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    return output


def send_with_ids(config: pytest.Config, text: str) -> None:
    """Have this worker send ``text`` to the controller as the last of the node ids that it is about to send.

    Without ``sendevent`` of the plugin of pytest-xdist it is not sent.
    """
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
    """Return a function that returns the places, in the list of items, of those this worker is still to run.

    The item after the running one has left the queue already: it comes first. Without the plugin that has ``torun``,
    or a queue with a lock (pytest-xdist 3.7), nothing: a batch is asked when its first example runs, and no earlier.
    """
    plugins = config.pluginmanager.get_plugins()
    worker: Any = next((plugin for plugin in plugins if hasattr(plugin, "torun")), None)

    def queued() -> list[int]:
        # Looked up anew: the controller's taking work back may have replaced the queue.
        lock = getattr(getattr(worker, "torun", None), "lock", None)
        if lock is None:
            return []
        with lock() as places:
            return [place for place in (worker.nextitem_index, *places) if isinstance(place, int)]

    return queued


# Seen from the controller


class Worker(Protocol):
    """A worker as the controller's scheduler deals with it; ``xdist.workermanage.WorkerController`` is one."""

    gateway: Any

    @property
    def shutting_down(self) -> bool:
        """Whether it was asked to end."""

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Hand it items, by their places in its collection."""

    def send_steal(self, indices: Sequence[int]) -> None:
        """Take back items that it has not begun."""

    def shutdown(self) -> None:
        """Let it end when it has run what it was handed."""


def is_controller(config: pytest.Config) -> bool:
    """Tell whether the tests run in workers of this process. Without the plugin ``dsession`` they run in this one."""
    return bool(config.pluginmanager.hasplugin("dsession"))


def expected_workers(config: pytest.Config) -> int:
    """Return how many workers a run begins with; an ImportError if neither name of the function exists."""
    try:
        from xdist.workermanage import parse_tx_spec_config
    except ImportError:  # its name before pytest-xdist 3.7
        from xdist.workermanage import parse_spec_config as parse_tx_spec_config
    return len(parse_tx_spec_config(config))


def call_when_idle(config: pytest.Config, call: Callable[[], None]) -> None:
    """Have ``call`` called in the main thread whenever no worker has said anything for two seconds.

    The loop of pytest-xdist asks its ``queue`` with that limit. Without it ``call`` is never called.
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
    """Return what a worker said at its end; None of one that crashed, or whose ``workeroutput`` does not exist."""
    output: Mapping[str, Any] | None = getattr(worker, "workeroutput", None)
    return output


def worker_failures(config: pytest.Config) -> int:
    """Return how many failures of workers ``--maxfail`` has counted; 0 without the plugin ``dsession``."""
    return int(getattr(config.pluginmanager.getplugin("dsession"), "countfailures", 0))


def is_stepwise_stop(session: pytest.Session) -> bool:
    """Tell whether ``--sw`` stopped the run, by the words of its reason. In other words it is taken for none."""
    option = session.config.option
    if not (getattr(option, "stepwise", False) or getattr(option, "stepwise_skip", False)):
        return False
    workers = session.config.pluginmanager.getplugin("dsession")
    return "continuing from this test" in str(session.shouldstop or getattr(workers, "shouldstop", False))
