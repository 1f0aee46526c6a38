"""Wrap undocumented names of pytest, pytest-xdist and their plugins; each function documents its fallback.

A test ensures that no other folder in the plugin uses an undocumented name. Unless a docstring names another version,
the names exist in pytest 8.4 to 9.2 and pytest-xdist 3.6 to 3.8.
"""
