"""Wrap undocumented names of pytest, pytest-xdist and their plugins; each function documents its fallback.

No other folder of the plugin uses such a name; a test checks that. Unless another version is named, seen with pytest
8.4 to 9.2 and pytest-xdist 3.6 to 3.8.
"""
