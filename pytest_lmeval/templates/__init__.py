"""Render untrusted Jinja templates from task files with data-set rows and model outputs.

A template sees plain data and returns text, within limits on size and computation. The values of variables are never
parsed as templates.
"""
