"""The task files here are what tests load: pytest lists them as tasks wherever a folder above them is named."""

collect_ignore_glob = ["*/task_*.py", "*/*.yaml", "*/*/*.jsonl"]
