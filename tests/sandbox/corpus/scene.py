"""What stands around a program when it is run: things that it should not reach, each watched by an oracle."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest_lmeval
from tests.sandbox.corpus.bystanders import Terminal, Victim, leftovers, survivors
from tests.sandbox.corpus.canaries import Canaries, plant
from tests.sandbox.corpus.listeners import Listeners
from tests.sandbox.corpus.programs import Program

__all__ = ["Scene", "Stage", "scene_in"]


@dataclass(frozen=True, slots=True)
class Stage:
    """All that one run of one program might harm, and what the program is told about it."""

    facts: Mapping[str, Any]
    secrets: tuple[str, ...]
    canaries: Canaries
    listeners: Listeners
    victim: Victim | None
    terminal: Terminal | None

    def evidence(self, marked: bool) -> list[str]:
        """Return every trace of the program outside of its process; look for its processes if it is ``marked``."""
        token = self.facts["token"]
        found = self.canaries.changes()
        found += [f"{name} heard it" for name in self.listeners.heard(token)]
        found += self.victim.changes() if self.victim else []
        found += self.terminal.changes(token) if self.terminal else []
        found += leftovers(token, self.facts["key"])
        return found + (survivors(token) if marked else [])


@dataclass(frozen=True, slots=True)
class Scene:
    """What all runs share: folders, listeners and a secret in the environment."""

    folder: Path
    scratches: Path
    listeners: Listeners
    secret: str

    def has(self, program: Program) -> bool:
        """Whether this machine has all that the program needs."""
        here = {"victim", "terminal", platform.machine()}
        here |= {"ipv6"} if "tcp6" in self.listeners.addresses else set()
        here |= {"cores"} if (os.cpu_count() or 1) > 1 else set()
        here |= {"xattr"} if self._has_attributes() else set()
        return program.words("needs") <= here

    @contextlib.contextmanager
    def stage(self, program: Program) -> Iterator[Stage]:
        """Set up what a run of ``program`` might harm, and take it down."""
        number = secrets.token_hex(5)
        token, secret = f"lm{number}", f"SECRET{secrets.token_hex(8)}"
        base = self.folder / token
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            canaries, facts = plant(base, self.scratches, token, secret)
            stack.callback(shutil.rmtree, canaries.roots[-1], ignore_errors=True)
            victim = terminal = None
            if "victim" in program.words("needs"):
                victim = Victim(Path(facts["folder"]), Path(facts["file"]), secret)
                stack.callback(victim.close)
            if "terminal" in program.words("needs"):
                terminal = Terminal()
                stack.callback(terminal.close)
            known = {"token": token, "key": int(number[:7], 16) + 1, "harness": os.getpid()}
            known |= {"victim": victim.pid if victim else 0, "terminal": terminal.path if terminal else ""}
            known["package"] = pytest_lmeval.__file__
            told = {**facts, **known, **self.listeners.addresses}
            yield Stage(told, (secret, self.secret), canaries, self.listeners, victim, terminal)

    def litter(self) -> list[str]:
        """Return the scratch folders that are left."""
        return sorted(path.name for path in self.scratches.iterdir())

    def _has_attributes(self) -> bool:
        try:
            os.setxattr(self.folder, "user.canary", b"")
        except (AttributeError, OSError):
            return False
        return True


@contextlib.contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    """Set up the scene in an empty ``folder``; until its end new scratch folders and the home are in there, too."""
    scratches, home = folder / "scratch", folder / "home"
    scratches.mkdir()
    home.mkdir()
    secret = f"SECRET{secrets.token_hex(8)}"
    with (
        mock.patch.dict(os.environ, {"HOME": str(home), "LMEVAL_CANARY_KEY": secret}),
        mock.patch.object(tempfile, "tempdir", str(scratches)),
        Listeners(secrets.token_hex(4)) as listeners,
    ):
        yield Scene(folder, scratches, listeners, secret)
