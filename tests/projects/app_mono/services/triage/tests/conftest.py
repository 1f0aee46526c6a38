"""Configure Django as its own pytest plugin would."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "triage.settings")
