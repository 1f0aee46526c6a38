"""Define the base class for tasks over a dataset, with prompts, correct answers and metrics."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks import loading, prompts
from pytest_lmeval.tasks.sample import BaseMetricContext, ResponseType, Sample
from pytest_lmeval.types import Message

TASK_STYLER = "TASK_STYLER"
NOT_CALLED: Mapping[str, str] = MappingProxyType(
    {
        TASK_STYLER: "derive from BaseTask of pytest_lmeval.compat.eval_framework and use one of its styles, or write "
        "_get_instruction_text, _get_ground_truth, _get_possible_completions, _get_cue_text and METRICS",
        "generate_completions": "the run asks the model: change the prompt in _get_messages, and the prediction in "
        "post_process_generated_completion",
        "get_response_type": "set RESPONSE_TYPE",
        "get_metrics": "set METRICS",
        "display_name": "set NAME",
        "get_metadata": "the board has the name, data, metrics and subjects of a task; write anything else into the "
        "docstring of the class",
        "markdown_doc": "write a docstring",
        "with_overwrite": "set attributes in __init__; the run's options are --lm-num-fewshot and --lm-subject",
        "_filter_task_subjects": "set SUBJECTS; --lm-subject chooses among them",
        "_apply_hf_revision": "set HF_REVISION or REVISION_LOCKFILE",
        "_apply_user_prompt_suffix": "set self.user_prompt_suffix in __init__, or override _get_messages",
    }
)
"""Members of eval-framework's ``BaseTask`` that this package never calls, each with its replacement."""
NO_SUBJECT = "no_subject"
"""``SUBJECTS = [NO_SUBJECT]`` means that items have no subject, even if they have the key ``subject``."""

SubjectT = TypeVar("SubjectT")


class Language(Enum):
    """The language of a task, for readers of the task file; runs ignore the language."""

    ENG = "English"
    DEU = "German"
    FRA = "French"
    ITA = "Italian"
    SPA = "Spanish"
    POR = "Portuguese"
    NLD = "Dutch"
    FIN = "Finnish"
    SWE = "Swedish"
    ARB = "Arabic"
    POL = "Polish"
    RUS = "Russian"
    UKR = "Ukrainian"
    HRV = "Croatian"
    SRP = "Serbian"


