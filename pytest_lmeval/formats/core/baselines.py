"""What guessing reaches, from the CSV file beside ``core.yaml``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_lmeval.errors import RecordRefused, nearest

_LABEL, _BASELINE = "Eval Task", "Random baseline"
_USUAL = "eval_meta_data.csv"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Baselines:
    """Scores by guessing, in percent as written, by task label, with their lines; ``name`` is the file's."""

    name: str
    by_label: Mapping[str, tuple[str, int]]

    def of(self, label: str) -> float:
        """Return the score that guessing reaches at ``label``, in [0, 1); raise RecordRefused for an unknown label."""
        if label not in self.by_label:
            hint = nearest(label, self.by_label)
            raise RecordRefused("bad_value", "label", f"{label!r} has no line in {self.name}{hint}")
        text, line = self.by_label[label]
        try:
            percent = float(text)
        except ValueError:
            percent = math.nan
        if not 0 <= percent < 100:
            where = f"{self.name}:{line}: {_BASELINE}"
            raise RecordRefused("bad_value", "label", f"{where} is {text!r:.50}; expected percent from 0 to under 100")
        return percent / 100


def read_baselines(folder: Path) -> Baselines:
    """Return the baselines of the one CSV file in ``folder`` that has them; raise RecordRefused if no file has them.

    ``eval_meta_data.csv`` goes before others.
    """
    files = sorted(folder.glob("*.csv"), key=lambda path: (path.name != _USUAL, path.name))
    found = [(path, rows) for path in files if (rows := _rows(path))]
    if not found:
        wanted = f"no CSV file beside it with the columns {_LABEL!r} and {_BASELINE!r} (percent)"
        raise RecordRefused("missing_required", "random_baseline", wanted)
    if len(found) > 1 and found[0][0].name != _USUAL:
        names = ", ".join(path.name for path, _ in found)
        raise RecordRefused("bad_value", "random_baseline", f"{names} all have baselines; call one of them {_USUAL}")
    path, rows = found[0]
    return Baselines(path.name, {label: (percent, line) for label, percent, line in rows})


def _rows(path: Path) -> Sequence[tuple[str, str, int]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ()
        reader = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        if not {_LABEL, _BASELINE} <= set(reader.fieldnames or ()):
            return ()
        return [(str(row[_LABEL]).strip(), str(row[_BASELINE]).strip(), reader.line_num) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error):
        return ()
