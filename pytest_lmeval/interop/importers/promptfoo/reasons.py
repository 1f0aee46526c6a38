"""Messages about parts of a config that have no counterpart, or a different meaning, in this package."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_lmeval.pages import page


def _each(reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Return the reason for each word in the keys of ``reasons``."""
    return {name: why for names, why in reasons.items() for name in names.split()}


TRANSFORM = "a transform is a program, which is not run; post_process has rules such as strip_whitespace and lower"
_JUDGE = "the judge here has its own prompt, and gives 0 or 1 unless extras.levels defines more"

WITHOUT = _each(
    {
        "javascript python ruby webhook": "code is not run; write it as a metric (registry.add_metric) or a scorer "
        "`python` of a YAML task",
        "similar similar:cosine similar:dot similar:euclidean": "similarity of embeddings is not a metric here; use "
        "rouge_l, f1 or rubric, or an eval function",
        "answer-relevance context-recall context-relevance context-faithfulness": f"see {page('rag.md')}: an eval "
        "function with lm.grade over question, context and answer",
        "conversation-relevance skill-used tool-call-f1 trace-error-spans trace-span-count trace-span-duration "
        "trajectory:goal-success trajectory:step-count trajectory:tool-used trajectory:tool-sequence "
        "trajectory:tool-args-match": "write an eval function; it has the steps of the application in lm.trace and "
        "lm.calls",
        "is-sql contains-sql is-xml contains-xml is-html contains-html": "no metric here reads this format; use regex "
        "or your own metric",
        "select-best max-score": "to compare prompts over all rows: lmeval rank --by config",
        "moderation guardrails classifier pi search-rubric": "calls another service; use the metric rubric, or call it "
        "in an eval function",
        "is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call": "the metric tool_calls of a "
        "record with extras.tools scores which calls are made",
        "perplexity perplexity-score": f"no metric here; the ledger has the log-probabilities "
        f"({page('log-likelihood.md')})",
        "assert-set": "write its assertions into the test; an example has one threshold, for all its checks",
        "cost": "a limit of the run: --lm-max TASK.cost_per_example=DOLLARS, the mean of its examples",
        "latency": "a limit of the run: --lm-max TASK.p95_ms=MS",
        "levenshtein": "no metric here counts edits; use exact_match, f1 or rouge_l with a threshold",
        "gleu meteor": "no such metric here; use bleu_4, rouge_l or f1 with a threshold",
        "finish-reason": "no metric reads the finish reason, which is in the ledger",
        "is-refusal word-count": "use the metric rubric, or regex, such as ^\\s*(\\S+\\s+){0,99}\\S*$ for 100 words",
        "human": f"extras.human_label compares a judge with labels of people ({page('grade-with-a-judge.md')})",
    }
)
"""The reason why an assertion has no counterpart, and an alternative, by the assertion's kind without ``not-``."""

OF_A_KEY = _each(
    {
        "nunjucksFilters": "filters of your own are programs; write what they return into the rows",
        "env": "set variables in the environment of the run",
        "extensions": "hooks are programs; pytest has fixtures and conftest.py",
        "derivedMetrics": "a metric over all results: the aggregations of a YAML task",
        "outputPath": "--lm-report-dir chooses the folder of the board, the ledger and the page",
        "sharing": "report.html is one file to share",
        "redteam": "red teaming has no counterpart",
        "maxConcurrency": "an option of the run: --lm-concurrency=N",
        "repeat": "an option of the run: --lm-repeats=N",
        "cache": "an option of the run: --lm-cache=DIR",
        "scenarios": "write each combination as a test, or lists of values into vars",
        "assertionTemplates": "$ref is not followed; write the assertion out where it is used, or use a YAML anchor",
        "metadata": "tests have no metadata here; a variable becomes a column of the rows",
        "provider providers": "choose tests with -k, an adapter with --lm-adapter, and a judge with --lm-judge",
        "prompts": "a test of some prompts: a data file has all rows for all prompts",
        "rubricPrompt": "the run chooses the judge (--lm-judge SPEC), which has its own prompt",
        "runSerially": "examples are independent here; their order does not matter",
    }
)
"""The reason for skipping one key of a config, a test or its options, by that key."""

ENDS = _each(
    {
        "assertScoringFunction": "a program computes the score, and is not run",
        "disableDefaultAsserts": "write the assertions of defaultTest into the tests that need them",
        "disableVarExpansion": "a list of values becomes one row for each; write the list as a text",
        "prefix suffix": "write the text into the prompt, or into a variable of it",
        "providerOutput": "an existing answer: record it, and score it with --lm-adapter=replay:FILE",
        "storeOutputAs": "an answer used in another test: use `turns` of a record, or an eval function",
        "transformVars": "a program that changes variables: write what it returns into the rows",
        "transform postprocess": TRANSFORM,
    }
)
"""The reason for skipping a whole test, by a key of the test or its options."""

DIFFERS = _each(
    {
        "equals": "white space at both ends is ignored here",
        "starts-with": "white space before the answer is ignored here",
        "regex": r"Python searches, for at most five seconds: \d, \w, \b match all alphabets, $ before a last line end",
        "contains-json": "an answer that is JSON as a whole passes, such as 42; the longest of several values decides",
        "rouge-n": "rouge_1 of this package differs a little",
        "bleu": "bleu_4 of this package differs a little",
        "g-eval": f"{_JUDGE}; each criterion must pass, not their mean",
        "llm-rubric model-graded-closedqa factuality model-graded-factuality": _JUDGE,
    }
)
"""The difference in meaning between an assertion and its check, by the assertion's kind."""
