"""Helpers for several parts of the plugin: the baseline, worker reports, secrets."""
