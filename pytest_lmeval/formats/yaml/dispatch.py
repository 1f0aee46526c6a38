"""Which format a ``.yaml`` file is of; files that are no task files are left alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_lmeval.errors import did_you_mean
from pytest_lmeval.formats.task import LoadedFile, TaskSource
from pytest_lmeval.types import RecordError

if TYPE_CHECKING:
    from pytest_lmeval.formats.yaml.document import Document
    from pytest_lmeval.registry import Registry

__all__ = ["ROOT_KEYS", "load"]

ROOT_KEYS = ("definition", "icl_tasks", "mixture")
# A cheap look that passes every file with such a key at its root: other people's files cost no parser, and may hold
# what this one refuses.
_ROOT_KEY = re.compile(rb"^[ {\t]*[\"']?(?:definition|icl_tasks|mixture)[\"']?[ \t]*:", re.MULTILINE)
_SURE_ROOT_KEY = re.compile(rb"^[\"']?(?:definition|icl_tasks|mixture)[\"']?[ \t]*:", re.MULTILINE)


def load(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return the tasks of a YAML file; one without a task's keys holds none, and is an error only if it was named."""
    if not source.is_named and not _ROOT_KEY.search(source.data):
        return LoadedFile()
    from pytest_lmeval.formats.yaml.document import Document, YamlFault
    from pytest_lmeval.formats.yaml.includes import Includer
    from pytest_lmeval.formats.yaml.parse import parse_yaml

    try:
        document = parse_yaml(source.data, Includer(source.path))
    except YamlFault as fault:
        ours = source.is_named or _SURE_ROOT_KEY.search(source.data)
        detail = f"column {fault.place.column}: {fault.detail}"
        return LoadedFile((), [RecordError(fault.place.line, None, "bad_yaml", "_document", detail)] if ours else ())
    if isinstance(document, Document) and any(key in document for key in ROOT_KEYS):
        return _load_document(source, document, registry)
    return LoadedFile((), [_no_task(document)] if source.is_named else ())


def _load_document(source: TaskSource, document: Document, registry: Registry) -> LoadedFile:
    if "definition" in document:
        from pytest_lmeval.formats.declarative.load import load_declarative

        return load_declarative(source, document, registry)
    if "icl_tasks" in document:
        from pytest_lmeval.formats.core import load_core

        return load_core(source, document, registry)
    from pytest_lmeval.formats.mixture import load_mixture

    return load_mixture(source, document, registry)


def _no_task(document: object) -> RecordError:
    wanted = f"expected one of the keys {', '.join(ROOT_KEYS)}"
    if not isinstance(document, dict):
        return RecordError(1, None, "bad_type", "_root", f"column 1: no task in the file; {wanted}")
    hints = (did_you_mean(key, ROOT_KEYS) for key in document)
    hint = next((f";{hint}" for hint in hints if hint), "")
    return RecordError(1, None, "missing_required", "_root", f"column 1: no task in the file; {wanted}{hint}")
