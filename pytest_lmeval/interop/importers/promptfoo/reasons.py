"""Assertions without a counterpart, and what there is in their place; and what differs of those that have one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_lmeval.pages import page

_CODE = "code is not run; write it as a metric (registry.add_metric) or a scorer `python` of a YAML task"
_EMBEDDING = "similarity of embeddings is no metric here; rouge_l, f1 or the metric rubric, or an eval function"
_RAG = f"see {page('rag.md')}: an eval function with lm.grade over question, context and answer"
_PERPLEXITY = f"of the answer's tokens; log-probabilities are in the ledger ({page('log-likelihood.md')})"
_TRACE = "of an application: an eval function, whose steps are in lm.trace and lm.calls"
_FORMAT = "no metric here reads this format; a metric of your own, or regex"
_CHOICE = "prompts are compared over all rows: lmeval rank --by config"
_MODEL = "asks a service of its own; an eval function that asks it, or the metric rubric"

WITHOUT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
        **dict.fromkeys(("similar", "similar:cosine", "similar:dot", "similar:euclidean"), _EMBEDDING),
        **dict.fromkeys(("answer-relevance", "context-recall", "context-relevance", "context-faithfulness"), _RAG),
        **dict.fromkeys(("conversation-relevance", "skill-used", "tool-call-f1"), _TRACE),
        **dict.fromkeys(("trace-error-spans", "trace-span-count", "trace-span-duration"), _TRACE),
        **dict.fromkeys((f"trajectory:{each}" for each in ("goal-success", "step-count")), _TRACE),
        **dict.fromkeys((f"trajectory:tool-{each}" for each in ("used", "sequence", "args-match")), _TRACE),
        **dict.fromkeys(("is-sql", "contains-sql", "is-xml", "contains-xml", "is-html", "contains-html"), _FORMAT),
        **dict.fromkeys(("select-best", "max-score"), _CHOICE),
        **dict.fromkeys(("moderation", "guardrails", "classifier", "pi", "search-rubric"), _MODEL),
        **dict.fromkeys(
            ("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"),
            "the metric tool_calls of a record with extras.tools scores which calls are made",
        ),
        "cost": "a limit of the run: --lm-max TASK.cost_per_example=DOLLARS, the mean of its examples",
        "latency": "a limit of the run: --lm-max TASK.p95_ms=MS",
        "levenshtein": "no metric here counts edits; exact_match, f1 or rouge_l with a threshold",
        "gleu": "bleu_4 with a threshold",
        "meteor": "rouge_l or f1 with a threshold",
        "perplexity": _PERPLEXITY,
        "perplexity-score": _PERPLEXITY,
        "finish-reason": "the ledger has it; no metric reads it",
        "is-refusal": "the metric rubric, or regex",
        "word-count": "regex, such as ^\\s*(\\S+\\s+){0,99}\\S*$",
        "human": f"extras.human_label compares a judge with labels of people ({page('grade-with-a-judge.md')})",
    }
)
"""By the kind of an assertion, ``not-`` aside: why it is left out, and what to write in its place."""

_JUDGE = "the judge here has a prompt of its own, and gives 0 or 1 unless extras.levels says more"

DIFFERS: Mapping[str, str] = MappingProxyType(
    {
        "equals": "white space at both ends does not count here",
        "starts-with": "white space before the answer does not count here",
        "regex": "the search is Python's, and ends after five seconds of CPU time",
        "contains-json": "an answer that is JSON as a whole counts, such as 42, and of several values the longest",
        "rouge-n": "rouge_1 of this package, whose numbers differ a little",
        "bleu": "bleu_4 of this package, whose numbers differ a little",
        "llm-rubric": _JUDGE,
        "model-graded-closedqa": _JUDGE,
        "g-eval": f"{_JUDGE}; each criterion has to pass, not their mean",
        "factuality": _JUDGE,
        "model-graded-factuality": _JUDGE,
    }
)
"""By the kind of an assertion: what differs of the check that it becomes."""
