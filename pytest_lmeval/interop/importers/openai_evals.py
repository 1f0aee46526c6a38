"""OpenAI Evals: samples, and the YAML that scores them, to data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.formats.yaml.document import YamlDocument
from pytest_lmeval.formats.yaml.parse import read_yaml
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records
from pytest_lmeval.interop.importers import AGREES, FULFILS, Imported, Remark
from pytest_lmeval.interop.importers.yaml_text import yaml_text

_REGISTRY = "registry"
_READ = frozenset({"samples_jsonl", "ignore_case", "max_tokens", "eval_type", "modelgraded_spec", "args"})
_ROLES = frozenset({"system", "user", "assistant"})


class _Sample(NamedTuple):
    place: str
    messages: Sequence[Mapping[str, str]]
    targets: Sequence[str]


class _Template(NamedTuple):
    """The checks that a class of OpenAI Evals becomes, given the targets, and the difference in meaning."""

    checks: Callable[[Mapping[str, Any], Sequence[str]], list[dict[str, Any]]]
    differs: str = ""
    needs_ideal: bool = True


def bring_in(source: Path, destination: Path) -> Imported:
    """Return a data file for each eval in ``source``, or one for samples; raise UsageError for any other source."""
    if source.suffix in (".jsonl", ".gz"):
        left: list[Remark] = []
        differs = [Remark(source.name, 1, "class", "samples do not name their scoring; assumed to be basic Match")]
        files = NewFiles(destination)
        _add_files(files, source.name.partition(".")[0], source, "Match", {}, left)
        return _imported(destination, files, left, [*differs, *_differs("Match", source.name, 1)])
    return _of_registry(source, destination)


def _of_registry(source: Path, destination: Path) -> Imported:
    document = read_yaml(source)
    if not isinstance(document, YamlDocument):
        raise UsageError(f"{source}: expected a mapping of evals, each with class and args")
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
            differs += _differs(kind, source.name, line)
        except _Unread as out:
            left.append(Remark(source.name, line, name, str(out)))
    if not files:
        raise Imported(files, left).nothing(source, "eval")
    return _imported(destination, files, left, differs)


class _Unread(Exception):
    """The reason that an eval has no counterpart."""


def _kind_and_args(spec: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    args = spec.get("args") or {}
    for key, given in (("args", args), ("args.args", args.get("args") or {} if isinstance(args, dict) else {})):
        if not isinstance(given, dict):
            raise _Unread(f"{key}: expected a mapping, got {given!r:.60}")
    kind = str(spec["class"]).rpartition(":")[2]
    if kind == "ModelBasedClassify":
        kind = f"{kind}:{args.get('modelgraded_spec', '')}"
    if kind not in _TEMPLATES:
        raise _Unread(f"class {spec['class']}: known are {', '.join(_TEMPLATES)}; others are eval functions here")
    return kind, args


def _samples_path(source: Path, args: Mapping[str, Any]) -> Path:
    name = args.get("samples_jsonl")
    if not isinstance(name, str) or "://" in name:
        raise _Unread(f"samples_jsonl is {name!r:.60}; expected a file of the registry")
    roots = [source.parent]
    if source.parent.parent.name == _REGISTRY:
        roots.insert(0, source.parent.parent / "data")
    for root in roots:
        path = (root / name).resolve()
        if path.is_relative_to(root.resolve()) and path.is_file():
            return path
    raise _Unread(f"samples_jsonl: there is no {name} in {' or '.join(map(str, roots))}")


def _add_files(
    files: NewFiles, name: str, samples: Path, kind: str, args: Mapping[str, Any], left: list[Remark]
) -> list[tuple[str, str]]:
    """Add the files of an eval; return ``(expected, used)`` for each name that another eval took."""
    template = _TEMPLATES[kind]
    groups: dict[tuple[Any, ...], list[_Sample]] = {}
    for place, record in read_records(samples):
        try:
            sample = _sample(place, record, template, args)
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
        files.add(f"{stem}.yaml", yaml_text(_data_file(stem, group[0], template, args)).encode())
    return renamed


def _sample(place: str, record: Mapping[str, Any], template: _Template, args: Mapping[str, Any]) -> _Sample:
    given = record.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise _Unread(f"input: expected a text or messages with role and content, got {given!r:.60}")
    roles = [message["role"] for message in messages]
    if roles[-1] == "system" or "system" in roles[1:]:
        raise _Unread("input: a system message that is not the first; a data file has one at the front")
    if roles[-1] != "user" or not {*roles} <= _ROLES:
        raise _Unread(f"input: messages of {', '.join(roles)}; expected the user's at the end")
    ideal = record.get("ideal", (args.get("args") or {}).get("criteria")) if template.needs_ideal else []
    ideal = record.get("criteria", ideal) if ideal is None else ideal
    targets = [ideal] if isinstance(ideal, str) else ideal
    if not isinstance(targets, list) or not all(isinstance(each, str) and each.strip() for each in targets):
        raise _Unread(f"ideal: expected a text or a list of them, got {ideal!r:.60}")
    if template.needs_ideal and not targets:
        raise _Unread("ideal: there is no right answer")
    return _Sample(place, messages, targets)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))


def _row(sample: _Sample) -> dict[str, Any]:
    contents = {f"message_{number}": message["content"] for number, message in enumerate(sample.messages, 1)}
    ideal = {f"ideal_{number}": target for number, target in enumerate(sample.targets, 1)}
    return {"id": sample.place.rpartition(":")[2], **contents, **ideal}


def _data_file(stem: str, sample: _Sample, template: _Template, args: Mapping[str, Any]) -> dict[str, Any]:
    messages = [
        {"role": message["role"], "content": f"{{{{ message_{number} }}}}"}
        for number, message in enumerate(sample.messages, 1)
    ]
    targets = [f"{{{{ ideal_{number} }}}}" for number in range(1, len(sample.targets) + 1)]
    prompt: Any = messages[0]["content"] if len(messages) == 1 else messages
    return {"prompt": prompt, "data": f"{stem}.rows.jsonl", "checks": template.checks(args, targets)}


def _differs(kind: str, file: str, line: int) -> Iterator[Remark]:
    if _TEMPLATES[kind].differs:
        yield Remark(file, line, kind, _TEMPLATES[kind].differs)


def _imported(destination: Path, files: NewFiles, left: Sequence[Remark], differs: Sequence[Remark]) -> Imported:
    judge = " --lm-judge=SPEC" if any(b"rubric" in data for data in files.values()) else ""
    return Imported(files, left, differs, [f"pytest {destination} --lm-adapter=SPEC{judge}"])


def _includes(args: Mapping[str, Any], targets: Sequence[str]) -> list[dict[str, Any]]:
    extras = {"extras": {"ignore_case": True}} if args.get("ignore_case") else {}
    return [{"metric": "contains_any", "targets": [*targets], **extras}]


def _json(args: Mapping[str, Any], targets: Sequence[str]) -> list[dict[str, Any]]:
    right = [{"metric": "json_exact", "targets": [*targets]}] if targets else []
    return [*right, {"metric": "only_json", "target": "JSON"}]


def _rubric(text: str) -> Callable[[Mapping[str, Any], Sequence[str]], list[dict[str, Any]]]:
    return lambda args, targets: [{"metric": "rubric", "targets": [*targets], "extras": {"rubric": text}}]


_JUDGE = "the judge here has its own prompt, and gives 0 or 1"
_TEMPLATES: Mapping[str, _Template] = MappingProxyType(
    {
        "Match": _Template(
            lambda _, targets: [{"metric": "starts_with", "targets": [*targets]}],
            "white space before the answer is ignored here",
        ),
        "Includes": _Template(_includes),
        "JsonMatch": _Template(_json),
        "JsonValidator": _Template(_json, needs_ideal=False),
        "ModelBasedClassify:closedqa": _Template(_rubric(FULFILS), _JUDGE),
        "ModelBasedClassify:fact": _Template(_rubric(AGREES), _JUDGE),
    }
)
