"""Write the golden records of eval-framework by running it; see the README above this folder.

Usage: ``python -m tests.golden.eval_framework.produce CHECKOUT`` from the project's root, in an environment that has
what eval-framework imports; ``CHECKOUT`` is the root of a clone of it. Nothing of it is copied: what comes out are
messages, texts and numbers.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import json
import random
import subprocess
import sys
import tempfile
import types
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.golden.eval_framework.plans import PAIRS, PLANS, Plan, Row

HERE = Path(__file__).resolve().parent

# Imported by modules that are needed, used by none of what runs here.
_STUBBED = ("llm_sandbox", "mysql", "psycopg2", "wandb", "determined", "boto3", "nltk", "docker")


class _Stub(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {"PYTHON": "python"})


class _Stubs:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in _STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # a duck
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__path__ = []


def rows_of(folder: str, subject: str = "") -> dict[str, list[Row]]:
    """Return the splits of some invented data, each row made anew."""
    files = sorted((HERE / "data" / folder / subject).glob("*.jsonl"))
    return {file.stem: [json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files}


def run_python(code: str, **options: Any) -> str:
    """Stand in for the container that programs run in: the programs here are ours."""
    with tempfile.TemporaryDirectory() as folder:
        given = [sys.executable, "-I", "-c", code]
        done = subprocess.run(given, cwd=folder, capture_output=True, text=True, timeout=20, check=False)
    return (done.stderr + done.stdout).strip()


def record_of(plan: Plan) -> dict[str, Any]:
    """Return the golden record of one task."""
    module: Any = import_module(f"eval_framework.tasks.benchmarks.{plan.module}")
    kind = getattr(module, plan.kind)
    kind.REVISION_LOCKFILE = None  # which revision of the published data: there is none
    if plan.kind == "GSM8K":  # the worked examples are part of its code: ours are shown in their place
        module.FEWSHOT_ITEMS = rows_of("gsm8k", "main")["train"]
    task = kind.with_overwrite(plan.num_fewshot, custom_subjects=list(plan.subjects), custom_hf_revision=None)
    task._load_hf_dataset = lambda path, name=None, **options: rows_of(plan.data, name or "")
    samples = []
    for subject in task.SUBJECTS:
        task._load_dataset(subject)
        name = "" if subject == import_module("eval_framework.tasks.base").NO_SUBJECT else subject
        if not plan.loads:
            # The order of the file, not the shuffled one: an example is then known by its place.
            task.dataset[task.SAMPLE_SPLIT] = rows_of(plan.data, name)[task.SAMPLE_SPLIT]
        made = pair_of if "PartialEvalAccuracy" in plan.metrics else sample_of
        samples += [made(plan, task, subject, index) for index in range(len(task.dataset[task.SAMPLE_SPLIT]))]
    return {
        "class": f"{module.__name__}.{plan.kind}",
        "num_fewshot": plan.num_fewshot,
        "subjects": list(task.SUBJECTS),
        "stop_sequences": task.stop_sequences,
        "max_tokens": task.max_tokens,
        "response_type": task.get_response_type().value,
        "samples": samples,
    }


def sample_of(plan: Plan, task: Any, subject: str, index: int) -> dict[str, Any]:
    """Return what the task asks about the item at ``index``, and what each answer to it is worth."""
    formatter = import_module("template_formatting.formatter")
    generates = task.get_response_type().value == "completion"
    item = task.dataset[task.SAMPLE_SPLIT][index]
    row = json.loads(json.dumps(item))
    item["subject"] = subject
    # A generator for this item alone, so that the draw of one does not depend on how many were drawn before.
    task.rnd = random.Random(1234 + index)
    drawn: list[Row] = []
    original = type(task)._sample_fewshot_examples

    def sampling(asked: Row) -> list[Row]:
        shots: list[Row] = original(task, asked)
        drawn.extend(json.loads(json.dumps(shots)))
        return shots

    task._sample_fewshot_examples = sampling
    (sample,) = task._create_samples(item, index, str(subject))
    pool = task.dataset.get(task.FEWSHOT_SPLIT) or rows_of("gsm8k", "main")["train"]
    bare = [{key: value for key, value in each.items() if key != "subject" or "subject" in row} for each in pool]
    return {
        "subject": sample.subject,
        "index": index,
        "item_subject": item["subject"],
        "few_shots": [bare.index({key: shot[key] for key in bare[0]}) for shot in drawn],
        "messages": [[message.role.value, message.content] for message in sample.messages],
        "text": formatter.ConcatFormatter().format(sample.messages, output_mode="string"),
        "llama3": formatter.Llama3Formatter().format(sample.messages, output_mode="string"),
        "ground_truth": sample.ground_truth,
        "possible_completions": None if generates else sample.possible_completions,
        "answers": written(plan, task, sample, row) if generates else chosen(plan, sample),
    }


def pair_of(plan: Plan, task: Any, subject: str, index: int) -> dict[str, Any]:
    """Return the two samples that the task makes of the item at ``index``, and which is right by some numbers."""
    formatter = import_module("template_formatting.formatter")
    types_ = import_module("eval_framework.shared.types")
    item = task.dataset[task.SAMPLE_SPLIT][index]
    item["subject"] = subject
    task.rnd = random.Random(1234 + index)
    samples = task._create_samples(item, 2 * index, str(subject))
    answers = []
    for totals in ((-1.0, -2.0), (-2.5, -1.5), (-3.0, -3.0)):
        metric = metric_class("PartialEvalAccuracy")()
        results = []
        for sample, total in zip(samples, totals, strict=True):
            response = types_.Loglikelihood(
                id=sample.id,
                subject=sample.subject,
                ground_truth=sample.ground_truth,
                prompt="",
                prompt_sequence_positions=None,
                loglikelihoods={sample.possible_completions[0]: total},
                loglikelihoods_sequence_positions={},
            )
            results += metric.calculate(response)
        answers.append({"totals": totals, "score": results[0].value})
    return {
        "subject": str(subject),
        "pair": [
            {
                "messages": [[message.role.value, message.content] for message in sample.messages],
                "text": formatter.ConcatFormatter().format(sample.messages, output_mode="string"),
                "ground_truth": sample.ground_truth,
                "possible_completions": sample.possible_completions,
            }
            for sample in samples
        ],
        "answers": answers,
    }


def written(plan: Plan, task: Any, sample: Any, row: Row) -> list[dict[str, Any]]:
    """Return each text that a model could have written, the prediction made of it, and its scores."""
    types_ = import_module("eval_framework.shared.types")
    found = []
    for text in plan.answers(row):
        ends = [text.find(stop) for stop in task.stop_sequences or () if stop in text]
        raw = text[: min(ends)] if ends else text  # where a model stops
        prediction = task.post_process_generated_completion(raw, sample)
        response = types_.Completion(
            id=sample.id,
            subject=sample.subject,
            ground_truth=sample.ground_truth,
            prompt="",
            prompt_sequence_positions=None,
            messages=sample.messages,
            completion=prediction,
            raw_completion=raw,
            raw_completion_sequence_positions=None,
            context=sample.context,
        )
        shown = {} if plan.module in ("humaneval", "mbpp") else {"prediction": prediction}  # a program of theirs
        found.append({"text": text, **shown, "scores": scores_of(plan, response)})
    return found


def chosen(plan: Plan, sample: Any) -> list[dict[str, Any]]:
    """Return log-probabilities that a model could have given, and the scores by them."""
    types_ = import_module("eval_framework.shared.types")
    luck = random.Random(f"{plan.name} {sample.subject} {sample.id}")
    options = list(dict.fromkeys(sample.possible_completions))
    drawn = [{option: round(luck.uniform(-3, -0.2) * len(option), 3) for option in options} for _ in range(3)]
    alike = dict.fromkeys(options, -4.0)
    by_length = {option: -float(len(option)) for option in options}
    found = []
    for given in [*drawn, alike, by_length]:
        response = types_.Loglikelihood(
            id=sample.id,
            subject=sample.subject,
            ground_truth=sample.ground_truth,
            prompt="",
            prompt_sequence_positions=None,
            loglikelihoods=given,
            loglikelihoods_sequence_positions={},
        )
        found.append({"loglikelihoods": given, "scores": scores_of(plan, response)})
    return found


def scores_of(plan: Plan, response: Any) -> dict[str, float | None]:
    """Return the value of each metric by its class, with its key where it has several."""
    scores = {}
    for name in plan.metrics:
        for result in metric_class(name)().calculate(response):
            key = result.metric_name.partition("/")[2]
            scores[f"{name}.{key}" if key else name] = result.value
    return scores


def metric_class(name: str) -> Any:
    """Return a metric class by its name."""
    files = {
        "AccuracyCompletion": "completion.accuracy_completion",
        "AccuracyLoglikelihood": "loglikelihood.accuracy_loglikelihood",
        "AccuracyNormLoglikelihood": "loglikelihood.accuracy_loglikelihood",
        "BitsPerByteLoglikelihood": "loglikelihood.bits_per_byte",
        "CodeCompletionAssertion": "completion.code_assertion",
        "DropF1ExactMatch": "completion.drop_completion",
        "F1": "completion.f1",
        "F1SquadNormalized": "completion.f1",
        "ConfidenceWeightedAccuracy": "loglikelihood.confidence_weighted_accuracy",
        "DistributionalCorrectnessScore": "loglikelihood.dcs",
        "LanguageRawConsistencyChecker": "completion.language_checker",
        "MathMinervaCompletion": "completion.math_minerva_completion",
        "MathMinervaCompletionRelaxed": "completion.math_minerva_completion",
        "MathReasoningCompletion": "completion.math_reasoning_completion",
        "PartialEvalAccuracy": "loglikelihood.accuracy_loglikelihood",
        "TernaryScore": "loglikelihood.ternary",
        "ROUGE_1": "completion.rouge_1",
        "ROUGE_2": "completion.rouge_2",
        "ROUGE_L": "completion.rouge_l",
    }
    module: Any = import_module(f"eval_framework.metrics.{files[name]}")
    if name == "CodeCompletionAssertion":
        module.run_python_code = run_python
    return getattr(module, name)


def pairs() -> list[dict[str, Any]]:
    """Return the values of the text metrics for some pairs of a prediction and ground truths."""
    types_ = import_module("eval_framework.shared.types")
    plan = Plan("", "", "", "", ("AccuracyCompletion", "F1", "F1SquadNormalized", "ROUGE_1", "ROUGE_2", "ROUGE_L"))
    found = []
    for text, truths in PAIRS:
        response = types_.Completion(
            id=0,
            subject="",
            ground_truth=truths,
            prompt="",
            prompt_sequence_positions=None,
            messages=None,
            completion=text,
            raw_completion=text,
            raw_completion_sequence_positions=None,
        )
        found.append({"text": text, "ground_truth": truths, "scores": scores_of(plan, response)})
    return found


def importing(checkout: str) -> None:
    """Have imports find the clone at ``checkout``, and substitutes for what is not needed of other packages."""
    sys.meta_path.insert(0, _Stubs())
    sys.path.insert(0, str(Path(checkout) / "src"))
    installed = importlib.metadata.version
    # A clone that is not installed has no version to tell.
    importlib.metadata.version = lambda distribution_name: (
        "0" if distribution_name == "eval-framework" else installed(distribution_name)
    )


def main() -> None:
    """Write ``records/NAME.json`` for every plan."""
    importing(sys.argv[1])
    folder = HERE / "records"
    folder.mkdir(exist_ok=True)
    records = {plan.name: record_of(plan) for plan in PLANS}
    for name, record in [*records.items(), ("metrics", pairs())]:
        (folder / f"{name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
