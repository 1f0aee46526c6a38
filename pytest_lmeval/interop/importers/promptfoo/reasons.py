"""Why something of a config is left out, and what there is in its place; and what differs of what is not."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_lmeval.pages import page

TRANSFORM = "a transform is a program, which is not run; post_process has rules such as strip_whitespace and lower"
_CODE = "code is not run; write it as a metric (registry.add_metric) or a scorer `python` of a YAML task"
_EMBEDDING = "similarity of embeddings is no metric here; rouge_l, f1 or the metric rubric, or an eval function"
_RAG = f"see {page('rag.md')}: an eval function with lm.grade over question, context and answer"
_PERPLEXITY = f"of the answer's tokens; log-probabilities are in the ledger ({page('log-likelihood.md')})"
_TRACE = "of an application: an eval function, whose steps are in lm.trace and lm.calls"
_FORMAT = "no metric here reads this format; a metric of your own, or regex"
_CHOICE = "prompts are compared over all rows: lmeval rank --by config"
_MODEL = "asks a service of its own; an eval function that asks it, or the metric rubric"
_CALLS = "the metric tool_calls of a record with extras.tools scores which calls are made"
_JUDGED = "the judge is the run's, --lm-judge SPEC, and has a prompt of its own"

_KINDS_BY_REASON = {
    _CODE: "javascript python ruby webhook",
    _EMBEDDING: "similar similar:cosine similar:dot similar:euclidean",
    _RAG: "answer-relevance context-recall context-relevance context-faithfulness",
    _TRACE: "conversation-relevance skill-used tool-call-f1 trace-error-spans trace-span-count trace-span-duration "
    "trajectory:goal-success trajectory:step-count trajectory:tool-used trajectory:tool-sequence "
    "trajectory:tool-args-match",
    _FORMAT: "is-sql contains-sql is-xml contains-xml is-html contains-html",
    _CHOICE: "select-best max-score",
    _MODEL: "moderation guardrails classifier pi search-rubric",
    _CALLS: "is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call",
    _PERPLEXITY: "perplexity perplexity-score",
}
WITHOUT: Mapping[str, str] = MappingProxyType(
    {
        **{kind: why for why, kinds in _KINDS_BY_REASON.items() for kind in kinds.split()},
        "cost": "a limit of the run: --lm-max TASK.cost_per_example=DOLLARS, the mean of its examples",
        "latency": "a limit of the run: --lm-max TASK.p95_ms=MS",
        "levenshtein": "no metric here counts edits; exact_match, f1 or rouge_l with a threshold",
        "gleu": "bleu_4 with a threshold",
        "meteor": "rouge_l or f1 with a threshold",
        "finish-reason": "the ledger has it; no metric reads it",
        "is-refusal": "the metric rubric, or regex",
        "word-count": "regex, such as ^\\s*(\\S+\\s+){0,99}\\S*$",
        "human": f"extras.human_label compares a judge with labels of people ({page('grade-with-a-judge.md')})",
    }
)
"""By the kind of an assertion, ``not-`` aside: why it is left out, and what to write in its place."""

OF_A_KEY: Mapping[str, str] = MappingProxyType(
    {
        "nunjucksFilters": "filters of your own are programs; write what they return into the rows",
        "env": "set variables where the run is started",
        "extensions": "hooks are programs; pytest has fixtures and conftest.py",
        "derivedMetrics": "a metric over all results: the aggregations of a YAML task",
        "outputPath": "--lm-report-dir says where the board, the ledger and the page are",
        "sharing": "report.html is one file to share",
        "redteam": "red teaming has no counterpart",
        "maxConcurrency": "an option of the run: --lm-concurrency=N",
        "repeat": "an option of the run: --lm-repeats=N",
        "cache": "an option of the run: --lm-cache=DIR",
        "scenarios": "write each combination as a test, or lists of values into vars",
        "assertionTemplates": "$ref is not followed; write the assertion out where it is used, or use a YAML anchor",
        "provider": "choose tests with -k, an adapter with --lm-adapter, and the judge with --lm-judge",
        "providers": "a test of some providers: choose tests with -k, and adapters with --lm-adapter",
        "prompts": "a test of some prompts: a data file has all rows for all prompts",
        "rubricPrompt": _JUDGED,
        "runSerially": "examples share nothing here, and their order does not matter",
    }
)
"""By the key of a config, of a test or of its options that is left out alone."""

ENDS: Mapping[str, str] = MappingProxyType(
    {
        "assertScoringFunction": "the score is that of a program, which is not run",
        "providerOutput": "an answer that is there already: record it, and score it with --lm-adapter=replay:FILE",
        "storeOutputAs": "an answer that goes into another test: `turns` of a record, or an eval function",
        "transformVars": "a program that changes variables: write what it returns into the rows",
        "transform": TRANSFORM,
        "postprocess": TRANSFORM,
    }
)
"""By the key of a test or of its options: the test is left out for it."""

_JUDGE = "the judge here has a prompt of its own, and gives 0 or 1 unless extras.levels says more"

DIFFERS: Mapping[str, str] = MappingProxyType(
    {
        "equals": "white space at both ends does not count here",
        "starts-with": "white space before the answer does not count here",
        "regex": r"Python searches, for five seconds at most: \d, \w, \b take all alphabets, and $ a last line break",
        "contains-json": "an answer that is JSON as a whole counts, such as 42, and of several values the longest",
        "rouge-n": "rouge_1 of this package, whose numbers differ a little",
        "bleu": "bleu_4 of this package, whose numbers differ a little",
        "g-eval": f"{_JUDGE}; each criterion has to pass, not their mean",
        **dict.fromkeys(("llm-rubric", "model-graded-closedqa", "factuality", "model-graded-factuality"), _JUDGE),
    }
)
"""By the kind of an assertion: what differs of the check that it becomes."""
