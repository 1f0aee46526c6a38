"""Helpers that several parts of the plugin share: the baseline, worker reports, secrets."""
