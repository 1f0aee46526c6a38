"""From a config to the files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.interop.files import NewFiles, encode_lines
from pytest_lmeval.interop.importers.imported import Imported
from pytest_lmeval.interop.importers.promptfoo.cases import Case, read_cases
from pytest_lmeval.interop.importers.promptfoo.checks import checks_of, share_of
from pytest_lmeval.interop.importers.promptfoo.documents import Checked, document_of, fits_inline, grouped
from pytest_lmeval.interop.importers.promptfoo.files import Folder, read_config
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks
from pytest_lmeval.interop.importers.promptfoo.prompts import Prompt, read_prompts
from pytest_lmeval.interop.importers.promptfoo.providers import profiles_text, read_providers
from pytest_lmeval.interop.importers.promptfoo.reasons import ENDS, OF_A_KEY
from pytest_lmeval.interop.importers.promptfoo.templates import checked
from pytest_lmeval.interop.importers.yaml_text import yaml_text

_USUAL_NAME = "promptfooconfig"
_READ = frozenset(
    {"$schema", "description", "prompts", "providers", "targets", "tests", "defaultTest", "evaluateOptions"}
)
_OPTIONS = frozenset({"prefix", "suffix", "disableVarExpansion", "disableDefaultAsserts"})


def bring_in(source: Path, destination: Path) -> Imported:
    """Return the data files and profiles for the config at ``source``; raise UsageError if it cannot be read."""
    config, remarks = read_config(source), Remarks()
    folder, files = Folder(source.parent), NewFiles(destination)
    remarks.leave_others(config, _READ, OF_A_KEY)
    remarks.leave_others(config.at("evaluateOptions"), frozenset(), OF_A_KEY)
    prompts = read_prompts(config, folder, remarks)
    cases = [*_checked(read_cases(config, folder, remarks), prompts, folder, remarks)] if prompts else []
    if not cases:
        lines = "".join(f"\n{each}" for each in Imported(files, remarks.left_out).listed())
        raise UsageError(f"{source}: no test of it has a counterpart, so nothing was written{lines}")
    head, name = _description(config), _name(source)
    groups = grouped(cases)
    for number, group in enumerate(groups, 1):
        stem = files.stem(f"{name}-{number}" if len(groups) > 1 else name)
        document, rows = document_of(group, prompts)
        held: dict[str, Any] = {"rows": rows}
        if not fits_inline(rows):
            held = {"data": f"{stem}.rows.jsonl"}
            files.add(held["data"], encode_lines(rows))
        files.add(f"{stem}.yaml", head + yaml_text({"prompt": document.pop("prompt"), **held, **document}).encode())
    profiles = read_providers(config, remarks)
    steps = []
    if profiles:
        files.add("profiles.toml", profiles_text(profiles).encode())
        steps.append(f"cat {destination / 'profiles.toml'} >> pyproject.toml")
    judge = " --lm-judge=SPEC" if any(check.metric == "rubric" for each in cases for check in each.checks) else ""
    steps.append(f"pytest {destination} --lm-adapter={next(iter(profiles), 'SPEC')}{judge}")
    return Imported(files, remarks.left_out, remarks.differs, steps)


def _checked(cases: Sequence[Case], prompts: Sequence[Prompt], folder: Folder, remarks: Remarks) -> Iterator[Checked]:
    for case in cases:
        try:
            found = _of_case(case, folder, remarks)
            if why := next(filter(None, (prompt.unfilled(case.variables) for prompt in prompts)), ""):
                raise LeftOut(why)
            yield found
        except LeftOut as left:
            remarks.leave_for(left, case.node, case.node.name)


def _of_case(case: Case, folder: Folder, remarks: Remarks) -> Checked:
    options = case.options
    for key, node in options.items():
        if key in ENDS:
            raise LeftOut(f"options.{key}: {ENDS[key]}", node)
        if key not in _OPTIONS:
            remarks.leave(node, OF_A_KEY.get(key, "an option of one test; a profile has options of the model"))
    checks = []
    for node in case.asserts:
        try:
            found = checks_of(node, folder, remarks)
            for text in (text for check in found for text in (*check.targets, check.demand)):
                case.fill(text)
            checks += found
        except LeftOut as left:
            kind = node.value.get("type", "") if isinstance(node.value, dict) else ""
            remarks.leave_for(left, node, f"{node.name} {kind}".strip())
    if not checks:
        why = "none of its assertions has a counterpart" if case.asserts else "without assertions it always passes"
        raise LeftOut(f"{why}; an example needs a check")
    before, after = (checked(str(options[key].value)) if key in options else "" for key in ("prefix", "suffix"))
    threshold = None if case.threshold is None else share_of(case.threshold)
    return Checked(case, checks, before, after, threshold)


def _description(config: Node) -> bytes:
    """Return the description of the config as a comment."""
    described = config.value.get("description")
    printed = "".join(character if character.isprintable() else "\n" for character in str(described or ""))
    return "".join(f"# {line}\n" for line in printed.splitlines()).encode("utf-8", "replace")


def _name(source: Path) -> str:
    stem = source.resolve().parent.name if source.stem == _USUAL_NAME else source.stem
    return safe_name(stem.removeprefix(f"{_USUAL_NAME}.").removesuffix(f".{_USUAL_NAME}"), "promptfoo")
