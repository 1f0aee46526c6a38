"""Convert evals of OpenAI Evals, which are YAML files with samples, to data files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.formats.yaml.document import YamlDocument
from pytest_lmeval.formats.yaml.parse import read_yaml
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records
from pytest_lmeval.interop.importers import Imported, Remark
from pytest_lmeval.interop.importers.yaml_text import yaml_text

_READ = frozenset({"samples_jsonl", "ignore_case", "max_tokens"})
_ROLES = frozenset({"system", "user", "assistant"})
_METRICS = {"Match": "starts_with", "Includes": "contains_any", "JsonMatch": "json_exact"}
"""The metric that compares an answer with the right answers, by the class of an eval."""


class _Sample(NamedTuple):
    place: str
    messages: Sequence[Mapping[str, str]]
    targets: Sequence[str]


def bring_in(source: Path, destination: Path) -> Imported:
    """Return a data file for each eval in ``source``; raise UsageError for any other source."""
    document = read_yaml(source) if source.suffix in (".yaml", ".yml") else None
    if not isinstance(document, YamlDocument):
        raise UsageError(f"{source}: expected a YAML file with a mapping of evals, each with class and args")
    files = NewFiles(destination)
    left: list[Remark] = []
    differs: list[Remark] = []
    for name, spec in document.items():
        line = document.place((name,)).line
        if not isinstance(spec, dict) or "class" not in spec:
            continue  # an alias of another entry
        try:
            kind, args = _kind_and_args(spec)
            samples = _samples_path(source, args)
            for key in args.keys() - _READ:
                left.append(Remark(source.name, document.place((name, "args", key)).line, f"{name}.{key}", "not read"))
            for called, stem in _add_files(files, name, samples, kind, args, left):
                why = f"another eval has the file {called}.yaml, so this one is {stem}.yaml"
                differs.append(Remark(source.name, line, name, why))
            if kind == "Match":
                differs.append(Remark(source.name, line, kind, "white space before the answer is ignored here"))
        except _Unread as out:
            left.append(Remark(source.name, line, name, str(out)))
    if not files:
        raise Imported(files, left).nothing(source, "eval")
    return Imported(files, left, differs, [f"pytest {destination} --lm-adapter=SPEC"])


class _Unread(Exception):
    """The reason why an eval has no counterpart."""


def _kind_and_args(spec: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    args = spec.get("args") or {}
    if not isinstance(args, dict):
        raise _Unread(f"args: expected a mapping, got {args!r:.60}")
    kind = str(spec["class"]).rpartition(":")[2]
    if kind not in _METRICS:
        raise _Unread(f"class {spec['class']}: known are {', '.join(_METRICS)}; others are eval functions here")
    return kind, args


def _samples_path(source: Path, args: Mapping[str, Any]) -> Path:
    name = args.get("samples_jsonl")
    if not isinstance(name, str) or "://" in name:
        raise _Unread(f"samples_jsonl is {name!r:.60}; expected a file of the registry")
    roots = [source.parent]
    if source.parent.parent.name == "registry":
        roots.insert(0, source.parent.parent / "data")
    for root in roots:
        path = (root / name).resolve()
        if path.is_relative_to(root.resolve()) and path.is_file():
            return path
    raise _Unread(f"samples_jsonl: there is no {name} in {' or '.join(map(str, roots))}")


def _add_files(
    files: NewFiles, name: str, samples: Path, kind: str, args: Mapping[str, Any], left: list[Remark]
) -> list[tuple[str, str]]:
    """Add an eval's files; return ``(expected, used)`` for each name that another eval took."""
    groups: dict[tuple[Any, ...], list[_Sample]] = {}
    for place, record in read_records(samples):
        try:
            sample = _sample(place, record)
        except _Unread as out:
            left.append(Remark(samples.name, int(place.rpartition(":")[2]), "sample", str(out)))
            continue
        form = (tuple(message["role"] for message in sample.messages), len(sample.targets))
        groups.setdefault(form, []).append(sample)
    renamed = []
    for number, group in enumerate(groups.values(), 1):
        wanted = safe_name(f"{name}-{number}" if len(groups) > 1 else name, "eval")
        stem = files.stem(wanted)
        if stem != wanted:
            renamed.append((wanted, stem))
        files.add(f"{stem}.rows.jsonl", encode_lines(map(_row, group)))
        files.add(f"{stem}.yaml", yaml_text(_data_file(stem, group[0], kind, args)).encode())
    return renamed


def _sample(place: str, record: Mapping[str, Any]) -> _Sample:
    given, ideal = record.get("input"), record.get("ideal")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise _Unread(f"input: expected a text or messages with role and content, got {given!r:.60}")
    roles = [message["role"] for message in messages]
    if roles[-1] != "user" or "system" in roles[1:] or not {*roles} <= _ROLES:
        raise _Unread(f"input: messages of {', '.join(roles)}; a data file has system at the front and user at the end")
    targets = [ideal] if isinstance(ideal, str) else ideal
    if (
        not isinstance(targets, list)
        or not targets
        or not all(isinstance(each, str) and each.strip() for each in targets)
    ):
        raise _Unread(f"ideal: expected a text or a list of them, got {ideal!r:.60}")
    return _Sample(place, messages, targets)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))


def _row(sample: _Sample) -> dict[str, Any]:
    contents = {f"message_{number}": message["content"] for number, message in enumerate(sample.messages, 1)}
    ideal = {f"ideal_{number}": target for number, target in enumerate(sample.targets, 1)}
    return {"id": sample.place.rpartition(":")[2], **contents, **ideal}


def _data_file(stem: str, sample: _Sample, kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    messages = [
        {"role": message["role"], "content": f"{{{{ message_{number} }}}}"}
        for number, message in enumerate(sample.messages, 1)
    ]
    targets = [f"{{{{ ideal_{number} }}}}" for number in range(1, len(sample.targets) + 1)]
    check: dict[str, Any] = {"metric": _METRICS[kind], "targets": targets}
    if kind == "Includes" and args.get("ignore_case"):
        check["extras"] = {"ignore_case": True}
    further = [{"metric": "only_json", "target": "JSON"}] if kind == "JsonMatch" else []
    prompt: Any = messages[0]["content"] if len(messages) == 1 else messages
    return {"prompt": prompt, "data": f"{stem}.rows.jsonl", "checks": [check, *further]}
