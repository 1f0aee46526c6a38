"""``lmeval cache``: what is kept, and to have less of it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from pytest_lmeval.records.cache import AnswerStore
from pytest_lmeval.types import Completion
from tests.cli.conftest import Lmeval


def _filled(folder: Path) -> AnswerStore:
    store = AnswerStore(folder)
    for number, adapter in enumerate(["mini", "mini", "large\x1b[31m"]):
        store.put(f"{number:064x}", Completion(str(number)), adapter)
    store._database.execute("UPDATE answered SET asked = 0 WHERE key = ?", (bytes.fromhex(f"{0:064x}"),))
    return store


def test_answers_are_listed_by_adapter_pruned_by_age_and_cleared(lmeval: Lmeval, tmp_path: Path) -> None:
    _filled(tmp_path / "kept").close()
    today = time.strftime("%Y-%m-%d", time.gmtime())
    status, out, _ = lmeval("cache", "list", tmp_path / "kept")
    lines = [line.split() for line in out.splitlines()]
    assert (0, ["adapter", "answers", "oldest", "newest"]) == (status, lines[0])
    assert ["mini", "2", "1970-01-01", today] in lines
    assert "\x1b" not in out
    assert (0, "1 answer(s) removed, 2 left\n", "") == lmeval("cache", "prune", tmp_path / "kept", "--older-than=30")
    assert (0, "2 answer(s) removed, 0 left\n", "") == lmeval("cache", "clear", tmp_path / "kept")
    assert (0, "no answers\n", "") == lmeval("cache", "list", tmp_path / "kept")


def test_answers_whose_time_is_no_time_are_listed_without_it(lmeval: Lmeval, tmp_path: Path) -> None:
    with closing(_filled(tmp_path)) as store:
        store._database.execute("UPDATE answered SET asked = 9e99")
    status, out, _ = lmeval("cache", "list", tmp_path)
    assert (0, ["mini", "2"]) == (status, out.splitlines()[-1].split())


def test_a_folder_without_answers_and_days_that_are_no_number_are_refused(lmeval: Lmeval, tmp_path: Path) -> None:
    for action in (("list",), ("clear",), ("prune", "--older-than=1")):
        status, _, err = lmeval("cache", *action, tmp_path)
        assert (2, f"lmeval cache: cache {tmp_path}: holds no answers\n") == (status, err)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("action", [("list",), ("clear",), ("prune", "--older-than=1")])
def test_a_damaged_cache_is_told_and_is_not_left_open(
    action: tuple[str, ...], lmeval: Lmeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(_filled(tmp_path)) as store:
        store._database.execute("DROP TABLE answered")
    closed: list[AnswerStore] = []
    close = AnswerStore.close

    def noted(store: AnswerStore) -> None:
        close(store)
        closed.append(store)

    monkeypatch.setattr(AnswerStore, "close", noted)
    status, _, err = lmeval("cache", *action, tmp_path)
    assert (2, 1) == (status, len(closed))
    assert f"cache {tmp_path}: cannot be" in err
    assert "no such table: answered" in err
