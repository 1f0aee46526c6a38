"""Untrusted Jinja templates of task files, filled with rows of data sets and output of models.

A template sees plain data and returns text, within limits on size and work. Its variables are never read as templates.
"""
