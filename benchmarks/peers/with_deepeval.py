"""deepeval: test cases with answers that were asked for before, ExactMatchMetric."""

import asyncio
import os

from model import PROMPTS, answers, check

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"

from deepeval import evaluate
from deepeval.evaluate import DisplayConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

given = asyncio.run(answers())
cases = [
    LLMTestCase(input=prompt, actual_output=text, expected_output="yes")
    for prompt, text in zip(PROMPTS, given, strict=True)
]
display = DisplayConfig(show_indicator=False, print_results=False)
results = evaluate(cases, [ExactMatchMetric()], display_config=display).test_results
check(len(results) == len(PROMPTS) and all(result.success for result in results))
