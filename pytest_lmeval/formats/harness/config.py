"""The keys of one task, checked: what each means is written where it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats.harness.document import FunctionRef
from pytest_lmeval.frozen import dataclass

OUTPUT_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice")
# Keys that decide nothing about a run's scores.
_IGNORED = frozenset(
    {"task_alias", "tag", "group", "group_alias", "metadata", "should_decontaminate", "doc_to_decontamination_query"}
)
_REFUSED = {
    "class": "a task that is a Python class of the harness",
    "custom_dataset": "a data set that a function makes",
    "doc_to_image": "images",
    "doc_to_audio": "audio",
    "unsafe_code": "a metric that runs code of a model outside of a sandbox",
    "use_prompt": "a prompt of promptsource",
}
_SHOTS = ("sampler", "split", "process_docs", "fewshot_indices", "samples", "doc_to_text", "doc_to_choice")
_SHOT_KEYS = frozenset({*_SHOTS, "doc_to_target", "gen_prefix", "fewshot_delimiter", "target_delimiter"})
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("task", "dataset_path", "output_type", "target_delimiter", "fewshot_delimiter"), (str,)),
    **dict.fromkeys(("training_split", "validation_split", "test_split", "fewshot_split"), (str,)),
    **dict.fromkeys(("process_docs", "process_results"), (FunctionRef,)),
    **dict.fromkeys(("num_fewshot", "repeats"), (int,)),
    **dict.fromkeys(("generation_kwargs", "dataset_kwargs", "fewshot_config"), (dict,)),
    **dict.fromkeys(("metric_list", "filter_list"), (list,)),
    "dataset_name": (str, int, float, bool),
    "description": (str, FunctionRef),
    "gen_prefix": (str,),
    "doc_to_text": (str, int, FunctionRef),
    "doc_to_target": (str, int, list, FunctionRef),
    "doc_to_choice": (str, list, dict, FunctionRef),
}


@dataclass(frozen=True, slots=True)
class Config:
    """One task: ``given`` are its keys, includes and overrides merged, of which those here have defaults.

    ``file`` is where the task is, ``root`` the folder whose modules its functions may import; ``groups`` are those that
    it was reached by.
    """

    name: str
    file: Path
    root: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``; one that is null counts as left out."""
        value = self.given.get(key)
        return default if value is None else value

    @property
    def output_type(self) -> str:
        """What is asked: one of :data:`OUTPUT_TYPES`."""
        return str(self.get("output_type", "generate_until"))

    @property
    def shots(self) -> Mapping[str, Any]:
        """The settings of few-shot examples: those of the task unless ``fewshot_config`` has others."""
        own = {
            key: self.get(key)
            for key in ("process_docs", "doc_to_text", "doc_to_choice", "doc_to_target", "gen_prefix")
        }
        own |= {"split": self.get("fewshot_split"), "fewshot_delimiter": self.fewshot_delimiter}
        return {**own, "target_delimiter": self.target_delimiter, **self.get("fewshot_config", {})}

    @property
    def target_delimiter(self) -> str:
        """What is between a question and its answer."""
        return str(self.get("target_delimiter", " "))

    @property
    def fewshot_delimiter(self) -> str:
        """What is between two examples."""
        return str(self.get("fewshot_delimiter", "\n\n"))

    @property
    def functions(self) -> list[FunctionRef]:
        """Every function that the task names."""
        return [*_functions(self.given)]

    def has_choices(self) -> bool:
        """Tell whether the task has options to choose from."""
        return self.get("doc_to_choice") is not None


def check_config(config: Config) -> None:
    """Raise RecordRefused for the first key that is unknown, of a wrong type, or not supported."""
    for key, reason in _REFUSED.items():
        if config.get(key) not in (None, False):
            raise RecordRefused("not_supported", key, f"{config.name}: {reason} is not supported")
    for key, value in config.given.items():
        if key in _REFUSED or key in _IGNORED or value is None:
            continue
        if key not in _TYPES:
            hint = nearest(key, [*_TYPES, *_IGNORED], "expected one of")
            raise RecordRefused("unknown_field", key, f"{config.name}: unknown key{hint}")
        _check_type(config.name, key, value)
    if config.output_type not in OUTPUT_TYPES:
        choices = ", ".join(OUTPUT_TYPES)
        raise RecordRefused("bad_value", "output_type", f"{config.name}: {config.output_type!r}; one of {choices}")
    if config.get("dataset_path") is None:
        raise RecordRefused("missing_required", "dataset_path", f"{config.name}: expected the name of a data set")
    _check_counts(config)


def _check_counts(config: Config) -> None:
    for key, least in (("num_fewshot", 0), ("repeats", 1)):
        if config.get(key, least) < least:
            raise RecordRefused("bad_value", key, f"{config.name}: expected {least} or more, got {config.get(key)}")
    unknown = sorted(config.get("fewshot_config", {}).keys() - _SHOT_KEYS)
    if unknown:
        hint = nearest(str(unknown[0]), _SHOT_KEYS, "expected one of")
        raise RecordRefused("unknown_field", f"fewshot_config.{unknown[0]}", f"{config.name}: unknown key{hint}")


def _check_type(name: str, key: str, value: Any) -> None:
    expected = _TYPES[key]
    is_flag = isinstance(value, bool) and bool not in expected
    if not isinstance(value, expected) or is_flag:
        kinds = " or ".join({"FunctionRef": "!function"}.get(kind.__name__, kind.__name__) for kind in expected)
        raise RecordRefused("bad_type", key, f"{name}: expected {kinds}, got {value!r:.80}")


def _functions(value: Any) -> Iterator[FunctionRef]:
    if isinstance(value, FunctionRef):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _functions(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _functions(each)
