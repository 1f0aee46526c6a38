"""What the eval functions of all models of one process share: the loop, the endpoint, and where prints and logs go."""

from __future__ import annotations

import logging

import pytest

from pytest_lmeval.functions.endpoint import Endpoint
from pytest_lmeval.functions.loop import LogKeeper, Loop, is_of_this_thread, route_prints, routed, unroute_prints
from pytest_lmeval.functions.spans import Spans
from pytest_lmeval.plugin.private import is_capturing, log_handlers, wrap_captured


class Shared:
    """Made with the first model's eval functions, and closed with the last one's."""

    def __init__(self, config: pytest.Config) -> None:
        self._route = self._unwrap = _nothing
        if is_capturing(config):
            self._route, self._unwrap = route_prints, wrap_captured(config, routed)
        self.loop = Loop(self._route)
        self.endpoint = Endpoint(self.loop)
        self.spans = Spans(lambda: self.endpoint.address)
        self.users = 0
        self._config = config
        self._keeper: LogKeeper | None = None
        self._filtered: list[logging.Handler] = []

    def keep_logs(self) -> None:
        """Keep the log records of examples that run beside others with them, and away from the item at its turn."""
        if self._keeper is None:
            self._keeper = LogKeeper()
            logging.getLogger().addHandler(self._keeper)
            self._filtered = log_handlers(self._config)
            for handler in self._filtered:
                handler.addFilter(is_of_this_thread)

    def route_prints(self) -> None:
        """Keep what examples print from now on apart, while any may run beside the item at its turn."""
        if self.loop.is_running:
            self._route()

    def release(self) -> None:
        """Note that one of the users is done; the last one's going ends all."""
        self.users -= 1
        if self.users:
            return
        self.endpoint.close()
        self.loop.close()
        self.spans.close()
        self._unwrap()
        unroute_prints()
        if self._keeper is not None:
            logging.getLogger().removeHandler(self._keeper)
            for handler in self._filtered:
                handler.removeFilter(is_of_this_thread)


def shared(config: pytest.Config) -> Shared:
    """Return what is shared in this process, and count one more user."""
    if _SHARED not in config.stash:
        config.stash[_SHARED] = Shared(config)
    found = config.stash[_SHARED]
    found.users += 1
    return found


def _nothing() -> None:
    return None


_SHARED = pytest.StashKey[Shared]()
