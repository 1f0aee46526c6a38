"""JUnit XML and the JSON report tell what the board tells, and nothing that is ours alone."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import BOTH, Project

NAMES = {"lm_task", "lm_example", "lm_metric", "lm_score", "lm_threshold", "lm_status"}


def junit_properties(project: Project) -> dict[str, dict[str, str]]:
    """Return the properties of every case by its name."""
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    return {
        case.attrib["name"]: {entry.attrib["name"]: entry.attrib["value"] for entry in case.iter("property")}
        for case in cases
    }


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_junit_xml_has_a_case_an_example_with_its_score(small: Project, family: str) -> None:
    small.run("--junitxml=junit.xml", "-o", f"junit_family={family}")
    root = ElementTree.parse(small.path / "junit.xml").getroot()
    suite = next(root.iter("testsuite"))
    assert ("5", "1", "0") == tuple(suite.attrib[key] for key in ("tests", "failures", "errors"))
    failure = next(root.iter("failure"))
    assert "output: 5" in str(failure.text)
    properties = junit_properties(small)
    assert {"arith_1", "arith_2", "arith_3", "blue", "red"} == properties.keys()
    assert all(NAMES == entry.keys() for entry in properties.values())
    expected = ["arithmetic", "arith_2", "exact_match", "0.0", "1.0", "failed"]
    names = ["lm_task", "lm_example", "lm_metric", "lm_score", "lm_threshold", "lm_status"]
    assert expected == [properties["arith_2"][name] for name in names]


def test_junit_xml_names_the_status_below_and_error(small: Project) -> None:
    small.run("--junitxml=junit.xml", "--lm-gate=none")
    assert "below" == junit_properties(small)["arith_2"]["lm_status"]
    small.write("model.py", "class Model:\n    def generate(self, prompts): raise TimeoutError\n")
    small.run("--junitxml=junit.xml", "tasks/words.jsonl")
    blue = junit_properties(small)["blue"]
    assert "timeout" == blue["lm_status"]
    assert blue.get("lm_score", "") in ("", "None")


def json_report(project: Project) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((project.path / ".report.json").read_text("utf-8"))
    return report


@pytest.mark.parametrize("processes", BOTH)
def test_the_json_report_carries_properties_and_board(small: Project, processes: str) -> None:
    result = small.run("--json-report", processes)
    report = json_report(small)
    assert int(result.ret) == report["exitcode"] == 1
    assert {"passed": 4, "failed": 1} == {key: report["summary"][key] for key in ("passed", "failed")}
    assert small.board() == report["lmeval"]
    for test in report["tests"]:
        pairs = [next(iter(entry.items())) for entry in test["user_properties"]]
        assert NAMES == {name for name, _ in pairs}
        assert {str, float} >= {type(value) for _, value in pairs}
    assert "lmeval" not in {name for test in report["tests"] for entry in test["user_properties"] for name in entry}


CHECKING = """
def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        with open("types.txt", "a") as file:
            file.write(f"{report.when} {name} {type(value).__name__}\\n")
"""


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_other_plugins_see_builtin_values_and_never_the_record(small: Project, processes: str) -> None:
    small.write("conftest.py", CHECKING)
    small.run(processes)
    lines = {tuple(line.split()) for line in (small.path / "types.txt").read_text().splitlines()}
    controller = {(name, kind) for _, name, kind in lines}
    allowed = {(name, kind) for name in NAMES for kind in ("str", "float")}
    if processes == "-n0":
        assert controller <= allowed
    assert {("call", name) for name in NAMES} <= {(when, name) for when, name, _ in lines}


OWN_PROPERTY = """
import pytest

@pytest.fixture(autouse=True)
def own(record_property):
    record_property("owner", "me")
"""


def test_properties_of_the_users_own_stay(small: Project) -> None:
    small.write("conftest.py", OWN_PROPERTY)
    small.run("--junitxml=junit.xml", "-o", "junit_family=xunit1")
    properties = junit_properties(small)
    assert all("me" == entry["owner"] for entry in properties.values())
    assert all(NAMES | {"owner"} == entry.keys() for entry in properties.values())


def test_examples_stand_in_the_list_of_the_slowest(small: Project) -> None:
    small.run("--durations=0", "-vv").stdout.fnmatch_lines(["*s call*tasks/words.jsonl::red*"])


def test_reports_of_plain_tests_stay_as_they_are(small: Project) -> None:
    small.write("test_plain.py", "def test_plain(record_property):\n    record_property('a', 1)\n")
    small.run("--junitxml=junit.xml", "-n2", "-o", "junit_family=xunit1")
    assert {"a": "1"} == junit_properties(small)["test_plain"]
