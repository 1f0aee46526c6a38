"""Record what lm-evaluation-harness asks and scores, where it is installed: ``record.py OUT [FOLDER DATA NAMES]``.

Each task of ``tasks/`` is run with the model of ``model.py`` over the rows of ``data/``: plain, with few-shot examples,
with a system prompt, and as a chat in several turns and in one. What is recorded are the requests, the metrics of each
document, aggregates with their standard errors, and the scores of groups.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["DISABLE_MULTIPROC"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import datasets  # noqa: E402  # the variable above is read when it is imported
import model as formula  # noqa: E402

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shots": {"num_fewshot": 1},
    "system": {"system_instruction": "Be brief."},
    "multiturn": {"num_fewshot": 2, "apply_chat_template": True, "fewshot_as_multiturn": True},
    "single": {"num_fewshot": 2, "apply_chat_template": True, "fewshot_as_multiturn": False},
}
BOOTSTRAP = 1000


def load_from(data: Path) -> Any:
    real = datasets.load_dataset

    def load(path: str, name: str | None = None, **given: Any) -> Any:
        if path in ("json", "csv", "parquet") or Path(path).is_dir():
            return real(path, name, **given)
        base = data / path.replace("/", "__")
        folder = base / str(name).replace("/", "__") if name is not None else base
        folder = folder if folder.is_dir() else base / "default"
        return datasets.DatasetDict(
            {
                file.stem: datasets.Dataset.from_list(
                    [json.loads(line) for line in file.read_text("utf-8").splitlines()]
                )
                for file in sorted(folder.glob("*.jsonl"))
            }
        )

    return load


def record(folder: Path, data: Path, names: list[str]) -> dict[str, Any]:
    datasets.load_dataset = load_from(data)
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    asked: list[Any] = []

    class Formula(LM):
        tokenizer_name = chat_template = "formula"

        def loglikelihood(self, requests: Any, **_: Any) -> Any:
            asked.extend([each.task_name, each.doc_id, [*each.args]] for each in requests)
            return [(formula.total(*each.args), formula.is_greedy(*each.args)) for each in requests]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> Any:
            asked.extend([each.task_name, each.doc_id, [*each.args]] for each in requests)
            return [formula.whole(*each.args) for each in requests]

        def generate_until(self, requests: Any, **_: Any) -> Any:
            seen: dict[Any, int] = {}
            answers = []
            for each in requests:
                text, options = each.args
                key = each.task_name, each.doc_id
                seen[key] = seen.get(key, -1) + 1
                asked.append([*key, [text, dict(options)]])
                answers.append(formula.answer(text, seen[key]))
            return answers

        def apply_chat_template(self, turns: Any, add_generation_prompt: bool = True) -> str:
            return json.dumps([turns, add_generation_prompt])

    manager = TaskManager(include_path=str(folder))
    found: dict[str, Any] = {}
    for way, options in WAYS.items():
        for name in names:
            asked.clear()
            try:
                run = lm_eval.simple_evaluate(
                    model=Formula(), tasks=[name], task_manager=manager, bootstrap_iters=BOOTSTRAP, **options
                )
            except Exception as error:
                print(f"{way} {name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            samples = {
                task: [
                    [each["doc_id"], each["filter"], {metric: each[metric] for metric in each["metrics"]}]
                    for each in of
                ]
                for task, of in run["samples"].items()
            }
            found.setdefault(way, {})[name] = {
                "requests": sorted(asked, key=lambda each: each[:2]),
                "samples": samples,
                "results": _numbers(run["results"]),
                "groups": _numbers(run.get("groups") or {}),
            }
    return found


def _numbers(results: Any) -> Any:
    return {task: {key: value for key, value in of.items() if "," in key} for task, of in results.items()}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


if __name__ == "__main__":
    out, *given = sys.argv[1:]
    folder, data = (Path(given[0]), Path(given[1])) if given else (HERE / "tasks", HERE / "data")
    names = given[2:] or ["all_of_them", "capitals_same", "names", "lengths", "endings", "texts", "renamed", "counted"]
    Path(out).write_text(json.dumps(record(folder, data, names), default=_plain, indent=None) + "\n", "utf-8")
