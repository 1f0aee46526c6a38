"""Members of eval-framework's ``BaseTask`` that no run calls here: to override one would change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TASK_STYLER = "TASK_STYLER"
NOT_CALLED: Mapping[str, str] = MappingProxyType(
    {
        TASK_STYLER: "derive from BaseTask of pytest_lmeval.compat.eval_framework and use one of its styles, or write "
        "_get_instruction_text, _get_ground_truth, _get_possible_completions, _get_cue_text and METRICS",
        "generate_completions": "the run asks the model: change what is asked in _get_messages, what becomes of the "
        "answer in post_process_generated_completion",
        "get_response_type": "set RESPONSE_TYPE",
        "get_metrics": "set METRICS",
        "display_name": "set NAME",
        "get_metadata": "the board has the name, data, metrics and subjects of a task; what else there is to say goes "
        "into the docstring of the class",
        "markdown_doc": "write a docstring",
        "with_overwrite": "set attributes in __init__; the run's options are --lm-num-fewshot and --lm-subject",
        "_filter_task_subjects": "set SUBJECTS; --lm-subject chooses among them",
        "_apply_hf_revision": "set HF_REVISION or REVISION_LOCKFILE",
        "_apply_user_prompt_suffix": "set self.user_prompt_suffix in __init__, or override _get_messages",
    }
)
"""Each member with what to write instead."""
