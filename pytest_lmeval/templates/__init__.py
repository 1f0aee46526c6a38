"""Jinja templates that nobody trusts: what is in a task file, filled with what is in a data set or a model wrote.

A template sees plain data and returns text, within limits on size and work. Nothing that it is given is ever read as
a template again.
"""
