"""The ways to give an eval function its rows and its name."""

from __future__ import annotations

from tests.conftest import Project

FUNCTIONS = """
from pytest_lmeval import BlockingLm, Lm, Row, eval_task

def rows():
    yield from ({"id": f"g{number}"} for number in range(3))

@eval_task(data="rows.yaml")
async def test_yaml(row: Row, lm: Lm):
    row["deep"]["x"].append(1)
    lm.score("fresh", len(row["deep"]["x"]) == 2)

@eval_task(data="rows.json", repeats=2)
def test_json(row: Row, lm: BlockingLm) -> None:
    lm.score("is one", row["a"] == 1)
@eval_task(data=rows())
def test_generator(row, lm):
    lm.score("ok", 1)

@eval_task(data=rows)
def test_function(row):
    assert row

class TestBase:
    @eval_task(data=iter([{"id": "z"}]))
    def test_method(self, row):
        assert row
@eval_task()
def test_alone():
    assert "ok"
"""


def scored(project: Project, *options: str) -> tuple[int, str]:
    result = project.run("tests", "--lm-adapter=none", "--lm-include-per-example", *options)
    return int(result.ret), result.stdout.str()


def test_rows_are_anything_to_iterate_over_and_names_default_to_those_of_functions(project: Project) -> None:
    project.write("tests/test_rows.py", FUNCTIONS)
    project.write("tests/rows.yaml", "- id: a\n  deep: {x: [1]}\n- id: b\n  deep: {x: [2]}\n")
    project.write("tests/rows.json", '[\n{"a": 1},\n{"a": 1}\n]\n')
    code, output = scored(project)
    assert (0, True) == (code, project.board()["complete"]), output
    assert {"alone": 1, "function": 3, "generator": 3, "json": 2, "method": 1, "yaml": 2} == {
        row["task"]: row["correct"] for row in project.board()["tasks"]
    }
    validated = project.lmeval("validate", "tests")
    assert 0 == validated.ret, validated.stderr.str()
    assert "data of TestBase.test_method: made by code" in validated.stdout.str() + validated.stderr.str()


BAD = {
    "rows.json": ('[{"a": 1},\n{"a" 2}]', "rows.json:2: Expecting ':' delimiter at column 6"),
    "no.json": ('[{"a": NaN}]', "no.json: NaN"),
    "one.json": ('{"a": 1}', "one.json: expected a list of rows, got {'a': 1}"),
    "mixed.json": ('[{"a": 1}, 5]', "mixed.json: row 2: expected an object, got 5"),
    "rows.yaml": ("- id: a\n- b: [1\n", "rows.yaml:3: "),
    "twice.yaml": ("- id: a\n  id: b\n", "twice.yaml:2: "),
    "empty.yaml": ("", "empty.yaml: expected a list of rows, got None"),
}
TYPED = {
    "data={'a': 1}": "data: expected a path, rows or a function that returns rows, got {'a': 1}",
    "data=5": "data: expected a path, rows or a function that returns rows, got 5",
    "data=(each for each in 'ab')": "data: row 1: expected a mapping, got 'a'",
    "data=iter([])": "data: no rows",
}


def test_rows_that_cannot_be_read_are_a_bad_file_that_says_where(project: Project) -> None:
    faults = {f"data={name!r}": said for name, (_, said) in BAD.items()} | TYPED
    for name, (content, _) in BAD.items():
        project.write(f"tests/{name}", content)
    for number, given in enumerate(faults):
        text = f"@eval_task('x{number}', {given})\ndef test_x(row):\n    assert row\n"
        project.write(f"tests/test_{number}.py", f"from pytest_lmeval import eval_task\n\n{text}")
    project.write(
        "tests/test_bare.py", "from pytest_lmeval import eval_task\n\n@eval_task\ndef test_x():\n    assert 1\n"
    )
    code, output = scored(project)
    assert 2 == code
    assert [] == [said for said in faults.values() if said not in output], output
    assert "eval_task: write @eval_task(), with parentheses" in output


def test_a_row_with_a_lone_surrogate_is_a_row_like_any_other(project: Project) -> None:
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import eval_task\n"
        "@eval_task('x', data=[{'id': 'a', 'q': 'caf\\udce9'}, {'id': 'b', 'q': 'ok'}])\n"
        "def test_x(row, lm):\n    lm.output(row['q'])\n    lm.score('s', 1)\n",
    )
    project.run("tests", "--lm-adapter=none").assert_outcomes(passed=2)
    assert {"x:a", "x:b"} == project.ledger().keys()
