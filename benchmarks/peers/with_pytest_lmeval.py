"""pytest-lmeval: records, or with a third argument functions, or a parametrized test beside them ("plain")."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from model import AT_ONCE, EXAMPLES, PORT, PROMPTS, URL

KIND = sys.argv[3]
OURS = {"lmeval", "metadata", "pytest_jsonreport", "xdist", "xdist.looponfail"}
INSTANT = """
class Yes:
    name = "yes"

    def generate(self, prompts):
        return ["yes" for _ in prompts]
"""
FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("words", data=[{{"id": f"e{{number}}", "prompt": f"say {{number}}"}} for number in range({count})])
async def test_words(row, lm):
    assert (await lm.ask(row["prompt"])).text == "yes"
"""
PLAIN = """
import sys
sys.argv[1:] = {arguments!r}
import pytest
from model import PROMPTS, answer_now

@pytest.mark.parametrize("prompt", PROMPTS)
def test_word(prompt):
    assert answer_now(prompt) == "yes"
"""

Path("instant.py").write_text(INSTANT, encoding="utf-8")
options = [f"-pno:{entry.name}" for entry in entry_points(group="pytest11") if entry.name not in OURS]
if KIND == "plain":
    file = Path("test_words.py")
    file.write_text(PLAIN.format(arguments=sys.argv[1:3]), encoding="utf-8")
    options += ["-pno:lmeval"]
elif KIND == "functions":
    file = Path("test_words.py")
    file.write_text(FUNCTION.format(count=EXAMPLES), encoding="utf-8")
else:
    file = Path("words.jsonl")
    lines = [
        {"id": f"e{number}", "prompt": prompt, "targets": ["yes"], "metric": "exact_match"}
        for number, prompt in enumerate(PROMPTS)
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
if KIND != "plain" and PORT:
    options += ["--lm-adapter=openai:m", f"--lm-adapter-arg=base_url={URL}", f"--lm-concurrency={AT_ONCE}"]
elif KIND != "plain":
    options += ["--lm-adapter=instant:Yes"]
folders = {"PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}."}
command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", str(file), *options]
subprocess.run(command, env={**os.environ, **folders}, check=True)
