"""The JSON metrics, against the json module and jsonschema."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.metrics import is_json, json_exact, json_schema, only_json
from pytest_lmeval.metrics.parts.worker import MetricWorker, TookTooLong
from pytest_lmeval.types import Score
from tests import needs
from tests.examples import examples
from tests.tables import each_row

VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
CONTAINER = st.lists(VALUE, max_size=3) | st.dictionaries(st.text(max_size=3), VALUE, max_size=3)
many = examples(200)
NAMED = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}


@each_row(
    ("prediction", "found", "only"),
    [
        ('{"a": 1}', 1.0, 1.0),
        (" [1, 2]\n", 1.0, 1.0),
        ("42", 1.0, 1.0),
        ('"text"', 1.0, 1.0),
        ('Here you are: {"a": 1}', 1.0, 0.0),
        ('```json\n{"a": 1}\n```', 1.0, 0.0),
        ("{broken} and then [1]", 1.0, 0.0),
        ("{x} " * 100 + "[1]", 1.0, 0.0),
        ("The answer is 42", 0.0, 0.0),
        ("{'a': 1}", 0.0, 0.0),
        ('{"a": 1,}', 0.0, 0.0),
        ("NaN", 0.0, 0.0),
        ("[Infinity]", 0.0, 0.0),
        ('{"a": 1} // done', 1.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_json_is_found_and_told_from_what_stands_around_it(prediction: str, found: float, only: float) -> None:
    assert found == is_json(prediction, [], {})
    assert only == only_json(prediction, [], {})


@many
@given(CONTAINER, st.text("ab:,. \n", max_size=9), st.text("ab:,. \n", max_size=9))
def test_any_container_is_found_between_any_text_without_brackets(value: Any, before: str, after: str) -> None:
    text = f"{before}{json.dumps(value)}{after}"
    assert 1.0 == is_json(text, [], {})
    assert 1.0 == json_exact(text, [json.dumps(value)], {})
    assert float(not (before + after).strip()) == only_json(text, [], {})


@pytest.mark.parametrize("text", ["[" * 100_000, "[1," * 50_000, '{"a":' * 50_000, "[1] " * 50_000, '["' * 50_000])
def test_a_long_run_of_brackets_takes_no_more_than_linear_time(text: str) -> None:
    started = time.process_time()
    is_json(text, [], {})
    assert 10 > time.process_time() - started  # the square of the length would be minutes


def test_values_of_more_than_a_hundred_levels_are_no_json() -> None:
    assert 1.0 == is_json("[" * 100 + "]" * 100, [], {})
    assert 0.0 == is_json("[" * 101 + "]" * 101, [], {})


@each_row(
    ("prediction", "target", "expected"),
    [
        ('{"a": 1, "b": [true]}', '{"b": [true], "a": 1}', 1.0),
        ("so: [1, 2]", "[1, 2]", 1.0),
        ("[1.0]", "[1]", 1.0),
        ("[true]", "[1]", 0.0),
        ("[1]", "[true]", 0.0),
        ("[2, 1]", "[1, 2]", 0.0),
        ('{"a": null}', "{}", 0.0),
        ("nothing", "null", 0.0),
        ("[1] but rather [1, 2]", "[1, 2]", 1.0),
    ],
)
def test_json_exact_compares_values(prediction: str, target: str, expected: float) -> None:
    assert expected == json_exact(prediction, ['"no"', target], {})


def test_a_target_that_is_not_json_is_the_task_s_fault() -> None:
    with pytest.raises(RecordRefused, match="bad_value targets: json_exact expects each target to be JSON"):
        json_exact("[1]", ["[1"], {})


@each_row(
    ("prediction", "expected"),
    [
        ('{"name": "Ada", "age": 36}', 1.0),
        ('Sure! {"name": "Ada"}', 1.0),
        ('{"name": "Ada", "age": "36"}', 0.0),
        ('{"age": 36}', 0.0),
        ("Ada", 0.0),
        ("", 0.0),
    ],
)
def test_json_schema_judges_the_json_that_is_found(prediction: str, expected: float) -> None:
    needs.installed("jsonschema")
    assert expected == json_schema(prediction, [], {"json_schema": NAMED})


@each_row(
    ("extras", "detail"),
    [
        ({}, "expected a JSON Schema, got None"),
        ({"json_schema": [1]}, "expected a JSON Schema"),
        ({"json_schema": {"type": "objekt"}}, r"\$\.type: 'objekt' is not valid"),
        ({"json_schema": {"pattern": "("}}, r"\$\.pattern: '\(' is not a 'regex'"),
        ({"json_schema": {"$ref": "#"}}, "its references form a circle"),
        ({"json_schema": {"anyOf": [{"$ref": "#"}]}}, "its references form a circle"),
        ({"json_schema": {"const": 1j}}, "the schema is not JSON: Object of type complex"),
    ],
)
def test_a_schema_that_is_none_is_refused_whatever_the_answer(extras: dict[str, Any], detail: str) -> None:
    needs.installed("jsonschema")
    with pytest.raises(RecordRefused, match=f"bad_value extras.json_schema: {detail}"):
        json_schema("no JSON", [], extras)


def test_a_reference_is_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.installed("jsonschema")
    monkeypatch.setenv("no_proxy", "*")
    # Either would be answered with a schema that the value fulfils.
    (tmp_path / "any.json").write_text("{}")
    with _schema_server() as (address, paths):
        for reference in (f"{address}/any.json", (tmp_path / "any.json").as_uri()):
            with pytest.raises(ScoringError, match=f"cannot resolve the reference '{re.escape(reference)}'"):
                json_schema("{}", [], {"json_schema": {"$ref": reference}})
        assert [] == paths
        # The server can be reached from here: none of the above was for want of it.
        assert b"{}" == urlopen(f"{address}/here").read()


@contextmanager
def _schema_server() -> Iterator[tuple[str, list[str]]]:
    """Provide the address of a server that has an empty schema at every path, and the paths that it is asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", paths
        finally:
            server.shutdown()
            thread.join()


