"""Find the format of a ``.yaml`` file, and skip files that are not task files.

The module parses only files that look like a task, or that the command line names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING

from pytest_lmeval.errors import did_you_mean
from pytest_lmeval.formats.checks import foreign
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.formats.yaml.claims import (
    ROLES,
    ROOT_KEYS,
    has_root_key,
    has_title,
    is_data_set,
    is_of_harness,
    reads_like_a_task,
)
from pytest_lmeval.types import RecordError

if TYPE_CHECKING:
    from pytest_lmeval.formats.yaml.document import YamlDocument, YamlFault
    from pytest_lmeval.registry import Registry

_WORD = re.compile(rb"^[\"']?([A-Za-z_]{4,16})[\"']?[ \t]*:", re.MULTILINE)
_NEAR = 0.85
_MOST_WORDS = 100
_NO_KEY = f"no key {', '.join(ROOT_KEYS[:-1])} or {ROOT_KEYS[-1]}"
_ROLE_NAMES = ("prompt", "data or rows", "metric")


def load(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return a YAML file's tasks, or its errors.

    A file without a task's keys is an error only if the command line names the file. A file that cannot be parsed is an
    error if it reads like a task, or if the command line names the file or its folder. A misspelt root key is an error
    if the file also has the key or title of a task. A task file of lm-evaluation-harness counts only if the command
    line names it.
    """
    if not source.is_named and not has_root_key(source.data):
        return _left_alone(source)
    if source.is_named and is_of_harness(source.data) and not reads_like_a_task(source.data):
        from pytest_lmeval.formats.harness.load import load_harness_file

        return load_harness_file(source, registry)
    from pytest_lmeval.formats.yaml.document import Includer, YamlDocument, YamlFault
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    try:
        document = parse_yaml(source.data, Includer(source.path))
    except YamlFault as fault:
        ours = source.is_named or reads_like_a_task(source.data)
        return _broken(fault) if ours else _left_alone(source)
    if isinstance(document, YamlDocument):
        if any(key in document for key in ROOT_KEYS):
            return _load_document(source, document, registry)
        from pytest_lmeval.formats.data_file import load_data_file
        from pytest_lmeval.formats.data_shape import is_data_file

        if is_data_file(document, is_named=source.is_named):
            return load_data_file(source, document, registry)
    return LoadedFile((), [_no_task(document)]) if source.is_named else _left_alone(source)


def _broken(fault: YamlFault) -> LoadedFile:
    detail = f"column {fault.place.column}: {fault.detail}"
    return LoadedFile((), [RecordError(fault.place.line, None, "bad_yaml", "_document", detail)])


def _left_alone(source: TaskSource) -> LoadedFile:
    """Return no task for a file without a task's root key, or an error if the file was probably meant as a task."""
    data = source.data
    # The file may have a syntax error, such as an indented root key.
    if source.is_explicit or (has_title(data) and has_root_key(data)):
        from pytest_lmeval.formats.yaml.parse import syntax_fault

        if fault := syntax_fault(data):
            return _broken(fault)
    if is_data_set(data):
        return LoadedFile()
    words = list(islice(_WORD.finditer(data), _MOST_WORDS))
    near = next(((word, key) for word in words if (key := _meant(word[1].decode()))), None)
    if near is not None and has_title(data):
        word, key = near
        line, column = data.count(b"\n", 0, word.start()) + 1, word.start(1) - data.rfind(b"\n", 0, word.start(1))
        detail = f"column {column}: no task in the file; did you mean {key!r}?"
        return LoadedFile((), [RecordError(line, None, "unknown_field", word[1].decode(), detail)])
    found = {word[1].decode() for word in words}
    if near is None and (reason := _nearly_data_file(found)):
        return LoadedFile(no_task=reason, is_near_miss="did you mean" in reason)
    origin = foreign(found)
    hint = f"; did you mean {near[1]!r}?" if near else origin and f"; {origin}"
    return LoadedFile(no_task=f"{_NO_KEY}{hint}", is_near_miss=bool(near))


def _meant(word: str, keys: Iterable[str] = ROOT_KEYS) -> str:
    """Return the key in ``keys`` that ``word`` probably means, or ""."""
    # Require more similarity than other hints, since files of other programs have keys such as "description".
    return next((key for key in keys if SequenceMatcher(None, word, key).ratio() > _NEAR), "")


def _nearly_data_file(words: Collection[str]) -> str:
    """Return a sentence about ``words`` if at most one key of a data file is missing from them, else ""."""
    lacking = [number for number, role in enumerate(ROLES) if role.isdisjoint(words)]
    if not lacking:
        return "it has the keys of a data file, and others"
    if len(lacking) > 1:
        return ""
    near = next((key for word in sorted(words) if (key := _meant(word, ROLES[lacking[0]]))), "")
    hint = f"; did you mean {near!r}?" if near else ""
    return f"a data file has prompt, data or rows, and metric: no key {_ROLE_NAMES[lacking[0]]}{hint}"


def _load_document(source: TaskSource, document: YamlDocument, registry: Registry) -> LoadedFile:
    if "definition" in document:
        from pytest_lmeval.formats.declarative.load import load_declarative

        return load_declarative(source, document, registry)
    if "icl_tasks" in document:
        from pytest_lmeval.formats.core import load_core

        return load_core(source, document, registry)
    if "harness" in document:
        from pytest_lmeval.formats.harness.load import load_harness

        return load_harness(source, document, registry)
    from pytest_lmeval.formats.mixture import load_mixture

    return load_mixture(source, document, registry)


def _no_task(document: object) -> RecordError:
    wanted = f"expected one of the keys {', '.join(ROOT_KEYS)}"
    if not isinstance(document, dict):
        return RecordError(1, None, "bad_type", "_root", f"column 1: no task in the file; {wanted}")
    origin = foreign(document.keys())
    hints = (did_you_mean(key, ROOT_KEYS) for key in document)
    hint = f"; {origin}" if origin else next((f";{hint}" for hint in hints if hint), "")
    if not hint and (reason := _nearly_data_file(document)):
        hint = f"; {reason}"
    return RecordError(1, None, "missing_required", "_root", f"column 1: no task in the file; {wanted}{hint}")
