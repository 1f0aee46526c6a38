"""Untrusted Jinja templates from task files, filled with data-set rows and model output.

A template sees plain data and returns text, within limits on size and work. Values of variables are never parsed as
templates.
"""