def test_a_schema_that_refers_to_itself_judges_values_of_any_depth() -> None:
    needs.installed("jsonschema")
    tree = {"properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}}
    for leaf, expected in (({"b": "x"}, 1.0), ({"b": 1}, 0.0)):
        value: Any = leaf
        for _ in range(95):
            value = {"a": value}
        assert expected == json_schema(json.dumps(value), [], {"json_schema": tree})


def test_a_text_that_makes_a_pattern_slow_is_wrong_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needs.installed("jsonschema")
    worker = MetricWorker(cpu_limit_s=0.3)
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    schema = {"properties": {"name": {"pattern": "^(a+)+$"}}, "patternProperties": {"^n": True}}
    found = json_schema(json.dumps({"name": "a" * 60 + "!"}), [], {"json_schema": schema})
    limit = "json_schema took more than 0.3 s of CPU time; patterns of the schema: '^n', '^(a+)+$'"
    assert Score(0.0, {"schema_status": "timeout", "schema_detail": limit}) == found
    assert 1.0 == json_schema('{"name": "aaa"}', [], {"json_schema": schema})


def test_a_schema_that_takes_for_ever_for_a_short_text_too_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def took_long(*_: object) -> None:
        raise TookTooLong("json_schema took long")

    worker = MetricWorker()
    monkeypatch.setattr(worker, "ask", took_long)
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    limit = r"json_schema took long, for a short value, too; patterns of the schema: 'a'"
    with pytest.raises(ScoringError, match=limit):
        json_schema('"aa"', [], {"json_schema": {"pattern": "a"}})


def test_without_jsonschema_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("jsonschema.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = MetricWorker()
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    with pytest.raises(ScoringError, match=r"json_schema needs jsonschema: pip install 'pytest-lmeval\[json\]'"):
        json_schema("{}", [], {"json_schema": True})
