"""Members that a group of the harness defines in place are tasks of their own."""

from __future__ import annotations

from tests.conftest import Project

KEYS = """
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
doc_to_text: "say: {{said}}"
doc_to_target: said
metric_list: [{metric: exact_match}]
"""
GROUP = f"""
group: g
description: 'GROUP '
{KEYS}
task:
  - {{task: one, description: 'OWN '}}
  - {{task: two}}
  - {{task: there, description: 'MEMBER '}}
  - group: sub
    description: 'SUB '
    task: [{{task: three}}, {{task: four, description: 'FOUR '}}]
"""


def test_a_members_keys_go_before_the_groups_and_the_run_is_complete(project: Project) -> None:
    project.write("given/g.yaml", GROUP)
    project.write("given/there.yaml", f"task: there\ndescription: 'FILE '\n{KEYS}")
    project.write("given/docs.jsonl", '{"said": "a"}\n')
    project.write("tasks/all.yaml", "harness: {from: ../given, tasks: [g]}\n")

    assert 0 == project.run("--lm-include-per-example").ret
    prompts = {row["task"]: row["per_example"][0]["prompt"] for row in project.board()["tasks"]}
    # As the harness asks: a group that is defined in place yields to the group around it.
    wanted = {
        "g::one": "OWN ",
        "g::two": "GROUP ",
        "there": "MEMBER ",
        "g::sub::three": "GROUP ",
        "g::sub::four": "FOUR ",
    }
    assert {name: f"{description}say: a" for name, description in wanted.items()} == prompts
    assert {"exact_match": 1.0} == project.board()["tasks"][0]["metrics"]
    (project.path / "calls.txt").unlink()
    assert 0 == project.run("--lm-resume").ret
    assert [] == project.calls()
