"""Write the files of ``lmeval init``: the model's settings, a first task or eval, and a workflow for pull requests.

Existing tasks and workflows stay unchanged. Settings files and ``.gitignore`` only gain lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.starter.beginnings import Beginning
from pytest_lmeval.starter.models import ChosenModel
from pytest_lmeval.starter.settings import in_table, pytest_settings, read_text, with_keys
from pytest_lmeval.starter.workflow import evals_workflow

_WORKFLOW = ".github/workflows/evals.yml"


@dataclass(frozen=True, slots=True)
class StarterFile:
    """A starter file: its new text (None if the file stays unchanged), and a note."""

    path: Path
    text: str | None
    note: str = ""


def write_starter(folder: Path, model: ChosenModel, beginning: Beginning) -> list[StarterFile]:
    """Write the starter's files in ``folder``, which need not exist; return a result for each file.

    Raises UsageError if a file cannot be read or written. If something blocks a path, write nothing.
    """
    changes = [
        *_new(folder, {**beginning.files, _WORKFLOW: evals_workflow(folder, model, beginning.paths)}),
        *_settings(folder, model, beginning),
        *_ignored(folder),
    ]
    wanted = {change.path: change.text for change in changes if change.text is not None}
    try:
        if taken := sorted({str(place) for path in wanted for place in _in_the_way(path)}):
            raise UsageError(f"{', '.join(taken)}: in the way, and not overwritten; move it, or choose another folder")
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    return changes


def _new(folder: Path, files: Mapping[str, str]) -> Iterator[StarterFile]:
    for name, text in files.items():
        path = folder / name
        there = path.exists() or path.is_symlink()
        yield StarterFile(path, None, "it exists") if there else StarterFile(path, text)


def _settings(folder: Path, model: ChosenModel, beginning: Beginning) -> Iterator[StarterFile]:
    """Yield pytest's settings file with the model's name, and the profile of a model that has an address."""
    path, table, found = pytest_settings(folder)
    # If pytest has no configuration, evals cannot import the project.
    beside = {} if found or path.name != "pyproject.toml" or not beginning.imports else {"pythonpath": ["."]}
    # Users of such a project edit its prompts, so pair examples by id.
    pairs = {"lm_pair_by": "id"} if beginning.has_ids else {}
    wanted: list[tuple[Path, tuple[str, ...], dict[str, Any]]] = [
        (path, table, {"lm_adapter": model.profile or model.spec, **pairs, **beside})
    ]
    if model.profile:
        profile = {"adapter": model.spec, "base_url": model.base_url}
        wanted.append((folder / "pyproject.toml", ("tool", "lmeval", "adapters", model.profile), profile))
    texts: dict[Path, str] = {}
    for path, table, keys in wanted:
        before = texts.get(path, read_text(path))
        there = in_table(path, before, table)
        first = next(iter(keys))
        named = f"[{'.'.join(table)}] {', '.join(f'{key} = {value!r}' for key, value in keys.items())}"
        if first in there:
            same = {key: there.get(key) for key in keys if key in there} == keys
            yield StarterFile(
                path, None, f"{named} is there" if same else f"{first} = {there[first]!r} is there; not {named}"
            )
            continue
        after = with_keys(path, before, table, keys)
        if after is None:
            yield StarterFile(path, None, f"add by hand: {named}")
            continue
        texts[path] = after
        yield StarterFile(path, after, named)


def _ignored(folder: Path) -> Iterator[StarterFile]:
    """Yield ``.gitignore`` with lines for a run's files, and for virtual environments in ``folder``."""
    path = folder / ".gitignore"
    text = read_text(path)
    there = {line.strip().strip("/") for line in text.splitlines()}
    environments = [place.parent.name for place in sorted(folder.glob("*/pyvenv.cfg"))]
    lines = [f"{name}/" for name in ("reports", "__pycache__", *environments) if name not in there]
    if lines:
        before = f"{text.rstrip()}\n" if text.strip() else ""
        yield StarterFile(path, before + "".join(f"{line}\n" for line in lines), ", ".join(lines))


def _in_the_way(target: Path) -> list[Path]:
    """Return the target if it exists but is not a file, and those of its parents that are not folders."""
    is_blocked = not target.is_file() and (target.exists() or target.is_symlink())
    taken = [target] if is_blocked else []
    return taken + [parent for parent in target.parents if parent.exists() and not parent.is_dir()]
