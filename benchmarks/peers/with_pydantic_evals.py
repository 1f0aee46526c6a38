"""pydantic-evals: a dataset of cases, EqualsExpected."""

from model import AT_ONCE, PROMPTS, answer, check
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

cases = [Case(name=prompt, inputs=prompt, expected_output="yes") for prompt in PROMPTS]
dataset = Dataset(name="words", cases=cases, evaluators=[EqualsExpected()])
report = dataset.evaluate_sync(answer, progress=False, max_concurrency=AT_ONCE)
check(report.averages().assertions == 1.0 and not report.failures)
