"""Read the YAML tasks and groups of lm-evaluation-harness as the harness reads them.

This package never imports the harness; it reimplements the harness's rules.
"""
