"""From a config to the files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.interop.files import NewFiles, encode_lines
from pytest_lmeval.interop.importers.imported import Imported
from pytest_lmeval.interop.importers.promptfoo.cases import Case, read_cases
from pytest_lmeval.interop.importers.promptfoo.checks import checks_of, rule_of
from pytest_lmeval.interop.importers.promptfoo.documents import Checked, document_of, fits_inline, grouped, unfilled
from pytest_lmeval.interop.importers.promptfoo.files import Folder, read_config
from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut, Node, Remarks
from pytest_lmeval.interop.importers.promptfoo.prompts import Prompt, read_prompts
from pytest_lmeval.interop.importers.promptfoo.providers import profiles_text, read_providers
from pytest_lmeval.interop.importers.promptfoo.templates import is_template, jinja
from pytest_lmeval.interop.importers.yaml_text import yaml_text
from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.pages import page

_USUAL_NAME = "promptfooconfig"
_READ = frozenset({"prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "evaluateOptions"})
_OF_NO_TEST = frozenset({"description", "assertionTemplates", "$schema"})
_WITHOUT: Mapping[str, str] = {
    "nunjucksFilters": "filters of your own are programs; write what they return into the rows",
    "env": "set variables where the run is started",
    "extensions": "hooks are programs; pytest has fixtures and conftest.py",
    "derivedMetrics": "a metric over all results: the aggregations of a YAML task",
    "outputPath": "--lm-report-dir says where the board, the ledger and the page are",
    "sharing": "report.html is one file to share",
    "redteam": "red teaming has no counterpart",
    "commandLineOptions": f"see {page('commands.md')} and pytest --help",
    "scenarios": "",
}
_OPTIONS = frozenset({"prefix", "suffix", "transform", "postprocess", "disableVarExpansion", "disableDefaultAsserts"})
_OPTION_WITHOUT: Mapping[str, str] = {
    "provider": "the judge is the run's: --lm-judge SPEC",
    "rubricPrompt": "the judge of the metric rubric has a prompt of its own",
    "runSerially": "examples share nothing here, in whatever order they are asked",
}
_OPTION_ENDS: Mapping[str, str] = {
    "storeOutputAs": "an answer that goes into another test: `turns` of a record, or an eval function",
    "transformVars": "a program that changes variables: write what it returns into the rows",
}


def bring_in(source: Path, destination: Path) -> Imported:
    """Return the data files and profiles for the config at ``source``; raise UsageError where it cannot be read."""
    config, remarks = read_config(source), Remarks()
    folder = Folder(source.parent)
    remarks.leave_others(config, _READ | _OF_NO_TEST)
    remarks.left_out[:] = [
        type(each)(each.file, each.line, each.what, _WITHOUT.get(each.what, each.why)) for each in remarks.left_out
    ]
    _leave_templates(config, remarks)
    prompts = read_prompts(config, folder, remarks)
    cases = [] if not prompts else [*_checked(read_cases(config, folder, remarks), prompts, folder, remarks)]
    if not cases:
        lines = "".join(f"\n{each}" for each in Imported(NewFiles(destination), remarks.left_out).listed())
        raise UsageError(f"{source}: no test of it has a counterpart, so nothing was written{lines}")
    files = NewFiles(destination)
    _add_data_files(files, config, source, grouped(cases), prompts, _repeats(config, remarks))
    profiles = read_providers(config, folder, remarks)
    if profiles:
        files.add("profiles.toml", profiles_text(profiles).encode())
    steps = [f"cat {destination / 'profiles.toml'} >> pyproject.toml"] if profiles else []
    adapter = next(iter(profiles), "SPEC")
    judge = " --lm-judge=SPEC" if any(check.metric == "rubric" for each in cases for check in each.checks) else ""
    steps.append(f"pytest {destination} --lm-adapter={adapter}{judge}")
    return Imported(files, remarks.left_out, remarks.differs, steps)


def _checked(cases: Sequence[Case], prompts: Sequence[Prompt], folder: Folder, remarks: Remarks) -> Iterator[Checked]:
    for case in cases:
        try:
            found = _of_case(case, folder, remarks)
            for prompt in prompts:
                if why := unfilled(prompt, case.variables):
                    raise LeftOut(f"prompt {prompt.name}: {why}")
            yield found
        except LeftOut as left:
            remarks.leave(left.node or case.node, left.why, case.node.name)


def _of_case(case: Case, folder: Folder, remarks: Remarks) -> Checked:
    options = case.options
    for key, node in options.items():
        if key in _OPTION_ENDS:
            raise LeftOut(f"options.{key}: {_OPTION_ENDS[key]}", node)
        if key not in _OPTIONS:
            remarks.leave(node, _OPTION_WITHOUT.get(key, "an option of one test; a profile has options of the model"))
    rules = [rule_of(options[key]) for key in ("postprocess", "transform") if key in options]
    checks = []
    for node in case.asserts:
        try:
            checks += checks_of(node, folder, remarks)
        except LeftOut as left:
            kind = node.value.get("type", "") if isinstance(node.value, dict) else ""
            remarks.leave(left.node or node, left.why, f"{node.name} {kind}".strip())
    if not checks:
        why = "none of its assertions has a counterpart" if case.asserts else "without assertions it always passes"
        raise LeftOut(f"{why}; an example needs a check")
    before, after = (_text(options[key]) if key in options else "" for key in ("prefix", "suffix"))
    return Checked(case, checks, before, after, _threshold(case), rules[-1] if rules else "")


def _text(node: Node) -> str:
    text = str(node.value)
    return jinja(text) if is_template(text) else text


def _threshold(case: Case) -> float | None:
    if case.threshold is None:
        return None
    value = case.threshold.value
    if not is_number(value) or not 0 <= value <= 1:
        raise LeftOut(f"threshold {value!r:.40}; expected a number from 0 to 1", case.threshold)
    return float(value)


def _repeats(config: Node, remarks: Remarks) -> int:
    options = config.at("evaluateOptions")
    for key, node in options.items():
        if key == "maxConcurrency":
            remarks.leave(node, f"an option of the run: --lm-concurrency={node.value}")
        elif key != "repeat":
            remarks.leave(node, f"an option of the run: see {page('recipes.md')} and pytest --help")
    repeats = options.at("repeat").value
    return repeats if is_whole(repeats) and repeats > 0 else 1


def _add_data_files(
    files: NewFiles,
    config: Node,
    source: Path,
    groups: Sequence[Sequence[Checked]],
    prompts: Sequence[Prompt],
    repeats: int,
) -> None:
    name, head = _name(source), _description(config)
    for number, group in enumerate(groups, 1):
        stem = files.stem(f"{name}-{number}" if len(groups) > 1 else name)
        document, rows = document_of(group, prompts, repeats)
        prompt = document.pop("prompt")
        if fits_inline(rows):
            whole: dict[str, Any] = {"prompt": prompt, "rows": rows, **document}
        else:
            files.add(f"{stem}.rows.jsonl", encode_lines(rows))
            whole = {"prompt": prompt, "data": f"{stem}.rows.jsonl", **document}
        files.add(f"{stem}.yaml", head + yaml_text(whole).encode())


def _description(config: Node) -> bytes:
    """Return the description of the config as a comment."""
    described = config.value.get("description")
    printed = "".join(character if character.isprintable() else "\n" for character in str(described or ""))
    return "".join(f"# {line}\n" for line in printed.splitlines()).encode("utf-8", "replace")


def _leave_templates(config: Node, remarks: Remarks) -> None:
    for name, node in config.at("assertionTemplates").items():
        if not any(f"{each}/".startswith(f"#/assertionTemplates/{name}/") for each in config.referred):
            remarks.leave(node, "no test refers to it")


def _name(source: Path) -> str:
    stem = source.stem
    if stem == _USUAL_NAME:
        stem = source.resolve().parent.name
    stem = stem.removeprefix(f"{_USUAL_NAME}.").removesuffix(f".{_USUAL_NAME}")
    return safe_name(stem, "promptfoo")
