"""Whatever became of a ledger on disk, all that read one see the same runs in it, or refuse it in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import UsageError, default_registry
from pytest_lmeval.formats.files import is_task_file
from pytest_lmeval.records import runfile
from pytest_lmeval.records.ledger import Ledger, ledger_line
from pytest_lmeval.records.ledger_lines import is_complete, read_ledger
from pytest_lmeval.records.recording import read_recording
from pytest_lmeval.records.runfile import board_of, read_run
from pytest_lmeval.records.shards import ledger_of, merge
from pytest_lmeval.run.resume import read_held
from tests.records.run_files import FACTS, result, write_ledger

REGISTRY = default_registry(entry_points=False)
ASKING = "b" * 64
A, B = result("sums", "a"), result("sums", "b", 0.0)
OTHER_A = replace(A, outputs=("asked again",))
NO_ANSWER = result("sums", "a", None)
SELECTION: dict[str, Any] = {"shard": "1/1", "tasks": {"sums": {"available": 2, "selected": 2}}}
BOTH = {"a": "a 1.0", "b": "b 0.0"}


@dataclass(frozen=True)
class Lines:
    """The lines of a complete run, with their ends."""

    header: bytes
    a: bytes
    b: bytes
    run: bytes
    footer: bytes

    @property
    def whole(self) -> bytes:
        return self.header + self.a + self.b + self.end

    @property
    def end(self) -> bytes:
        return self.run + self.footer

    @property
    def killed(self) -> bytes:
        return self.header + self.a + self.b


@dataclass(frozen=True)
class View:
    """What a ledger holds: the outputs by id, how many lines are damaged, whether its last run is complete."""

    outputs: dict[str, str]
    damaged: int = 0
    complete: bool = False


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    path = write_ledger(tmp_path_factory.mktemp("run"), [A, B], selection=SELECTION)
    return Lines(*path.read_bytes().splitlines(keepends=True))


def _json(value: Any) -> bytes:
    return value.to_json().encode() + b"\n" if hasattr(value, "to_json") else json.dumps(value).encode() + b"\n"


def _changed(line: bytes, **fields: Any) -> bytes:
    return _json({**json.loads(line), **fields})


def _of_version(line: bytes, version: str) -> bytes:
    return line.replace(b"/ledger/2", f"/ledger/{version}".encode())


READ: dict[str, tuple[Callable[[Lines], bytes], View]] = {
    "whole": (lambda of: of.whole, View(BOTH, complete=True)),
    "killed": (lambda of: of.killed, View(BOTH)),
    "last line without its end": (lambda of: of.killed[:-1], View(BOTH)),
    "footer without its end": (lambda of: of.whole[:-1], View(BOTH, complete=True)),
    "torn last line": (lambda of: of.header + of.a + of.b[:80], View({"a": "a 1.0"}, 1)),
    "torn line, then gone on with": (lambda of: of.header + of.b[:80] + b"\n" + of.whole, View(BOTH, 1, True)),
    "torn header, then gone on with": (lambda of: of.header[:20] + b"\n" + of.whole, View(BOTH, 1, True)),
    "nearly nothing of a header": (lambda of: of.header[:3] + b"\n" + of.whole, View(BOTH, 1, True)),
    "torn header after a complete run": (lambda of: of.whole + b"\n" + of.header[:20], View(BOTH, 1)),
    "torn footer": (lambda of: of.killed + of.run + of.footer[:20], View(BOTH, 1)),
    "run line without a footer": (lambda of: of.killed + of.run, View(BOTH)),
    "footer without a run line": (lambda of: of.killed + of.footer, View(BOTH)),
    "result after the footer": (lambda of: of.header + of.a + of.end + of.b, View(BOTH)),
    "damage between run line and footer": (lambda of: of.killed + of.run + b"{\n" + of.footer, View(BOTH, 1)),
    "end twice": (lambda of: of.whole + of.end, View(BOTH, complete=True)),
    "blank lines after the footer": (lambda of: of.whole + b"\n \r\n\r\n \n", View(BOTH, complete=True)),
    "blank lines": (lambda of: b"\n \n" + of.whole.replace(b"\n", b"\n\n \t\n\r\n"), View(BOTH, complete=True)),
    "CRLF": (lambda of: of.whole.replace(b"\n", b"\r\n"), View(BOTH, complete=True)),
    "CR inside a line": (
        lambda of: of.header + of.a.replace(b',"score"', b',\r"score"') + of.b + of.end,
        View(BOTH, complete=True),
    ),
    "byte order mark": (lambda of: b"\xef\xbb\xbf" + of.whole, View(BOTH, complete=True)),
    "byte order mark and a blank line": (lambda of: b"\xef\xbb\xbf\n" + of.whole, View(BOTH, complete=True)),
    "byte order mark in the middle": (lambda of: of.header + b"\xef\xbb\xbf" + of.a + of.b, View({"b": "b 0.0"}, 1)),
    "spaces in the JSON": (
        lambda of: b"".join(map(_json, map(json.loads, of.whole.splitlines()))),
        View(BOTH, complete=True),
    ),
    "keys in another order": (
        lambda of: json.dumps(json.loads(of.header), sort_keys=True).encode() + b"\n" + of.a + of.b,
        View(BOTH),
    ),
    "damage ahead of the header": (lambda of: b"# mine\n" + of.whole, View(BOTH, 1, True)),
    "as many damaged lines ahead of the header as may be": (lambda of: b"#\n" * 100 + of.whole, View(BOTH, 100, True)),
    "NaN for a number": (
        lambda of: of.header + of.a.replace(b'"latency_ms":null', b'"latency_ms":NaN') + of.b,
        View({"b": "b 0.0"}, 1),
    ),
    "too large for a number": (
        lambda of: of.header + of.a.replace(b'"details":{}', b'"details":{"x":1e999}') + of.b,
        View({"b": "b 0.0"}, 1),
    ),
    "an integer of too many digits": (lambda of: of.killed + b'{"line":' + b"9" * 5000 + b"}\n", View(BOTH, 1)),
    "a line that is a list": (lambda of: of.killed + b"[]\n", View(BOTH, 1)),
    "a line that is null": (lambda of: of.killed + b"null\n", View(BOTH, 1)),
    "a line that is text": (lambda of: of.killed + b'"header"\n', View(BOTH, 1)),
    "two objects in a line": (lambda of: of.header + of.a[:-1] + of.b, View({}, 1)),
    "nested without end": (lambda of: of.killed + b"[" * 200_000 + b"\n", View(BOTH, 1)),
    "bytes that are no UTF-8": (lambda of: of.header + b"\xff\xfe\n" + of.a + of.b, View(BOTH, 1)),
    "surrogates as bytes": (
        lambda of: of.header + of.a.replace(b"say: a", b"say: \xed\xa0\x80") + of.b,
        View({"b": "b 0.0"}, 1),
    ),
    "zeros": (lambda of: of.killed + bytes(4096), View(BOTH, 1)),
    "a very long line": (
        lambda of: of.header + _changed(of.a, prompt="x" * 3_000_000) + of.b + of.end,
        View(BOTH, 0, True),
    ),
    "a very long end": (
        lambda of: of.killed + _json({"run": {**json.loads(of.run)["run"], "more": "x" * 300_000}}) + of.footer,
        View(BOTH, complete=True),
    ),
    "a field of a later version": (lambda of: of.header + _changed(of.a, mood="good") + of.b, View(BOTH)),
    "without its optional fields": (
        lambda of: of.header + of.a.replace(b'"predictions":[],', b"").replace(b'"item":""', b'"line":1') + of.b,
        View(BOTH),
    ),
    "a result twice": (lambda of: of.header + of.a + of.b + _json(OTHER_A), View({"a": "asked again", "b": "b 0.0"})),
    "two runs": (lambda of: of.whole + of.header + _json(OTHER_A) + of.b, View({"a": "asked again", "b": "b 0.0"})),
    "no answer when asked again": (lambda of: of.whole + of.header + _json(NO_ANSWER), View({"b": "b 0.0"})),
    "an answer at last": (lambda of: of.header + _json(NO_ANSWER) + of.header + of.a + of.b, View(BOTH)),
}
REFUSED: dict[str, tuple[Callable[[Lines], bytes], str]] = {
    "newer": (lambda of: _of_version(of.header, "4") + of.a, ": a newer version wrote pytest-lmeval/ledger/4"),
    "gone on with by a newer one": (
        lambda of: of.killed + _of_version(of.header, "3") + of.a,
        ": a newer version wrote pytest-lmeval/ledger/3",
    ),
    "version 0": (lambda of: _of_version(of.header, "0") + of.a, ": schema: expected pytest-lmeval/ledger/2"),
    "an empty object": (lambda of: of.header + of.a + b"{}\n", ":3: not a result: task: expected text, got None"),
    "no id": (lambda of: of.header + b'{"task": "sums"}\n', ":2: not a result: id: expected text, got None"),
    "a number for an id": (lambda of: of.header + _changed(of.a, id=3), ":2: not a result: id: expected text, got 3"),
    "a text for outputs": (
        lambda of: of.header + _changed(of.a, outputs="text"),
        ":2: not a result: outputs: expected a list of texts, got 'text'",
    ),
    "a number for an output": (
        lambda of: of.header + _changed(of.a, outputs=[5]),
        ":2: not a result: outputs: expected a list of texts, got [5]",
    ),
    "a number for a header": (lambda of: of.killed + b'{"header": 5}\n', ":4: header: expected an object, got 5"),
    "a list for a footer": (lambda of: of.killed + b'{"footer": []}\n', ":4: footer: expected an object, got []"),
}


@pytest.mark.parametrize("name", READ)
def test_all_that_read_a_ledger_see_the_same(
    tmp_path: Path, lines: Lines, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, expected = READ[name]
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(build(lines))
    run, held = read_run(path), read_held(path, ASKING)
    monkeypatch.setattr(runfile, "LARGE", 0)
    large = read_run(path)
    by_reader = {
        "run": View(_outputs(run.results or ()), run.damaged, run.complete),
        "run, of a large file": View(_outputs(large.results or ()), large.damaged, large.complete),
        "resume": View(_outputs(held.results.values()), held.damaged, held.complete),
        "replay": View(
            {id: outputs[0] for _, id, outputs in read_recording(path)}, expected.damaged, expected.complete
        ),
        "is_complete": View(expected.outputs, expected.damaged, is_complete(path)),
    }
    assert dict.fromkeys(by_reader, expected) == by_reader
    assert not is_task_file(path, REGISTRY)
    assert (expected.complete, expected.complete) == (board_of(run).complete, bool(run.digest))
    assert (run.results, run.infos, run.facts) == (large.results, large.infos, large.facts)


@pytest.mark.parametrize("name", [name for name, (_, view) in READ.items() if view.complete])
def test_what_merge_writes_of_a_complete_run_is_read_as_that_run(tmp_path: Path, lines: Lines, name: str) -> None:
    path, merged = tmp_path / "ledger.jsonl", tmp_path / "merged.jsonl"
    path.write_bytes(READ[name][0](lines))
    whole = merge([read_run(path)])
    merged.write_bytes(b"".join(ledger_of(whole, board_of(whole))))
    again = read_run(merged)
    assert (whole.results, whole.infos, True, True) == (again.results, again.infos, again.complete, again.agrees)


@pytest.mark.parametrize("name", REFUSED)
def test_all_that_read_a_ledger_refuse_the_same_in_the_same_words(
    tmp_path: Path, lines: Lines, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, message = REFUSED[name]
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(build(lines))
    refusals = [_refusal(lambda: read_run(path)), _refusal(lambda: read_held(path, ASKING))]
    refusals.append(_refusal(lambda: list(read_recording(path))))
    monkeypatch.setattr(runfile, "LARGE", 0)
    refusals.append(_refusal(lambda: read_run(path)))
    assert 1 == len(set(refusals))
    assert refusals[0].startswith(f"{path}{message}")
    # It is not for a collector to say what is wrong with it.
    assert not is_task_file(path, REGISTRY)


def test_a_board_is_not_searched_for_a_header_to_its_end(tmp_path: Path, lines: Lines) -> None:
    read = []

    def count() -> Iterator[bytes]:
        for line in [b"{\n"] * 100_000:
            read.append(line)
            yield line

    assert read_ledger(count(), tmp_path, dict) is None
    assert 1000 > len(read)
    (tmp_path / "board.jsonl").write_bytes(b"{\n" * 1000 + lines.whole)
    assert is_task_file(tmp_path / "board.jsonl", REGISTRY)


def test_a_file_that_begins_with_a_result_is_a_recording(tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(lines.a + lines.header + lines.b)
    assert ": a recording, which has outputs and no scores" in _refusal(lambda: read_run(path))
    assert ": not a ledger, it has no header; run without --lm-resume" in _refusal(lambda: read_held(path, ASKING))
    assert ":2: expected" in _refusal(lambda: list(read_recording(path)))
    assert is_task_file(path, REGISTRY)


@pytest.mark.parametrize("length", [0, 1, 60])
def test_a_run_killed_in_its_first_line_is_gone_on_with(tmp_path: Path, lines: Lines, length: int) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(lines.header[:length])
    held = read_held(path, ASKING)
    assert (True, {}, False) == (held.goes_on, dict(held.results), held.complete)
    ledger = Ledger(tmp_path)
    ledger.open({"timestamp": FACTS.timestamp, "asking": ASKING}, resume=True)
    ledger.append(A.to_json())
    ledger.close(None)
    assert (A,) == read_run(path).results
    assert not is_task_file(path, REGISTRY)


def test_a_header_that_was_cut_makes_no_task(tmp_path: Path, lines: Lines) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(lines.header[:60])
    assert not is_task_file(tmp_path / "ledger.jsonl", REGISTRY)


def test_a_number_that_json_does_not_have_damages_no_line(tmp_path: Path) -> None:
    odd = {"timestamp": FACTS.timestamp, "manifest": {"nan": float("nan"), "path": tmp_path}}
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(ledger_line("header", odd) + A.to_json().encode())
    run = read_run(path)
    assert ({"nan": "NaN", "path": str(tmp_path)}, (A,), 0) == (run.facts.manifest, run.results, run.damaged)


def _outputs(results: Any) -> dict[str, str]:
    return {each.id: each.outputs[0] for each in results if each.outputs}


def _refusal(read: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        read()
    return str(caught.value)
