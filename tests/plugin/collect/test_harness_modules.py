"""Modules of harness tasks import files beside them, and folders of tasks, also those of the installed harness."""

from __future__ import annotations

import pytest

from tests.conftest import Project
from tests.yaml_tasks import harness_yaml

KEYS = """
doc_to_text: "say: {{said}}"
doc_to_target: said
process_docs: !function MODULE.process_docs
"""
BESIDE = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
from helper_own import added

def process_docs(docs):
    return docs.map(added)
"""
HELPER = """
from datasets import Dataset

def added(doc):
    return {"said": doc["said"] + " ADDED"}
"""
PLAIN = "def process_docs(docs):\n    return docs.map(lambda doc: {'said': doc['said'] + ' ADDED'})\n"


def harness_task(project: Project, name: str, folder: str, code: str = "", module: str = "utils") -> None:
    """Write a task in a folder of its own, with its functions."""
    project.write(f"{folder}/{name}.yaml", harness_yaml(name, KEYS.replace("MODULE", module)))
    project.write(f"{folder}/docs.jsonl", '{"said": "a"}\n')
    if code:
        project.write(f"{folder}/utils.py", code)
    project.write(f"tasks/{name}.yaml", f"harness: {{from: ../{folder.partition('/')[0]}, tasks: [{name}]}}\n")


def prompts_of(project: Project) -> dict[str, str]:
    assert 0 == project.run("--lm-include-per-example").ret
    return {row["task"]: row["per_example"][0]["prompt"] for row in project.board()["tasks"]}


def refused(project: Project) -> str:
    result = project.run()
    assert (2, []) == (result.ret, project.calls())
    return result.stdout.str() + result.stderr.str()


def test_a_module_imports_files_beside_it_whatever_others_are_called(project: Project) -> None:
    for name in ("one", "two"):
        harness_task(project, name, f"given/{name}", BESIDE)
        project.write(f"given/{name}/helper_own.py", HELPER.replace("ADDED", name))
    # Without a change of sys.path: a package, and a module of the folder above.
    code = "import json, helper_package.sub\nimport above as top\n" + BESIDE.replace("from helper_own import added", "")
    harness_task(
        project, "three", "given/three", code.replace("map(added)", "map(helper_package.sub.added).map(top.added)")
    )
    project.write("given/three/helper_package/sub.py", HELPER.replace("ADDED", "three"))
    project.write("given/three/json.py", "raise SystemExit('not the library')")
    project.write("given/above.py", HELPER.replace("ADDED", "above"))
    assert {"one": "say: a one", "two": "say: a two", "three": "say: a three above"} == prompts_of(project)


def test_a_missing_file_beside_a_module_is_no_package_to_install(project: Project) -> None:
    harness_task(project, "t", "given", BESIDE)
    text = refused(project)
    assert "utils.py beside given/: ModuleNotFoundError: No module named 'helper_own'" in text
    assert "pip install" not in text


def test_a_function_may_be_in_the_folder_above(project: Project) -> None:
    harness_task(project, "t", "given/inner", module="../utils")
    project.write("given/utils.py", PLAIN)
    assert {"t": "say: a ADDED"} == prompts_of(project)


def test_a_function_in_an_untrusted_folder_above_is_not_called(project: Project) -> None:
    harness_task(project, "t", "given/inner", module="../../above.utils")
    project.write("above/utils.py", PLAIN)
    project.write("tasks/t.yaml", "harness: {from: ../given/inner, tasks: [t]}\n")
    project.write("pytest.ini", "[pytest]\nlm_trusted_paths = tasks given\n")
    assert "not_trusted !function: t: above.utils.process_docs: Python outside of the trusted paths" in refused(project)
    project.write("pytest.ini", "[pytest]\nlm_trusted_paths = tasks given above\n")
    assert {"t": "say: a ADDED"} == prompts_of(project)


@pytest.fixture
def installed(project: Project) -> Project:
    """Return a project beside a package lm_eval, whose code nothing may run."""
    project.write("pytest.ini", "[pytest]\npythonpath = site\n")
    project.write("site/lm_eval/__init__.py", "raise SystemExit('imported')\n")
    project.write("site/lm_eval/tasks/__init__.py", "raise SystemExit('imported')\n")
    return project


def test_a_module_imports_tasks_of_the_installed_harness(installed: Project) -> None:
    of_harness = PLAIN.replace("ADDED", "theirs")
    installed.write("site/lm_eval/tasks/words/__init__.py", "")
    installed.write("site/lm_eval/tasks/words/utils.py", "from lm_eval.tasks.words.parts import *\n")
    installed.write("site/lm_eval/tasks/words/parts.py", of_harness)
    harness_task(installed, "from", "given/from", "from lm_eval.tasks.words.utils import process_docs\n")
    code = "from lm_eval.tasks.words import utils\nimport lm_eval.tasks.words.parts as p\n"
    harness_task(installed, "folder", "given/folder", code + "process_docs = utils.process_docs\n")
    # A module of the same name extends that of the harness.
    code = "from lm_eval.tasks.words import utils\ndef process_docs(docs):\n"
    harness_task(installed, "words", "given/words", code + "    return utils.process_docs(docs).select([0])\n")
    assert dict.fromkeys(("from", "folder", "words"), "say: a theirs") == prompts_of(installed)


@pytest.mark.parametrize("module", ["words.nothing", "nothing"])
def test_a_missing_import_of_the_harness_is_an_error_at_collection(installed: Project, module: str) -> None:
    installed.write("site/lm_eval/tasks/words/utils.py", PLAIN)
    harness_task(installed, "t", "given", PLAIN, "utils")
    installed.write(
        "given/scores.py", f"from lm_eval.tasks.{module} import total\n\ndef value(doc, results):\n    return {{}}\n"
    )
    installed.write(
        "given/t.yaml", (installed.path / "given/t.yaml").read_text() + "process_results: !function scores.value\n"
    )
    says = f"scores.py beside given/: ImportError: no total of lm_eval.tasks.{module} in the folders of tasks"
    text = refused(installed)
    assert says in text
    assert "lm-eval is not installed" not in text
    result = installed.lmeval("validate", "given")
    assert (
        f"imports a missing module: no total of lm_eval.tasks.{module} in the folders of tasks" in result.stdout.str()
    )
