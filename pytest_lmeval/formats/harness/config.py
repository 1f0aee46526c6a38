"""Read and check one task's keys, from its file and the files that it includes.

The code that uses a key defines its meaning. A key may refer to a function, which the task imports later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # the library has no type hints

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.checks import check_names
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import is_number

MAX_BYTES = 4 << 20
OUTPUT_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until", "multiple_choice")
_DEFAULTS = {"output_type": "generate_until", "target_delimiter": " ", "fewshot_delimiter": "\n\n"}
# Keys that do not affect scores.
_IGNORED = (
    *("task_alias", "tag", "group", "group_alias", "metadata"),
    *("should_decontaminate", "doc_to_decontamination_query"),
)
_REFUSED = {
    "class": "a task that is a Python class of the harness",
    "custom_dataset": "a data set that a function makes",
    "doc_to_audio": "audio",
    "unsafe_code": "a metric that runs code of a model outside of a sandbox",
    "use_prompt": "a prompt of promptsource",
}
# Keys of few-shot examples: fewshot_config overrides the task.
_OF_TASK = (
    *("process_docs", "doc_to_text", "doc_to_choice", "doc_to_target", "gen_prefix"),
    *("fewshot_delimiter", "target_delimiter"),
)
_SHOT_KEYS = (*_OF_TASK, "sampler", "split", "fewshot_indices", "samples")
# Keys for the limit on generated tokens, in order of precedence.
_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_OF_DRAWING = frozenset({"top_p", "top_k", "min_p", "typical_p"})
# Values that have no effect, so no adapter needs to support them.
_WITHOUT_EFFECT = (
    *((name, 1) for name in ("num_beams", "num_beam_groups", "num_return_sequences")),
    *((name, 1) for name in ("repetition_penalty", "length_penalty", "typical_p")),
    *((name, 0) for name in ("min_p", "no_repeat_ngram_size", "presence_penalty", "frequency_penalty")),
    *(("use_cache", True), ("early_stopping", False)),
)
_DEFAULT_LIMIT = 256
_YamlLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A reference to a function in a module; the module is a file in ``folder`` or an installed module."""

    folder: Path
    module: str
    name: str

    @property
    def file(self) -> Path:
        """The module's file if the module is in ``folder``."""
        return self.folder.joinpath(*self.module.split(".")).with_suffix(".py")

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("task", "dataset_path", "output_type", "target_delimiter", "fewshot_delimiter"), (str,)),
    **dict.fromkeys(("training_split", "validation_split", "test_split", "fewshot_split"), (str,)),
    **dict.fromkeys(("description", "gen_prefix"), (str,)),
    **dict.fromkeys(("process_docs", "process_results"), (FunctionRef,)),
    **dict.fromkeys(("num_fewshot", "repeats"), (int,)),
    **dict.fromkeys(("generation_kwargs", "dataset_kwargs", "fewshot_config"), (dict,)),
    **dict.fromkeys(("metric_list", "filter_list"), (list,)),
    "dataset_name": (str, int, float, bool),
    "doc_to_text": (str, int, FunctionRef),
    "doc_to_target": (str, int, list, FunctionRef),
    "doc_to_choice": (str, list, dict, FunctionRef),
    "doc_to_image": (str, list, FunctionRef),
}


def read_document(path: Path, including: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the keys of the file at ``path`` and of its includes; the file overrides its includes.

    Raises RecordRefused for an unreadable or invalid file, or a cycle of includes. As in the harness, scalars follow
    YAML 1.1, in which ``no`` is false and ``1_000`` is a thousand.
    """
    path = path.resolve()
    if path in including:
        chain = " includes ".join(each.name for each in (*including[including.index(path) :], path))
        raise RecordRefused("bad_value", "include", f"a cycle: {chain}")
    try:
        document = parse_document(path.read_bytes(), path)
    except OSError as error:
        raise RecordRefused("bad_value", "include", f"{path.name}: cannot be read: {error.strerror}") from None
    return read_included(document.pop("include", []), path.parent, (*including, path)) | document


def read_included(names: Any, folder: Path, including: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the keys of the files named by ``include`` in a file in ``folder``; a later file takes precedence."""
    merged: dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str) or not name:
            raise RecordRefused("bad_type", "include", f"expected the name of a file, got {name!r:.80}")
        merged |= read_document(folder / name, including)
        # A file does not inherit task_list.
        merged.pop("task_list", None)
    return merged


def parse_document(data: bytes, path: Path) -> dict[str, Any]:
    """Return the keys in ``data``, the content of the file at ``path``, without reading its includes."""
    if len(data) > MAX_BYTES:
        raise RecordRefused("bad_value", "_document", f"{path.name}: more than {MAX_BYTES:,} bytes")
    try:
        document = yaml.load(data, Loader=_yaml_loader(path.parent))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path.name}:{mark.line + 1}: column {mark.column + 1}: " if mark else f"{path.name}: "
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise RecordRefused("bad_yaml", "_document", f"{place}{problem}") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise RecordRefused("bad_type", "_document", f"{path.name}: expected keys with values, got {kind}")
    return {str(key): value for key, value in document.items()}


