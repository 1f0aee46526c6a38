"""pytest-evals: a test for each prompt, and one that looks at all their results. Its tests run one after the other."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TEST = """
import sys
sys.argv[1:] = {arguments!r}
import pytest
from model import PROMPTS, answer_now

@pytest.mark.eval(name="words")
@pytest.mark.parametrize("prompt", PROMPTS)
def test_word(prompt, eval_bag):
    eval_bag.right = answer_now(prompt) == "yes"
    assert eval_bag.right

@pytest.mark.eval_analysis(name="words")
def test_all(eval_results):
    assert all(each.result.right for each in eval_results) and len(eval_results) == len(PROMPTS)
"""

Path("test_words.py").write_text(TEST.format(arguments=sys.argv[1:]), encoding="utf-8")
command = [sys.executable, "-m", "pytest", "-q", "test_words.py"]
environment = {**os.environ, "PYTHONPATH": str(HERE)}
for options in (["--run-eval"], ["--run-eval-analysis"]):
    subprocess.run([*command, *options], env=environment, check=True)
