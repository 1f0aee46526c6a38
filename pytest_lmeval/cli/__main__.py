"""Run the ``lmeval`` command as ``python -m pytest_lmeval.cli``."""

from __future__ import annotations

import sys

from pytest_lmeval.cli import main

sys.exit(main())