def _yaml_loader(folder: Path) -> Any:
    def function(loader: Any, node: Any) -> FunctionRef:
        module, _, name = str(loader.construct_scalar(node)).rpartition(".")
        place = folder
        while module.startswith(("../", "./")):
            step, _, module = module.partition("/")
            place = (place / step).resolve()
        if not module or not name:
            raise ValueError(f"!function expects MODULE.NAME, got {node.value!r:.80}")
        return FunctionRef(place, module, name)

    class Loader(_YamlLoader):  # type: ignore[misc]  # the base is one of two, of which one may be missing
        """The safe loader, with the tag ``!function``."""

    Loader.add_constructor("!function", function)
    return Loader


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, any other value as a list of one, and an empty value as an empty list."""
    return value if isinstance(value, list) else [value] if value else []


def plain(value: Any) -> Any:
    """Return ``value`` as JSON for a hash or a report; functions become their names."""
    if isinstance(value, FunctionRef):
        return f"!function {value}"
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


@dataclass(frozen=True, slots=True)
class Config:
    """One task's keys.

    ``given`` contains the keys, merged with includes and overrides. ``file`` is the task's file, and ``groups`` are the
    groups that contain the task. ``roots`` are the folders whose modules the task's functions may import, beginning
    with the task's own folder.
    """

    name: str
    file: Path
    roots: tuple[Path, ...]
    given: Mapping[str, Any]
    groups: tuple[str, ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``; null counts as missing."""
        value = self.given.get(key)
        return _DEFAULTS.get(key, default) if value is None else value

    @property
    def output_type(self) -> str:
        """The kind of request: one of :data:`OUTPUT_TYPES`."""
        return str(self.get("output_type"))

    @property
    def evaluated_split(self) -> str | None:
        """The split with the documents to evaluate."""
        split: str | None = self.get("test_split") or self.get("validation_split")
        return split

    @property
    def shots(self) -> dict[str, Any]:
        """The settings for few-shot examples."""
        own = {key: self.get(key) for key in _OF_TASK}
        return {**own, "split": self.get("fewshot_split"), **self.get("fewshot_config", {})}

    @property
    def functions(self) -> list[FunctionRef]:
        """Every function that the task names."""
        return [*_functions(self.given)]

    @property
    def has_choices(self) -> bool:
        """True if the task gives the model options to choose from."""
        return self.get("doc_to_choice") is not None


def _functions(value: Any) -> Iterator[FunctionRef]:
    if isinstance(value, FunctionRef):
        yield value
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _functions(each)


def check_config(config: Config) -> None:
    """Raise RecordRefused for the first key that is unknown, of the wrong type, or not supported."""
    for key, reason in _REFUSED.items():
        if config.get(key) not in (None, False):
            raise RecordRefused("not_supported", key, f"{reason} is not supported")
    given = {key: value for key, value in config.given.items() if key not in (*_REFUSED, *_IGNORED)}
    check_names({key: value for key, value in given.items() if value is not None}, [*_TYPES, *_IGNORED])
    for key, value in given.items():
        is_flag = isinstance(value, bool) and bool not in _TYPES.get(key, ())
        if value is not None and (is_flag or not isinstance(value, _TYPES[key])):
            kinds = " or ".join({"FunctionRef": "!function"}.get(kind.__name__, kind.__name__) for kind in _TYPES[key])
            raise RecordRefused("bad_type", key, f"expected {kinds}, got {value!r:.80}")
    if config.output_type not in OUTPUT_TYPES:
        raise RecordRefused("bad_value", "output_type", f"{config.output_type!r}; one of {', '.join(OUTPUT_TYPES)}")
    if config.get("doc_to_image") is not None and config.output_type != "generate_until":
        raise RecordRefused("not_supported", "doc_to_image", f"images in a task of {config.output_type}")
    if config.get("dataset_path") is None:
        raise RecordRefused("missing_required", "dataset_path", "expected the name of a data set")
    for key, least in (("num_fewshot", 0), ("repeats", 1)):
        if config.get(key, least) < least:
            raise RecordRefused("bad_value", key, f"expected {least} or more, got {config.get(key)}")
    check_names({str(key): key for key in config.get("fewshot_config", {})}, _SHOT_KEYS, "fewshot_config.")


def generation_of(config: Config) -> dict[str, Any]:
    """Return ``stop``, ``max_tokens`` and ``options``, the fields of every generation request.

    ``options`` omits a temperature of 0. Raises RecordRefused for an invalid value in ``generation_kwargs``.
    """

    def refused(key: str, expected: str, got: Any) -> RecordRefused:
        return RecordRefused("bad_value", f"generation_kwargs.{key}", f"expected {expected}, got {got!r:.80}")

    given = dict(config.get("generation_kwargs", {}))
    until = given.pop("until", None)
    stop = [config.get("fewshot_delimiter")] if until is None else until if isinstance(until, list) else [until]
    if not all(isinstance(each, str) for each in stop):
        raise refused("until", "texts", until)
    limits = [each for each in [given.pop(name, None) for name in _LIMITS] if each is not None]
    limit = limits[0] if limits else _DEFAULT_LIMIT
    if not is_number(limit) or limit < 1:
        raise refused("max_gen_toks", "a number from 1", limit)
    temperature = given.pop("temperature", 0.0)
    if not is_number(temperature) or temperature < 0:
        raise refused("temperature", "a number from 0", temperature)
    if given.pop("do_sample", None) is False or not temperature:
        # A greedy answer can also depend on other options, such as beams and penalties.
        options = {name: value for name, value in given.items() if name not in _OF_DRAWING}
    else:
        options = {"temperature": float(temperature), **given}
    options = {name: value for name, value in options.items() if (name, value) not in _WITHOUT_EFFECT}
    return {"stop": tuple(stop), "max_tokens": int(limit), "options": options}
