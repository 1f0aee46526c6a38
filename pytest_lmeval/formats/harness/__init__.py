"""Task files of lm-evaluation-harness: its tasks and groups in YAML, read as the harness reads them.

This package never imports the harness; it reimplements the rules.
"""
