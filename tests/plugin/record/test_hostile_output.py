"""No text that a model writes, and no text around it, breaks a run, a report or a terminal."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import BOTH, Project

TEXTS = {
    "surrogate": "\ud800 alone",
    "surrogates": "\udcff\udc80" * 3,
    "swapped-pair": "\udc00\ud800",
    "nul": "a\x00b",
    "ansi": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b[?25l",
    "c1": "\x9b31m\x85\x90",
    "returns": "passed\r\r\nFAILED\x08\x08\x0b\x0c",
    "bidi": "\u202eevil\u2066\u200b\ufeff",
    "separators": "a\u2028b\u2029c\x1cd",
    "megabyte": "x" * 1_000_000,
    "long-lines": "\n".join(["word " * 50] * 2000),
    "nonchar": "\ufffe\uffff\U0010ffff",
    "markup": "</failure>]]><!-- & &#0; <script>alert(1)</script>",
    "json": '{"score": NaN, "x": "\\ud800"}',
    "looks-like-a-report": '{"$report_type": "TestReport", "lm_score": 1.0}',
    "percent": "%s %(x)s {0} {x} $HOME `id`",
    "empty": "",
    "blank": " \t\n ",
}
MODEL = """
import json
from pathlib import Path

TEXTS = json.loads(Path("texts.json").read_text())

class Model:
    name = "hostile.v1"

    def generate(self, prompts):
        return [TEXTS[prompt] for prompt in prompts]
"""


@pytest.fixture
def hostile(project: Project) -> Project:
    """Provide each text as a wrong answer and, where a record can hold it, as a right one."""
    project.write("texts.json", json.dumps(TEXTS))
    project.write("model.py", MODEL)
    record: dict[str, Any] = {"metric": "exact_match"}
    wrong = [{"id": f"wrong-{key}", "prompt": key, "targets": ["no such text"], **record} for key in TEXTS]
    right = [
        {"id": f"right-{key}", "prompt": key, "targets": [text], **record}
        for key, text in TEXTS.items()
        if text.isprintable() and len(text) < 1000
    ]
    project.task("tasks/t.jsonl", *wrong, *right)
    return project


def check_terminal(result: pytest.RunResult) -> None:
    text = result.stdout.str()
    assert "INTERNALERROR" not in text
    assert "\x1b[2J" not in text
    assert "\x1b]0;" not in text
    assert not set(text) & set("\x00\x07\x08\x9b\x90\u202e")
    assert len(text) < 400_000


def test_every_text_is_scored_kept_and_shown_harmlessly(hostile: Project) -> None:
    right = sum(text.isprintable() and len(text) < 1000 for text in TEXTS.values())
    digests = set()
    for name, options in (("serial", []), ("workers", ["-n2", "--lm-batch-size=3"])):
        reports = [
            f"--lm-report-dir={name}",
            f"--junitxml={name}.xml",
            "--json-report",
            f"--json-report-file={name}.json",
        ]
        result = hostile.run(*options, "--lm-include-per-example", *reports)
        assert 1 == result.ret
        check_terminal(result)
        result.assert_outcomes(failed=len(TEXTS), passed=right)
        assert hostile.board(name)["complete"]
        digests.add(hostile.board(name)["digest"])
        outputs = {id.removeprefix("t:wrong-"): record["output"] for id, record in hostile.examples(name).items()}
        assert dict(TEXTS) == {key: outputs[key] for key in TEXTS}
        ledger = (hostile.path / name / "ledger.jsonl").read_bytes().decode("ascii").splitlines()
        assert len(TEXTS) + right + 3 == len([json.loads(line) for line in ledger])
        (hostile.path / name / "leaderboard.md").read_bytes().decode("utf-8")
        suite = ElementTree.parse(hostile.path / f"{name}.xml").getroot()
        assert len(TEXTS) == len(list(suite.iter("failure")))
        report = json.loads((hostile.path / f"{name}.json").read_bytes())
        assert len(TEXTS) == report["summary"]["failed"]
    assert 1 == len(digests)


@pytest.mark.again
def test_a_terminal_of_plain_ascii_is_enough(hostile: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii:strict")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("LC_ALL", "C")
    result = hostile.run()
    assert 1 == result.ret
    check_terminal(result)
    assert hostile.board()["complete"]


NOISY = """
import json, sys
from pathlib import Path

TEXTS = json.loads(Path("texts.json").read_text())

class Model:
    name = "\\x1b[31mnoisy\\nv1\\ud800"

    def generate(self, prompts):
        text = TEXTS[prompts[0]]
        print(text[:1000])
        print(text[:1000], file=sys.stderr)
        raise ValueError(text)
"""


def test_hostile_errors_prints_and_names_break_nothing(hostile: Project) -> None:
    hostile.write("model.py", NOISY)
    result = hostile.run("--lm-batch-size=1", "--junitxml=junit.xml")
    assert 3 == result.ret
    assert "INTERNALERROR" not in result.stdout.str()
    board = hostile.board()
    assert board["counts"]["errors"] == board["counts"]["collected"] > len(TEXTS)
    assert board["adapter"].isprintable()
    ElementTree.parse(hostile.path / "junit.xml")


def test_hostile_ids_prompts_and_targets_are_shown_harmlessly(project: Project) -> None:
    texts = ["\x1b[2Jid", "a\x00b", "\u202eevil", "x\r\ny", "\x9b31m"]
    project.task("tasks/t.jsonl", *[project.record(text, text, target=f"{text}!") for text in texts])
    result = project.run("-v", "--lm-include-per-example")
    assert 1 == result.ret
    check_terminal(result)
    assert {f"t:{text}" for text in texts} == project.examples().keys()


@pytest.mark.parametrize("processes", BOTH)
def test_a_plain_test_that_fails_with_a_lone_surrogate_fails_the_run(project: Project, processes: str) -> None:
    project.copy("hostile_output", "test_plain.py")
    result = project.run_pytest(processes)
    assert 1 == result.ret
    result.assert_outcomes(failed=4, errors=2, passed=2, skipped=1, xfailed=1)


UNSENDABLE = """
def test_unsendable(record_property):
    record_property("x", object())
    assert False

def test_fine(): pass
"""


def test_a_report_that_is_lost_on_its_way_is_not_green(project: Project) -> None:
    project.write("test_plain.py", UNSENDABLE)
    assert 0 != project.run_pytest("-n2").ret


def test_a_surrogate_in_a_warning_of_a_worker_is_not_green(project: Project) -> None:
    body = "import warnings\n\ndef test_warns():\n    warnings.warn('\\ud800')\n    assert False\n"
    project.write("test_plain.py", body)
    assert 0 != project.run_pytest("-n2", "-W", "default").ret


def test_a_board_in_a_folder_of_odd_characters_is_written(project: Project) -> None:
    project.task("tasks/ünï cödé.jsonl", project.record("é", "é"))
    assert 0 == project.run("--lm-report-dir=re ports/ü").ret
    assert "ünï cödé" == project.board("re ports/ü")["tasks"][0]["task"]
