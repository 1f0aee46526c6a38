"""Task folders beside the installed harness: names and members from several folders, and files that are not read."""

from __future__ import annotations

import pytest

from tests.conftest import Project

KEYS = """
dataset_path: json
dataset_kwargs: {data_files: {test: rows/docs.jsonl, train: rows/docs.jsonl}}
test_split: test
doc_to_text: "say: {{said}}"
doc_to_target: said
"""


@pytest.fixture
def folders(project: Project) -> Project:
    """Return a project with two folders of tasks, and a package lm_eval whose code nothing may run."""
    project.write("pytest.ini", "[pytest]\npythonpath = site\n")
    project.write("site/lm_eval/__init__.py", "raise SystemExit('imported')\n")
    project.write("rows/docs.jsonl", '{"said": "a"}\n{"said": "b"}\n')
    for folder, names in (("mine", "one both"), ("yours", "two both"), ("site/lm_eval/tasks/words", "builtin both")):
        for name in names.split():
            project.write(f"{folder}/{name}.yaml", f"task: {name}\ndescription: '{folder} '\ntag: all\n{KEYS}")
    return project


def described(project: Project, wanted: str) -> dict[str, str]:
    """Return the folder that describes each task of the run."""
    project.write("tasks/all.yaml", f"harness: {{{wanted}}}\n")
    result = project.run("--lm-include-per-example")
    assert 0 == result.ret, result.stdout.str()
    prompts = {row["task"]: row["per_example"][0]["prompt"] for row in project.board()["tasks"]}
    return {name: prompt.rpartition("say: ")[0].split(" ")[0] for name, prompt in prompts.items()}


def refused(project: Project, wanted: str) -> str:
    project.write("tasks/all.yaml", f"harness: {{{wanted}}}\n")
    result = project.run()
    assert 2 == result.ret
    return result.stdout.str() + result.stderr.str()


INSTALLED = "site/lm_eval/tasks/words"


def test_names_come_from_the_first_folder_that_has_them_and_from_the_installed_harness_last(folders: Project) -> None:
    both = "from: [../mine, ../yours], tasks: [one, two, both, builtin]"
    assert {"one": "mine", "two": "yours", "both": "mine", "builtin": INSTALLED} == described(folders, both)
    assert {"both": "yours"} == described(folders, "from: [../yours, ../mine], tasks: [both]")
    assert {"both": INSTALLED} == described(folders, "tasks: [both]")
    # A pattern leaves the installed tasks aside if another folder has a match; a tag is that of one folder.
    assert {"one", "two", "both"} == described(folders, "from: [../mine, ../yours], tasks: ['*o*']").keys()
    assert {"builtin"} == described(folders, "from: [../mine, ../yours], tasks: ['b*n']").keys()
    assert {"one", "both"} == described(folders, "from: ../mine, tasks: [all]").keys()


def test_a_group_has_members_of_other_folders_and_of_the_installed_harness(folders: Project) -> None:
    folders.write("mine/g.yaml", "group: g\ntask: [one, two, {task: builtin, num_fewshot: 0}]\n")
    wanted = {"one": "mine", "two": "yours", "builtin": INSTALLED}
    assert wanted == described(folders, "from: [../mine, ../yours], tasks: [g]")


def test_a_file_of_the_harness_may_have_built_in_members(folders: Project) -> None:
    folders.write("mine/g.yaml", "group: g\ntask: [one, builtin]\n")
    result = folders.run("mine/g.yaml")
    result.assert_outcomes(passed=4)


def test_wrong_folders_are_refused(folders: Project) -> None:
    assert "harness.from: no: no such folder" in refused(folders, "from: [../mine, no], tasks: [one]")
    assert "harness.from: expected a folder or several, got []" in refused(folders, "from: [], tasks: [one]")
    text = refused(folders, "from: [../mine, ../yours], tasks: [tow]")
    assert "/mine or " in text
    assert "is called 'tow'; did you mean 'two'?" in text


def test_members_that_are_defined_in_place_may_include_a_file(folders: Project) -> None:
    folders.write("mine/base_yaml", f"description: 'included '\nnum_fewshot: 0\n{KEYS}")
    group = """
group: g
include: group_yaml
task:
  - {task: first, include: base_yaml}
  - {task: second, include: base_yaml, description: 'own '}
  - {group: inner, include: base_yaml, task: [{task: third}]}
"""
    folders.write("mine/group_yaml", "fewshot_delimiter: '|'\n")
    folders.write("mine/g.yaml", group)
    wanted = {"g::first": "included", "g::second": "own", "g::inner::third": "included"}
    assert wanted == described(folders, "from: ../mine, tasks: [g]")


def test_a_name_in_a_file_whose_suffix_is_not_read_is_told(folders: Project) -> None:
    folders.write("mine/other.yml", f"task: other\n{KEYS}")
    text = refused(folders, "from: ../mine, tasks: [other]")
    assert "mine/other.yml is not read: task files end in .yaml; rename it to use 'other'" in text


def test_a_task_is_listed_again_with_other_keys_under_another_name(folders: Project) -> None:
    twice = "from: ../mine, tasks: [one, {task: one, num_fewshot: 1}]"
    assert "name one of them with the key task_alias of harness.tasks" in refused(folders, twice)
    both = twice.replace("num_fewshot: 1", "num_fewshot: 1, task_alias: one_1")
    assert {"one": "mine", "one_1": "mine"} == described(folders, both)
    prompts = {row["task"]: row["per_example"][0]["prompt"].count("say:") for row in folders.board()["tasks"]}
    assert {"one": 1, "one_1": 2} == prompts
    many = "from: ../mine, tasks: [{task: all, task_alias: x}]"
    assert "harness.tasks.task_alias: expected a name for one task, got 'x' for 'all'" in refused(folders, many)
