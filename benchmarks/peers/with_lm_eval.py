"""lm-eval: a task in YAML over a JSON file, exact_match; its model `dummy`, whose answers are "lol", or its client."""

import os
import re
import subprocess
import sys
from pathlib import Path

from model import AT_ONCE, PORT, PROMPTS, URL

TASK = """
task: words
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{data}"}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{target}"
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: 16}}
metric_list: [{{metric: exact_match}}]
"""

data = Path("words.jsonl").absolute()
data.write_text("".join(f'{{"prompt": "{prompt}"}}\n' for prompt in PROMPTS), encoding="utf-8")
Path("words.yaml").write_text(TASK.format(data=data, target="yes" if PORT else "lol"), encoding="utf-8")
command = [sys.executable, "-m", "lm_eval", "--tasks", "words", "--include_path", "."]
if PORT:
    arguments = f"model=m,base_url={URL}/chat/completions,num_concurrent={AT_ONCE}"
    command += ["--model", "local-chat-completions", "--model_args", arguments, "--apply_chat_template"]
else:
    command += ["--model", "dummy"]
quiet = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none", "HF_HOME": "cache"}
done = subprocess.run(command, env={**os.environ, **quiet}, check=True, capture_output=True, text=True)
if not re.search(r"\|exact_match\|[^|]*\| *1(\.0+)?\|", done.stdout):
    sys.exit(f"not all answers were scored as right:\n{done.stdout}")
