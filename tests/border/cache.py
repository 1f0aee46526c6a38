"""The border where answers of earlier runs come in: the folder of ``--lm-cache``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from tests.border.table import Border, Row, refused_run, run_of_its_own
from tests.conftest import MODEL

FILE = "kept/answers.sqlite"
TASK = json.dumps({"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}) + "\n"
FAILING = f"{MODEL}\n    @property\n    def fingerprint(self):\n        raise ValueError('no weights')\n"
BY_KEY = "rows are found by a hash over the run's own adapter: tests/records/test_cache.py puts such rows"


def database(version: int, table: str = "answers") -> bytes:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute(f"CREATE TABLE {table} (key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID")
        made.execute(f"INSERT INTO {table} VALUES (x'00', 'x')")
        made.execute(f"PRAGMA user_version = {version}")
        made.commit()
        return made.serialize()


def refused(kind: str, what: str, says: str, *arguments: str, **files: bytes | str) -> Row:
    named = {name.replace("__", "."): content for name, content in files.items()}
    return refused_run(kind, what, says, *arguments, files=named)


BORDER = Border(
    name="the cache",
    files={"tasks/t.jsonl": TASK},
    arguments=("--lm-adapter=model:Model", "--lm-cache=kept"),
    rows=(
        refused("absent", "no folder to read only", "holds no answers", "--lm-cache-mode=read-only"),
        run_of_its_own("empty", "an empty file", files={FILE: b""}, example="t:a", status="passed"),
        refused("wrong type", "a file in place of the folder", "cannot be used", kept="x"),
        refused_run(
            "control characters",
            "a file that is no database",
            "cannot be used",
            files={FILE: b"\xff\x00 no database, but long enough to be looked at" * 40},
        ),
        refused_run(
            "late", "a file of a later version", "of version 7, and this is version 3", files={FILE: database(7)}
        ),
        run_of_its_own(
            "same name",
            "answers of version 0.1.1, whose keys hold little but a name",
            fate="reported",
            files={FILE: database(1)},
            example="t:a",
            status="passed",
            says="cache: 1 answer(s) of an earlier version are not used",
            on=("terminal", "board", "markdown", "page"),
        ),
        run_of_its_own(
            "earlier run",
            "answers of version 0.2.0, whose keys depend on what was imported",
            fate="reported",
            files={FILE: database(2, "kept")},
            example="t:a",
            status="passed",
            says="cache: 1 answer(s) of an earlier version are not used",
            on=("terminal", "board", "markdown", "page"),
        ),
        Row(kind="beside", never="no key depends on what else is imported: tests/plugin/asking/test_cache_keys.py"),
        refused("raising", "a fingerprint that raises", "fingerprint raised ValueError: no weights", model__py=FAILING),
        Row(
            kind="environment",
            never="no key depends on variables or on what is installed: tests/plugin/asking/test_cache_keys.py",
        ),
        run_of_its_own(
            "changed unseen",
            "the code of the adapter",
            files={"model.py": MODEL.replace('"say: ")[2]', '"say: ")[2] + "!"')},
            before={"model.py": MODEL},
            code=1,
            example="t:a",
            status="failed",
            says="cache: 0 of 1 answer(s) found",
            on=("terminal",),
        ),
        Row(
            kind="kept client",
            never="a kept client's request is looked up as its example's: evals/test_kept_clients.py",
        ),
        Row(kind="too large", never=BY_KEY),
        Row(kind="not finite or negative", never=BY_KEY),
        Row(kind="twice", never="a key is there once: a new answer takes the place of the old one"),
        Row(kind="out of order", never="answers are found by key, and have no order"),
        Row(kind="cancelled", never="a look into the file waits for nothing that could be cancelled"),
        Row(kind="secret", never="an answer is scrubbed before it is kept: tests/plugin/asking/test_cache_keys.py"),
    ),
)
