"""Run the command ``lmeval`` as ``python -m pytest_lmeval``."""

from __future__ import annotations

import sys

from pytest_lmeval.cli import main

sys.exit(main())