class BaseTask(Generic[SubjectT]):
    """A task over the items of a dataset; a subclass without a ``NAME`` is only a base class for other tasks.

    ``DATASET_PATH`` is the path, relative to the task file, of a ``.jsonl``, ``.csv`` or ``.parquet`` file, or of a
    folder with one file per split. ``DATASET_PATH`` may also be the name of a dataset on the hub. ``METRICS`` lists
    metrics; the first metric decides if an example passes. ``SUBJECTS`` lists the subjects to use: a run skips items of
    other subjects, and draws few-shot examples from the item's subject. A task without subjects sets ``[NO_SUBJECT]``.
    ``THRESHOLD`` overrides the metric's threshold.

    While a method runs, ``item["subject"]`` is the item's subject, and ``self.dataset[split]`` holds the split's items
    for that subject. ``self.num_fewshot`` is the number of few-shot examples. ``self.rnd`` is ``random.Random(1234 +
    index)``, a random number generator for the item; ``index`` is the item's position in its split.

    Override ``_load_dataset`` to select or change items, and ``_create_samples`` to ask about an item differently or
    several times. A task must not define members of eval-framework's class that this package never calls.
    """

    NAME: ClassVar[str]
    DATASET_PATH: ClassVar[str]
    SAMPLE_SPLIT: ClassVar[str] = "test"
    FEWSHOT_SPLIT: ClassVar[str] = ""
    RESPONSE_TYPE: ClassVar[ResponseType] = ResponseType.COMPLETION
    METRICS: ClassVar[Sequence[Any]]
    SUBJECTS: ClassVar[Sequence[Any]] = ()
    THRESHOLD: ClassVar[float | None] = None
    HF_REVISION: ClassVar[str | None] = None
    REVISION_LOCKFILE: ClassVar[str | Path | None] = None
    LANGUAGE: ClassVar[Any] = None
    _NOT_CALLED: ClassVar[Mapping[str, str]] = NOT_CALLED

    dataset: Mapping[str, Sequence[dict[str, Any]]]
    rnd: random.Random
    stop_sequences: Sequence[str] | None = None
    max_tokens: int | None = None
    user_prompt_suffix: str | None = None
    # The run sets these attributes.
    _folder: Path = Path()
    _samples: Callable[[], Iterator[Sample]]

    def __init__(self, num_fewshot: int = 0) -> None:
        self.num_fewshot = num_fewshot

    def _load_dataset(self, subject: SubjectT) -> None:
        """Set ``self.dataset`` to the items of ``subject``, by split."""
        name = None if subject == NO_SUBJECT else subject
        self.dataset = self._shuffle_splits(hf_dataset=self._load_hf_dataset(path=self.DATASET_PATH, name=name))

    def _load_hf_dataset(self, **options: Any) -> Any:
        """Return the splits of the dataset ``path`` with the configuration ``name``, from local files or the hub."""
        return loading.splits_of(self, **options)

    def _shuffle_splits(self, hf_dataset: Any) -> dict[str, Any]:
        """Return the items of the sample split and the few-shot split, in their original order."""
        used = dict.fromkeys((self.SAMPLE_SPLIT, self.FEWSHOT_SPLIT))
        return {split: list(hf_dataset[split]) for split in used if split in hf_dataset}

    @property
    def hf_revision(self) -> str | None:
        """The dataset's revision on the hub, from ``HF_REVISION`` or ``REVISION_LOCKFILE``, or None."""
        from pytest_lmeval.tasks.loading import revision_of

        return revision_of(self, self.DATASET_PATH)

    def iterate_samples(self, num_samples: int | None = None) -> Iterable[Sample]:
        """Yield the samples of all subjects, at most ``num_samples`` per subject."""
        counts: dict[str, int] = {}
        for sample in self._samples():
            counts[sample.subject] = counts.get(sample.subject, 0) + 1
            if num_samples is None or counts[sample.subject] <= num_samples:
                yield sample

    def _create_samples(self, item: dict[str, Any], index: int, subject: str) -> list[Sample]:
        """Return the samples of an item: by default, one sample from the results of the other methods."""
        truths = prompts.truths_of(self, item)
        chooses = self.RESPONSE_TYPE == ResponseType.LOGLIKELIHOODS
        return [
            Sample(
                id=index,
                subject=subject,
                messages=prompts.messages_of(self, "_get_messages", item),
                ground_truth=truths if len(truths) > 1 else truths[0],
                possible_completions=prompts.texts_of(self, "_get_possible_completions", item) if chooses else (),
                context=prompts.context_of(self, item),
            )
        ]

    def _get_messages(self, item: dict[str, Any]) -> list[Message]:
        """Return the conversation: the system prompt, the few-shot examples, the question and the cue."""
        return prompts.conversation(self, item)

    def _get_example_messages(self, item: dict[str, Any]) -> list[Message]:
        """Return the questions and answers of the few-shot examples."""
        return prompts.worked_examples(self, item)

    def _get_instruction_messages(self, item: dict[str, Any]) -> list[Message]:
        """Return the question as messages: by default, ``_get_instruction_text`` as one user message."""
        return [Message("user", prompts.text_of(self, "_get_instruction_text", item))]

    def _get_instruction_text(self, item: dict[str, Any]) -> str:
        """Return the question about an item."""
        raise NotImplementedError

    def _get_ground_truth(self, item: dict[str, Any]) -> str | list[str] | None:
        """Return the correct answer, or a list of all correct answers."""
        raise NotImplementedError

    def _get_cue_text(self, item: dict[str, Any]) -> str:
        """Return the cue with which the model's answer begins, or ``""``."""
        return ""

    def _get_system_prompt_text(self, item: dict[str, Any]) -> str | None:
        """Return the system prompt, or ``""`` for no system prompt."""
        return ""

    def _get_initial_prompt_text(self, item: dict[str, Any]) -> str:
        """Return the text to put before the first user message, or ``""``."""
        return ""

    def _get_fewshot_target_text(self, item: dict[str, Any]) -> str:
        """Return the answer to a few-shot example: by default, its first correct answer."""
        truth = self._get_ground_truth(item)
        first = truth if isinstance(truth, str) or not truth else truth[0]
        if not isinstance(first, str):
            detail = f"the ground truth of a few-shot item is {first!r:.80}, expected text"
            raise RecordRefused("bad_type", "_get_fewshot_target_text", detail)
        return first

    def _sample_fewshot_examples(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """Return ``num_fewshot`` random items of the few-shot split, but never ``item`` itself."""
        pool = self.dataset[self.FEWSHOT_SPLIT]
        if self.num_fewshot > len(pool):
            others = " other" if isinstance(pool, prompts.Others) else ""
            about = "" if item.get("subject", NO_SUBJECT) == NO_SUBJECT else f" of the subject {item['subject']!r}"
            has = f"the split {self.FEWSHOT_SPLIT!r} has {len(pool)}{others} items{about}"
            raise RecordRefused("bad_value", "num_fewshot", f"{self.num_fewshot} few-shots, but {has}")
        if isinstance(pool, prompts.Others):
            return pool.drawn(self.rnd, self.num_fewshot)
        return self.rnd.sample(pool, self.num_fewshot)

    def _get_possible_completions(self, item: dict[str, Any]) -> list[str] | None:
        """Return the continuations from which the model chooses, for ``ResponseType.LOGLIKELIHOODS``."""
        return None

    def _get_context(self, item: dict[str, Any]) -> BaseMetricContext | Mapping[str, Any] | None:
        """Return further inputs for the metrics, such as ``test_cases`` and ``entry_point``."""
        return None

    def post_process_generated_completion(self, completion_text: str, sample: Sample | None = None) -> str:
        """Return the prediction from the model's output: by default, the whole text."""
        return completion_text
